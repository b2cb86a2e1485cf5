//! A namespace's log, maps and snapshot in a store, and the runs of its index in objects.
//!
//! `docs/format.md` describes every key and value. The rules behind them:
//!
//! - **The end of the log moves with the group**, in the same batch. A group that is larger than a batch is
//!   written beyond the end before, and counts when the end moves.
//! - **What is written in several steps is declared garbage first**, and the last step takes that
//!   back. So a crash leaves nothing behind that nobody knows of.
//! - **After a batch of which nobody knows what became of it, the storage is of no more use.** Whoever
//!   opens the store again finds the end of the log, and with it the group as a whole or not at all.

mod block;
mod cell;
mod compression;
mod edits;
mod entries;
mod errors;
mod facts;
mod garbage;
mod keys;
mod log;
mod maps;
mod open;
mod packing;
mod reading;
mod recent;
mod record;
mod redo;
mod replay;
mod room;
mod runs;
mod snapshot;
mod store;
mod upkeep;
mod usage;

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use trefoil_core::Result;
use trefoil_storage::{
    Batch, Completion, Fill, Group, GroupLimits, LogEnd, Map, Record, Snapshot, Storage,
    StoredItem, Upkeep, Usage, VisitEntry, VisitItem, VisitLabel,
};

use garbage::GarbageQueue;
use log::KvLog;
use maps::KvMaps;
use packing::PackingState;
use snapshot::KvSnapshot;
use store::OpenStore;
use upkeep::UpkeepState;
use usage::UsageCount;

pub use open::{KvStorageOptions, erase_generation, generations};
pub use room::LogRoom;

/// One generation of a namespace, in a store that is open.
#[derive(Debug)]
pub struct KvStorage {
    store: Arc<OpenStore>,
    log: Arc<KvLog>,
    maps: KvMaps,
    snapshot: KvSnapshot,
    garbage: Arc<GarbageQueue>,
    usage: Arc<UsageCount>,
    upkeep: UpkeepState,
    packing: PackingState,
    /// Held while items are replaced or dropped.
    editing: Mutex<()>,
}

impl Storage for KvStorage {
    fn may_wait(&self) -> bool {
        true
    }

    fn group_limits(&self) -> GroupLimits {
        let limits = GroupLimits::default();
        // With a record that is no larger, a group is one batch.
        let bytes = limits.bytes.min(self.store.limits.batch_bytes / 2);
        GroupLimits { bytes, ..limits }
    }

    fn append(&self, group: &Group) -> Completion {
        self.log.append(group)
    }

    fn end(&self) -> LogEnd {
        self.log.end()
    }

    fn read(&self, positions: &[u64], visit: &mut VisitItem<'_>) -> Result<()> {
        self.log.read(positions, visit)
    }

    fn read_labels(&self, positions: &[u64], visit: &mut VisitLabel<'_>) -> Result<()> {
        self.log.read_labels(positions, visit)
    }

    fn replace_items(&self, stubs: &[StoredItem]) -> Result<()> {
        self.replace(stubs)
    }

    fn drop_items(&self, positions: &[Range<u64>]) -> Result<()> {
        self.drop_all(positions)
    }

    fn replay(
        &self,
        after_commit: u64,
        visit: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        let snapshot = || self.snapshot.commit();
        self.log.replay(after_commit, &snapshot, visit)
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.snapshot.info()
    }

    fn write_snapshot(&self, commit: u64, fill: &mut Fill<'_>) -> Result<()> {
        let counts = (&*self.garbage, &*self.usage);
        self.snapshot.write(commit, self.log.end(), fill, counts)
    }

    fn read_snapshot(&self, visit: &mut VisitEntry<'_>) -> Result<()> {
        self.snapshot.read(visit)
    }

    fn map(&self, name: &str) -> Result<Option<Arc<dyn Map>>> {
        self.maps.map(name)
    }

    fn map_names(&self) -> Result<Vec<String>> {
        self.store.check()?;
        Ok(self.maps.names())
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        self.maps.write(batch)
    }

    fn load(&self, name: &str, fill: &mut Fill<'_>) -> Result<()> {
        self.maps.load(name, fill)
    }

    fn drop_map(&self, name: &str) -> Result<()> {
        self.maps.drop_map(name)
    }

    fn maintain(&self, is_busy: &dyn Fn() -> bool) -> Result<Upkeep> {
        self.keep_up(is_busy())
    }

    fn usage(&self) -> Result<Usage> {
        let usage = self.usage.get();
        let snapshot = self.snapshot.info().map_or(0, |info| info.bytes);
        let log = self.log.appended_bytes();
        let log_bytes = log.saturating_sub(usage.dropped_bytes) + snapshot;
        Ok(Usage {
            log_bytes,
            log_used_bytes: log_bytes,
            map_bytes: usage.map_bytes + self.maps.loaded_bytes(),
            written_map_bytes: usage.map_bytes,
            ..Usage::default()
        })
    }

    fn held_bytes(&self) -> u64 {
        self.log.recent.bytes() as u64 + self.maps.held_bytes()
    }
}
