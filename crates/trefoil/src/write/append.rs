//! Appending a group to the log, and meanwhile preparing the index for it.

use trefoil_core::{Result, both};
use trefoil_storage::{Group, Storage};

use super::queue::LetGo;
use super::staged::Staged;
use crate::index::{Index, Prepared};

/// From so many events on it pays to start a thread for the log: the index is prepared while it
/// waits for the disk.
const EVENTS_FOR_TWO_THREADS: usize = 512;

/// A group that is durable.
pub(super) struct DurableGroup<'a> {
    index: &'a Index,
    prepared: Prepared,
}

/// Appends a group and returns when it is durable.
pub(super) fn append<'a>(
    storage: &dyn Storage,
    index: &'a Index,
    group: &Group,
    events: &[Staged<'_>],
) -> Result<DurableGroup<'a>> {
    let prepare = || index.prepare(events, Staged::indexed);
    let pays = events.len() >= EVENTS_FOR_TWO_THREADS;
    let (appended, prepared) = both(pays, || storage.append(group), prepare);
    match appended {
        Ok(()) => Ok(DurableGroup { index, prepared }),
        Err(error) => {
            index.forget(&prepared);
            Err(error)
        }
    }
}

impl DurableGroup<'_> {
    /// Adds the events to the index. `publish` runs before any reader can see them. `let_go` is what
    /// nobody needs any more: letting go of many events takes as long as adding them.
    pub(super) fn add(self, let_go: LetGo, publish: impl FnOnce()) {
        let pays = !let_go.is_empty();
        let let_go = || drop(let_go);
        both(pays, let_go, || self.index.add(&self.prepared, publish));
    }
}
