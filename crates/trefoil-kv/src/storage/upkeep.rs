//! Work that can wait: garbage is removed, changes are dropped that the snapshot has, records of which
//! nothing is left but the numbers of their commits become one, and blocks of items are packed.

use parking_lot::Mutex;
use trefoil_core::{Direction, Result};
use trefoil_storage::Upkeep;

use super::KvStorage;
use super::cell::{Packing, Puts};
use super::errors::{damaged, failed};
use super::facts::encode_merged;
use super::garbage::removals;
use super::keys::{Tag, number_of};
use super::record::StoredRecord;
use super::store::{KeyChange, OpenStore, change_bytes, puts_to_changes};

/// How much one step looks at.
const STEP_BYTES: usize = 256 * 1024;
/// A record takes no more others in when its commits take this much.
const MERGED_BYTES_MAX: usize = 16 * 1024;
/// With this much to be removed, it is removed however busy the writer.
const GARBAGE_MAX: usize = 16;

/// How far it has come.
#[derive(Debug)]
pub(super) struct UpkeepState {
    /// Changes up to this commit were dropped, as far as this process knows.
    dropped: Mutex<u64>,
    merged: Mutex<MergeProgress>,
}

/// How far records were merged.
#[derive(Debug)]
struct MergeProgress {
    /// Up to this commit none is looked at again.
    up_to: u64,
    /// All were, as far as this process knows, that this snapshot allows.
    for_snapshot: u64,
}

impl UpkeepState {
    pub(super) fn new(merged: u64) -> Self {
        let merged = MergeProgress {
            up_to: merged,
            for_snapshot: 0,
        };
        Self {
            dropped: Mutex::new(0),
            merged: Mutex::new(merged),
        }
    }
}

impl KvStorage {
    /// Does one step.
    pub(super) fn keep_up(&self, is_busy: bool) -> Result<Upkeep> {
        self.store.check()?;
        let snapshot = self.snapshot.commit();
        let n_garbage = self.garbage.len();
        let has_changes = *self.upkeep.dropped.lock() < snapshot;
        if is_busy && n_garbage < GARBAGE_MAX {
            return Ok(
                match n_garbage > 0 || has_changes || self.is_packing_due() {
                    true => Upkeep::Waiting,
                    false => Upkeep::Done,
                },
            );
        }
        if n_garbage > 0 {
            self.garbage.step(&self.store, self.log.end())?;
            return Ok(Upkeep::More);
        }
        if has_changes {
            if self.drop_changes(snapshot)? {
                *self.upkeep.dropped.lock() = snapshot;
            }
            return Ok(Upkeep::More);
        }
        if self.merge_records(snapshot)? {
            return Ok(Upkeep::More);
        }
        match self.is_packing_due() {
            true => self.pack().map(|()| Upkeep::More),
            false => Ok(Upkeep::Done),
        }
    }

    /// Drops some changes of records up to a commit. Returns whether none is left.
    fn drop_changes(&self, commit: u64) -> Result<bool> {
        let keys = &self.store.keys;
        let (from, to) = (
            keys.numbered(Tag::Changes, 0),
            keys.after(Tag::Changes, commit),
        );
        let page = self
            .store
            .kv
            .scan(&from, &to, Direction::Forwards, STEP_BYTES, false);
        let page = page.map_err(failed("dropping changes"))?;
        let n_bytes: usize = page
            .entries
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        let mut changes: Vec<KeyChange> = Vec::new();
        for (key, value) in page.entries {
            changes.extend(removals(&self.store, key, &value));
        }
        if changes.is_empty() {
            return Ok(true);
        }
        let counted = self.usage.count(&self.store, |usage| {
            usage.dropped_bytes += n_bytes as u64;
        });
        for batch in self.store.cut(changes, &[counted]) {
            self.store.commit(batch)?;
        }
        Ok(!page.has_more)
    }

    /// Merges some records up to a commit. Returns whether there may be more.
    fn merge_records(&self, commit: u64) -> Result<bool> {
        let mut progress = self.upkeep.merged.lock();
        if progress.for_snapshot >= commit {
            return Ok(false);
        }
        let keys = &self.store.keys;
        let from = keys.after(Tag::Record, progress.up_to);
        let to = keys.after(Tag::Record, commit);
        let page = self
            .store
            .kv
            .scan(&from, &to, Direction::Forwards, STEP_BYTES, false);
        let page = page.map_err(failed("merging records"))?;
        let mut merging = Merging::default();
        for (key, value) in &page.entries {
            let content = self.store.cells.settled(&*self.store.kv, key, value)?;
            let record = StoredRecord::decode(number_of(key), &content);
            let record = record.ok_or_else(|| damaged(key, "this is not a record"))?;
            if record.last_commit() <= commit {
                let removed = removals(&self.store, key.clone(), value);
                merging.push(&self.store, record, removed)?;
            }
        }
        let up_to = merging.up_to(page.has_more).unwrap_or(progress.up_to);
        merging.end_run(&self.store)?;
        if up_to != progress.up_to {
            merging
                .batches
                .push(vec![self.store.fact(Tag::Merged, &encode_merged(up_to))]);
        }
        self.store.commit_together(merging.batches)?;
        progress.up_to = up_to;
        if !page.has_more {
            progress.for_snapshot = commit;
        }
        Ok(page.has_more)
    }
}

/// Records that become one, and those that did.
#[derive(Debug, Default)]
struct Merging {
    /// The last record, and the removals of those that it has taken in.
    open: Option<(StoredRecord, Vec<KeyChange>)>,
    n_records: usize,
    /// What is to be committed, one batch for each record that took others in.
    batches: Vec<Vec<KeyChange>>,
}

impl Merging {
    /// Adds the next record, which `removed` removes.
    fn push(
        &mut self,
        store: &OpenStore,
        record: StoredRecord,
        removed: Vec<KeyChange>,
    ) -> Result<()> {
        let bytes_max = store.cells.part_bytes().min(MERGED_BYTES_MAX) / 2;
        if let Some((last, changes)) = &mut self.open {
            let n_bytes = changes.iter().chain(&removed).map(change_bytes);
            let n_bytes = n_bytes.sum::<usize>() + last.commits.len() + record.commits.len();
            if n_bytes <= bytes_max && last.absorb(&record) {
                changes.extend(removed);
                return Ok(());
            }
        }
        self.end_run(store)?;
        self.n_records += 1;
        self.open = Some((record, Vec::new()));
        Ok(())
    }

    /// Ends with the last record, if there is one.
    fn end_run(&mut self, store: &OpenStore) -> Result<()> {
        let Some((record, mut changes)) = self.open.take() else {
            return Ok(());
        };
        if changes.is_empty() {
            return Ok(());
        }
        let key = store.keys.numbered(Tag::Record, record.first_commit);
        let mut puts = Puts::new();
        let number = || store.new_number();
        let content = record.encode();
        store
            .cells
            .put(&mut puts, key, &content, Packing::Zstd, number)?;
        changes.extend(puts_to_changes(puts));
        self.batches.push(changes);
        Ok(())
    }

    /// Returns up to which commit no record will take in another one.
    fn up_to(&self, has_more: bool) -> Option<u64> {
        let (last, _) = self.open.as_ref()?;
        // With nothing before it, it is as large as it can become.
        let may_grow = last.n_items == 0 && (self.n_records > 1 || !has_more);
        Some(match may_grow {
            true => last.first_commit - 1,
            false => last.last_commit(),
        })
    }
}
