//! The log: its end, what of it is in memory, and appending to it.
//!
//! A group is one batch, which moves the end, too. A group that is larger than a batch is written beyond
//! the end first, in several, and counts when the last batch moves the end.

use std::sync::Arc;

use parking_lot::Mutex;
use trefoil_core::{Error, Result};
use trefoil_storage::parts::dropped;
use trefoil_storage::{Completer, Completion, Group, LogEnd, Record};

use crate::contract::{KvBatch, KvError, KvResult};

use super::block::ItemBlock;
use super::cell::{Packing, Puts};
use super::errors::{failed, unknown};
use super::facts::{EndFact, GarbageFact};
use super::keys::Tag;
use super::recent::RecentBlocks;
use super::record::StoredRecord;
use super::store::{KeyChange, Numbers, OpenStore, puts_to_changes};

/// The log of a generation.
#[derive(Debug)]
pub(super) struct KvLog {
    pub(super) store: Arc<OpenStore>,
    end: Mutex<EndFact>,
    pub(super) recent: Arc<RecentBlocks>,
}

/// A group as it is stored.
#[derive(Debug)]
struct StoredGroup {
    changes: Vec<KeyChange>,
    end: EndFact,
    blocks: Vec<Arc<ItemBlock>>,
    /// The numbers of its long values.
    numbers: std::ops::Range<u64>,
}

impl KvLog {
    pub(super) fn new(store: Arc<OpenStore>, end: EndFact, recent: Arc<RecentBlocks>) -> Self {
        Self {
            store,
            end: Mutex::new(end),
            recent,
        }
    }

    /// Returns where the log ends.
    pub(super) fn end(&self) -> LogEnd {
        self.end.lock().end
    }

    /// Returns how many bytes were ever appended.
    pub(super) fn appended_bytes(&self) -> u64 {
        self.end.lock().n_bytes
    }

    /// Appends a group.
    pub(super) fn append(self: &Arc<Self>, group: &Group) -> Completion {
        let encoded = self.store.check().and_then(|()| self.encode(group));
        let stored = match encoded {
            Ok(stored) => stored,
            Err(error) => return Completion::Now(Err(error)),
        };
        let (completer, completion) = Completion::later();
        let change = self.store.fact(Tag::End, &stored.end.encode());
        if self.store.fits(&stored.changes) {
            self.finish(stored, vec![change], completer);
        } else {
            self.append_in_parts(stored, change, completer);
        }
        completion
    }

    fn encode(&self, group: &Group) -> Result<StoredGroup> {
        let mut end = *self.end.lock();
        let n_values = |record: &Record| record.items.len() + 2;
        let mut numbers = self.store.numbers(group.records.iter().map(n_values).sum());
        let (mut puts, mut blocks) = (Puts::new(), Vec::new());
        for record in &group.records {
            if record.lacks_something() {
                return Err(dropped());
            }
            let is_next = record.first_commit == end.end.commit + 1
                && record.first_position > end.end.position
                && record.n_commits > 0;
            if !is_next {
                return Err(Error::invalid("the group does not continue the log"));
            }
            let gap = record.first_position - end.end.position - 1;
            let cut = ItemBlock::cut(record, gap).into_iter().map(Arc::new);
            let first_block = blocks.len();
            blocks.extend(cut);
            self.encode_record(record, &blocks[first_block..], &mut puts, &mut numbers)?;
            end.end.commit = record.last_commit();
            end.end.position = end.end.position.max(record.end_position() - 1);
        }
        let n_bytes = puts.iter().map(|(key, value)| key.len() + value.len());
        end.n_bytes += n_bytes.sum::<usize>() as u64;
        Ok(StoredGroup {
            changes: puts_to_changes(puts).collect(),
            end,
            blocks,
            numbers: numbers.used(),
        })
    }

    fn encode_record(
        &self,
        record: &Record,
        blocks: &[Arc<ItemBlock>],
        puts: &mut Puts,
        numbers: &mut Numbers<'_>,
    ) -> Result<()> {
        let (cells, keys) = (&self.store.cells, &self.store.keys);
        let mut put =
            |key, content: &[u8]| cells.put(puts, key, content, Packing::Zstd, || numbers.next());
        for block in blocks {
            put(keys.numbered(Tag::Items, block.first), &block.encode())?;
        }
        if !record.changes.is_empty() {
            let key = keys.numbered(Tag::Changes, record.last_commit());
            put(key, &record.changes)?;
        }
        let key = keys.numbered(Tag::Record, record.first_commit);
        put(key, &StoredRecord::of(record).encode())
    }

    /// Commits the last batch of a group, or the only one.
    fn finish(
        self: &Arc<Self>,
        mut stored: StoredGroup,
        last: Vec<KeyChange>,
        completer: Completer,
    ) {
        let mut changes = std::mem::take(&mut stored.changes);
        changes.extend(last);
        let log = Arc::clone(self);
        let done = move |committed: KvResult<()>| {
            log.store.note(&committed);
            completer.complete(match committed {
                Ok(()) => {
                    log.recent.push(stored.blocks);
                    *log.end.lock() = stored.end;
                    Ok(())
                }
                // It may have been on its way when the store was lost.
                Err(KvError::Fenced) => Err(unknown("appending", "another node has the namespace")),
                Err(error) => Err(failed("appending")(error)),
            });
        };
        self.store.kv.commit(KvBatch { changes }, Box::new(done));
    }

    /// Writes the group beyond the end, and then moves the end.
    fn append_in_parts(
        self: &Arc<Self>,
        mut stored: StoredGroup,
        end: KeyChange,
        completer: Completer,
    ) {
        let garbage = GarbageFact::BeyondEnd(stored.numbers.clone());
        let (number, declaration) = self.store.declare(&garbage);
        let changes = std::mem::take(&mut stored.changes);
        let batches = self.store.cut(changes, &[declaration]);
        let last = vec![end, self.store.retraction(number)];
        let parts = Arc::new(Mutex::new(GroupParts {
            left: batches.len(),
            failure: None,
            rest: Some((stored, last, completer)),
        }));
        for changes in batches {
            let (log, parts) = (Arc::clone(self), Arc::clone(&parts));
            let done = move |committed| log.note_part(&parts, committed);
            self.store.kv.commit(KvBatch { changes }, Box::new(done));
        }
    }

    /// Notes how a part of a group ended. When all of them have, the end is moved or stays.
    fn note_part(self: &Arc<Self>, parts: &Mutex<GroupParts>, committed: KvResult<()>) {
        let mut parts = parts.lock();
        parts.left -= 1;
        if let Err(error) = committed {
            parts.failure.get_or_insert(error);
        }
        if parts.left > 0 {
            return;
        }
        let (failure, rest) = (parts.failure.take(), parts.rest.take());
        drop(parts);
        let Some((stored, last, completer)) = rest else {
            return;
        };
        match failure {
            None => self.finish(stored, last, completer),
            Some(error) => {
                // What was written lies where the next group would go: opening clears it.
                self.store.give_up();
                let error = match error {
                    KvError::Fenced => super::errors::lost(),
                    KvError::Unknown(text) | KvError::Unavailable(text) => {
                        failed("writing a part of a group")(KvError::Unavailable(text))
                    }
                    other => failed("writing a part of a group")(other),
                };
                completer.complete(Err(error));
            }
        }
    }
}

/// The parts of a group that are on their way.
#[derive(Debug)]
struct GroupParts {
    left: usize,
    failure: Option<KvError>,
    /// What is to be done when all are there.
    rest: Option<(StoredGroup, Vec<KeyChange>, Completer)>,
}
