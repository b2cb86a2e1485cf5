//! What is known of a database as a whole.

use trefoil_core::{Result, Selection, Timestamp};

use super::engine::Engine;
use crate::index::TermKind;
use crate::read::listing::last_of;
use crate::removal::removed_in_total;

/// What is known of a database as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Info {
    /// How many events there are.
    pub events: u64,
    /// How many streams there are.
    pub streams: u64,
    /// The number of the last commit.
    pub commit: u64,
    /// The global position of the last event; 0 if there is none.
    pub head: u64,
    /// The time of the last event.
    pub last_activity: Option<Timestamp>,
    /// Bytes of the log on disk, room ahead included.
    pub log_bytes: u64,
    /// Bytes of the log that hold events.
    pub log_used_bytes: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
    /// Bytes of the state on disk, without its snapshot, which is a part of the log.
    pub state_bytes: u64,
}

impl Info {
    /// Returns the counts and times of an engine.
    pub(super) fn of(engine: &Engine) -> Result<Self> {
        let all = engine
            .index
            .layers()
            .summary(TermKind::All, "")?
            .unwrap_or_default();
        let last = last_of(engine, Selection::all())?;
        let removed = removed_in_total(&engine.store.read())?;
        let lost = engine.removal.lost.read().all;
        let usage = engine.storage.usage()?;
        Ok(Self {
            events: (all.n + lost.events).saturating_sub(removed.events),
            streams: lost.n_streams(all.new_streams, removed.streams),
            commit: engine.writer.last_commit(),
            head: engine.writer.head(),
            last_activity: last.map(|(_, time)| time),
            log_bytes: usage.log_bytes,
            log_used_bytes: usage.log_used_bytes,
            index_bytes: usage.map_bytes - usage.written_map_bytes,
            state_bytes: usage.written_map_bytes,
        })
    }
}
