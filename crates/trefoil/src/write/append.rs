//! Appending a group to the log, and meanwhile preparing the index for it.

use std::time::Duration;

use trefoil_core::{Result, both};
use trefoil_storage::Group;

use super::changes::logged_bytes;
use super::request::{Demand, LetGo};
use super::stage::Front;
use super::staged::Staged;
use crate::index::{Index, Prepared};
use crate::state::{ChangedEntries, ToClean};

/// From this many events on it pays to start a thread for the log: the index is prepared while it
/// waits for the disk.
const EVENTS_FOR_TWO_THREADS: usize = 512;

/// From this many events on, the index takes longer than the log does.
pub(super) const MANY_EVENTS: usize = 4096;

/// Appends a group, and meanwhile finds out where its events go in the index.
pub(super) fn append_and_prepare<T: Send>(
    append: impl FnOnce() -> T + Send,
    index: &Index,
    events: &[Staged<'_>],
) -> (T, Prepared) {
    let prepare = || index.prepare(events, Staged::indexed);
    let pays = events.len() >= EVENTS_FOR_TWO_THREADS;
    both(pays, append, prepare)
}

/// How much a group holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupSize {
    pub(super) n_events: usize,
    /// The bytes of the events.
    pub(super) n_bytes: usize,
    /// The bytes of the changes of state.
    pub(super) n_logged: u64,
}

impl GroupSize {
    pub(super) fn of(group: &Group) -> Self {
        let records = &group.records;
        Self {
            n_events: records.iter().map(|record| record.items.len()).sum(),
            n_bytes: records.iter().map(|record| record.items.n_bytes()).sum(),
            n_logged: records.iter().map(logged_bytes).sum(),
        }
    }
}

/// A group that the storage has, and all that is needed to make it visible once it is durable.
pub(super) struct AppendedGroup {
    pub(super) prepared: Prepared,
    /// Where the next event goes after it, and the generator of random bits.
    pub(super) front: (Front, u64),
    pub(super) entries: ChangedEntries,
    pub(super) to_clean: ToClean,
    pub(super) size: GroupSize,
    /// How long somebody had to wait until it was found out where its events go in the index.
    pub(super) preparing: Duration,
}

impl AppendedGroup {
    /// Takes the events out of what was decided about, if they are many. They are no longer needed.
    pub(super) fn events_to_let_go(&self, decided: &mut [Demand]) -> LetGo {
        match self.size.n_events >= MANY_EVENTS {
            true => decided.iter_mut().filter_map(Demand::take_events).collect(),
            false => Vec::new(),
        }
    }
}

/// A group that is durable and visible.
#[derive(Debug, Default)]
pub(super) struct EndedGroup {
    pub(super) n_bytes: usize,
    /// Its events in the index; those who wait for them are yet to be told.
    pub(super) events: Option<Prepared>,
}

impl EndedGroup {
    /// Returns what those learn who ask for something of the group, and the events, if it went well.
    pub(super) fn parts(ended: Result<Self>) -> (Result<usize>, Option<Prepared>) {
        match ended {
            Ok(Self { n_bytes, events }) => (Ok(n_bytes), events),
            Err(error) => (Err(error), None),
        }
    }
}

/// When a group was appended.
#[derive(Debug, Clone, Copy)]
pub(super) struct AppendTimes {
    /// When the storage got it, by the steady clock.
    pub(super) began: Duration,
    /// How much of the time after that was writing, and not waiting for the disk.
    pub(super) write: Duration,
    /// When the storage had written it.
    pub(super) ended: Duration,
}

impl AppendTimes {
    /// Those of a group of which nothing is known.
    pub(super) fn unknown(now: Duration) -> Self {
        Self {
            began: now,
            write: Duration::ZERO,
            ended: now,
        }
    }
}

/// Adds events to the index. `publish` runs before any reader can see them. `let_go` is what is no
/// longer needed: dropping many events takes as long as adding them.
pub(super) fn add_to_index(
    index: &Index,
    prepared: &Prepared,
    let_go: LetGo,
    publish: impl FnOnce(),
) {
    let pays = !let_go.is_empty();
    both(pays, || drop(let_go), || index.add(prepared, publish));
}
