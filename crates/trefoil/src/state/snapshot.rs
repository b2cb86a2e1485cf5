//! Snapshots: the entries as of a checkpoint, kept by the storage outside of its maps, so that the log
//! may forget the changes that led to them.
//!
//! The map of a checkpoint is the state as of its commit. A snapshot is taken from it when the log
//! has more bytes of changes than are worth keeping. If the map is lost, or behind the snapshot, it
//! is made again from the snapshot and the changes after it.

use std::sync::Arc;

use trefoil_core::{Direction, Result};
use trefoil_storage::{Batch, Map, Storage};

use super::store::{Logged, MAP, StateStore};
use crate::index::{MANIFEST_MAP, damaged_maps};

/// The key beside the index's manifest that says how many bytes of changes the log has.
const KEY: &[u8] = b"state";

/// It is time for a snapshot when the log has this many bytes of changes since the last one, and so
/// many times as many as that one has of entries.
const LOGGED_BYTES_MIN: u64 = 8 * 1024 * 1024;
const LOGGED_TIMES: u64 = 2;
/// Entries take at least one part in about this many of their bytes in a map.
const PACKED_TIMES: u64 = 4;
/// How many bytes of entries are written to the map at a time when it is made again.
const RESTORE_BYTES: usize = 4 * 1024 * 1024;

/// How many bytes of changes the log has at the last checkpoint.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Checkpointed {
    /// The commit of the snapshot since which they are counted.
    snapshot: u64,
    change_bytes: u64,
}

/// Returns the commit of the snapshot; 0 if there is none.
pub(crate) fn snapshot_commit(storage: &dyn Storage) -> u64 {
    storage.snapshot().map_or(0, |snapshot| snapshot.commit)
}

/// Returns how many bytes of the log changes take at the last checkpoint.
pub(super) fn logged(storage: &dyn Storage) -> Result<Logged> {
    let map = storage.map(MANIFEST_MAP)?;
    let value = map.map(|map| map.get(KEY)).transpose()?.flatten();
    let Some(value) = value else {
        return Ok(Logged::default());
    };
    let checkpointed: Checkpointed = serde_json::from_slice(&value)
        .map_err(|error| damaged_maps(format!("the bytes of changes are unreadable: {error}")))?;
    // A snapshot that is newer was taken of that very checkpoint.
    let bytes = match checkpointed.snapshot == snapshot_commit(storage) {
        true => checkpointed.change_bytes,
        false => 0,
    };
    Ok(Logged {
        now: bytes,
        frozen: bytes,
        written: bytes,
        live: 0,
    })
}

impl StateStore {
    /// Adds to the batch of a checkpoint how many bytes of changes the log has.
    pub(super) fn fill_logged(&self, batch: &mut Batch) {
        let checkpointed = Checkpointed {
            snapshot: snapshot_commit(self.storage.as_ref()),
            change_bytes: self.recent.lock().logged.frozen,
        };
        if let Ok(value) = serde_json::to_vec(&checkpointed) {
            batch.put(MANIFEST_MAP, KEY, value);
        }
    }

    /// Returns whether the log has so many bytes of changes that it is time for a snapshot.
    pub(crate) fn is_snapshot_due(&self) -> bool {
        let limit = self.snapshot_limit();
        self.snapshot_debt() >= limit
    }

    /// Returns how many bytes of changes the log has that the next snapshot would make superfluous.
    pub(crate) fn snapshot_debt(&self) -> u64 {
        self.recent.lock().logged.written
    }

    /// Returns with how many of them it is time for a snapshot.
    pub(crate) fn snapshot_limit(&self) -> u64 {
        let last = self.storage.snapshot().unwrap_or_default();
        // The state may be much smaller by now.
        let maps = self
            .storage
            .usage()
            .map_or(u64::MAX, |usage| usage.map_bytes);
        let state = last.bytes.min(maps.saturating_mul(PACKED_TIMES));
        LOGGED_BYTES_MIN.max(state.saturating_mul(LOGGED_TIMES))
    }

    /// Returns whether the log has any changes that a snapshot would make superfluous.
    pub(crate) fn has_changed_since_snapshot(&self) -> bool {
        self.recent.lock().logged.now > 0
    }

    /// Returns the map, once there is one.
    fn map(&self) -> Option<Arc<dyn Map>> {
        let recent = self.recent.lock();
        recent.map.as_ref().map(|cached| Arc::clone(&cached.map))
    }

    /// Returns the entries of the map at the last checkpoint, which is that of `commit`; `None` if
    /// there is no map yet. No checkpoint is being written.
    pub(crate) fn moment(&self, commit: u64) -> Option<SnapshotMoment> {
        let recent = self.recent.lock();
        Some(SnapshotMoment {
            commit,
            logged: recent.logged.written,
            map: Arc::clone(&recent.map.as_ref()?.map),
        })
    }

    /// Makes the entries of a moment the snapshot. Gives up when `go_on`, which is asked before each
    /// entry, fails.
    pub(crate) fn write_snapshot(
        &self,
        moment: &SnapshotMoment,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        self.storage.write_snapshot(moment.commit, &mut |sink| {
            let mut entries = moment.map.scan(&[], &[], Direction::Forwards);
            entries.try_for_each(|entry| {
                go_on()?;
                let (key, value) = entry?;
                sink(key.to_vec(), value.to_vec())
            })
        })?;
        let logged = &mut self.recent.lock().logged;
        for bytes in [&mut logged.now, &mut logged.frozen, &mut logged.written] {
            *bytes = bytes.saturating_sub(moment.logged);
        }
        Ok(())
    }

    /// Makes the map what the snapshot of `source` is. What is cut short is done again at the next
    /// opening.
    pub(crate) fn restore(&self, source: &dyn Storage) -> Result<()> {
        let map = self.map();
        let scan = map
            .iter()
            .flat_map(|map| map.scan(&[], &[], Direction::Forwards));
        let mut old = scan.peekable();
        let mut writes = Writes::new(self.storage.as_ref());
        source.read_snapshot(&mut |key, value| {
            while let Some(before) = old.next_if(|old| !matches!(old, Ok((old, _)) if old > key)) {
                let (old, before) = before?;
                if old != key {
                    writes.set(old.to_vec(), None)?;
                } else if before == value {
                    return Ok(());
                }
            }
            writes.set(key.to_vec(), Some(value.to_vec()))
        })?;
        old.try_for_each(|old| writes.set(old?.0.to_vec(), None))?;
        writes.finish()?;
        self.recent
            .lock()
            .open(self.storage.as_ref(), &self.read_cache)?;
        self.find_removals()
    }
}

/// The entries of the map at one moment.
pub(crate) struct SnapshotMoment {
    commit: u64,
    /// How many bytes of the log changes take since the last snapshot.
    logged: u64,
    map: Arc<dyn Map>,
}

/// Changes of the map that are written some at a time.
struct Writes<'a> {
    storage: &'a dyn Storage,
    batch: Batch,
    bytes: usize,
}

impl<'a> Writes<'a> {
    fn new(storage: &'a dyn Storage) -> Self {
        Self {
            storage,
            batch: Batch::default(),
            bytes: 0,
        }
    }

    fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<()> {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
        self.batch.changes.push((MAP.to_owned(), key, value));
        if self.bytes < RESTORE_BYTES {
            return Ok(());
        }
        self.bytes = 0;
        self.storage.write(&std::mem::take(&mut self.batch))
    }

    fn finish(self) -> Result<()> {
        self.storage.write(&self.batch)
    }
}
