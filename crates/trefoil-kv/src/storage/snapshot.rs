//! The snapshot: the entries of the state as of one commit, in blocks.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use trefoil_core::{Error, Result, put_bytes, take_bytes};
use trefoil_storage::parts::no_such_snapshot;
use trefoil_storage::{Fill, LogEnd, Snapshot, VisitEntry};

use super::cell::{Packing, Puts};
use super::errors::{damaged, failed};
use super::facts::{GarbageFact, SnapshotFact};
use super::garbage::GarbageQueue;
use super::keys::Tag;
use super::store::{KeyChange, OpenStore, change_bytes, puts_to_changes};
use super::usage::UsageCount;

/// A block is closed when it holds this much.
const BLOCK_BYTES: usize = 64 * 1024;
/// How much is written at a time.
const STEP_BYTES: usize = 1024 * 1024;

/// The snapshot of a generation.
#[derive(Debug)]
pub(super) struct KvSnapshot {
    store: Arc<OpenStore>,
    fact: Mutex<Option<SnapshotFact>>,
}

impl KvSnapshot {
    pub(super) fn new(store: Arc<OpenStore>, fact: Option<SnapshotFact>) -> Self {
        let fact = Mutex::new(fact);
        Self { store, fact }
    }

    /// Returns what the snapshot is.
    pub(super) fn info(&self) -> Option<Snapshot> {
        self.fact.lock().map(|fact| fact.info)
    }

    /// Returns the commit of the snapshot; 0 if there is none.
    pub(super) fn commit(&self) -> u64 {
        self.info().map_or(0, |info| info.commit)
    }

    /// Replaces the snapshot.
    pub(super) fn write(
        &self,
        commit: u64,
        end: LogEnd,
        fill: &mut Fill<'_>,
        (garbage, usage): (&GarbageQueue, &UsageCount),
    ) -> Result<()> {
        let last = self.commit();
        if commit < last || commit > end.commit {
            return Err(no_such_snapshot(commit, last, end.commit));
        }
        self.store.check()?;
        let mut writer = SnapshotBlocks::new(&self.store, commit);
        let written = fill(&mut |key, value| writer.push(key, &value));
        let finished = written.and_then(|()| writer.finish());
        let fact = match finished {
            Ok(fact) => fact,
            Err(error) => {
                if writer.is_declared {
                    garbage.push(writer.declared, writer.garbage());
                }
                return Err(error);
            }
        };
        let mut changes = vec![
            self.store.fact(Tag::Snapshot, &fact.encode()),
            self.store.retraction(writer.declared),
        ];
        let before = *self.fact.lock();
        let old = before.map(|before| {
            let old = GarbageFact::Snapshot(before.number);
            let (number, declaration) = self.store.declare(&old);
            changes.push(declaration);
            (number, old)
        });
        usage.commit(&self.store, changes, |usage| {
            usage.map_bytes = fact.info.bytes;
        })?;
        *self.fact.lock() = Some(fact);
        old.into_iter()
            .for_each(|(number, old)| garbage.push(number, old));
        Ok(())
    }

    /// Hands the entries to `visit` in order.
    pub(super) fn read(&self, visit: &mut VisitEntry<'_>) -> Result<()> {
        self.store.check()?;
        let (store, moment) = (&self.store, self.store.moment()?);
        let key = store.keys.only(Tag::Snapshot);
        let value = moment
            .get(&[&key])
            .map_err(failed("reading the snapshot"))?;
        let Some(value) = value.into_iter().flatten().next() else {
            return match self.info() {
                None => Ok(()),
                Some(_) => Err(damaged(&key, "the snapshot is missing")),
            };
        };
        let content = store.cells.settled(&*moment, &key, &value)?;
        let fact = SnapshotFact::decode(&content);
        let fact = fact.ok_or_else(|| damaged(&key, "this is not a snapshot"))?;
        let range = (
            store.keys.numbered(Tag::SnapshotBlock, fact.number),
            store.keys.after(Tag::SnapshotBlock, fact.number),
        );
        let (mut n_blocks, mut n_entries) = (0, 0);
        store.walk(&*moment, range, &mut |key, value| {
            let content = store.cells.settled(&*moment, &key, &value)?;
            n_blocks += 1;
            let mut content = &content[..];
            while !content.is_empty() {
                let entry = take_entry(&mut content);
                let (key, value) = entry.ok_or_else(|| damaged(&key, "entries are not whole"))?;
                n_entries += 1;
                visit(key, value)?;
            }
            Ok(())
        })?;
        match (n_blocks, n_entries) == (fact.n_blocks, fact.info.entries) {
            true => Ok(()),
            false => Err(damaged(&key, "blocks of the snapshot are missing")),
        }
    }
}

fn take_entry<'a>(content: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    Some((take_bytes(content)?, take_bytes(content)?))
}

/// A snapshot that is being written, and does not count yet.
struct SnapshotBlocks<'a> {
    store: &'a OpenStore,
    fact: SnapshotFact,
    block: Vec<u8>,
    last_key: Option<Vec<u8>>,
    waiting: Vec<KeyChange>,
    waiting_bytes: usize,
    /// Under this number it is declared garbage with the first batch.
    declared: u64,
    is_declared: bool,
}

impl<'a> SnapshotBlocks<'a> {
    fn new(store: &'a OpenStore, commit: u64) -> Self {
        let info = Snapshot {
            commit,
            ..Snapshot::default()
        };
        Self {
            store,
            fact: SnapshotFact {
                number: store.new_number(),
                info,
                n_blocks: 0,
            },
            block: Vec::new(),
            last_key: None,
            waiting: Vec::new(),
            waiting_bytes: 0,
            declared: store.new_number(),
            is_declared: false,
        }
    }

    fn garbage(&self) -> GarbageFact {
        GarbageFact::Snapshot(self.fact.number)
    }

    fn push(&mut self, key: Vec<u8>, value: &[u8]) -> Result<()> {
        if self.last_key.as_ref().is_some_and(|last| *last >= key) {
            return Err(Error::invalid("the keys of a snapshot must ascend"));
        }
        put_bytes(&mut self.block, &key);
        put_bytes(&mut self.block, value);
        self.fact.info.entries += 1;
        self.fact.info.bytes += (key.len() + value.len()) as u64;
        self.last_key = Some(key);
        match self.block.len() >= BLOCK_BYTES {
            true => self.close_block(),
            false => Ok(()),
        }
    }

    fn close_block(&mut self) -> Result<()> {
        let (number, block) = (self.fact.number, self.fact.n_blocks);
        let key: Bytes = self.store.keys.part(Tag::SnapshotBlock, number, block);
        let content = std::mem::take(&mut self.block);
        let mut puts = Puts::new();
        let new_number = || self.store.new_number();
        let cells = &self.store.cells;
        cells.put(&mut puts, key, &content, Packing::Zstd, new_number)?;
        self.fact.n_blocks += 1;
        for change in puts_to_changes(puts) {
            self.waiting_bytes += change_bytes(&change);
            self.waiting.push(change);
        }
        match self.waiting_bytes >= STEP_BYTES {
            true => self.write_waiting(),
            false => Ok(()),
        }
    }

    fn write_waiting(&mut self) -> Result<()> {
        let declaration = self.store.declaration(self.declared, &self.garbage());
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        // One after the other: what a crash leaves of a long value is then found by its first key.
        for batch in self.store.cut(waiting, &[declaration]) {
            self.is_declared = true;
            self.store.commit(batch)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<SnapshotFact> {
        if !self.block.is_empty() {
            self.close_block()?;
        }
        self.write_waiting()?;
        Ok(self.fact)
    }
}
