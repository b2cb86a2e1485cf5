//! Appending a group to the log, and meanwhile preparing the index for it.

use trefoil_core::{Result, both};
use trefoil_storage::{Group, Storage};

use super::staged::Staged;
use crate::index::{Index, Prepared};

/// From so many events on it pays to start a thread for the log: the index is prepared while it
/// waits for the disk.
const EVENTS_FOR_TWO_THREADS: usize = 512;

/// The index takes longer for so many events than the log does.
const MANY_EVENTS: usize = 4096;

/// A group that is durable.
pub(super) struct DurableGroup<'a> {
    index: &'a Index,
    prepared: Prepared,
    /// The events, if they are many. Letting go of them takes as long as adding them.
    events: Vec<Staged>,
}

/// Appends a group and returns when it is durable.
pub(super) fn append<'a>(
    storage: &dyn Storage,
    index: &'a Index,
    group: &Group,
    mut events: Vec<Staged>,
) -> Result<DurableGroup<'a>> {
    let n_events = events.len();
    let prepare = || {
        let prepared = index.prepare(&events, Staged::indexed);
        if n_events < MANY_EVENTS {
            // Now, while the log waits for the disk.
            events.clear();
        }
        prepared
    };
    let pays = n_events >= EVENTS_FOR_TWO_THREADS;
    let (appended, prepared) = both(pays, || storage.append(group), prepare);
    match appended {
        Ok(()) => Ok(DurableGroup {
            index,
            prepared,
            events,
        }),
        Err(error) => {
            index.forget(&prepared);
            Err(error)
        }
    }
}

impl DurableGroup<'_> {
    /// Adds the events to the index. `publish` runs before any reader can see them.
    pub(super) fn add(self, publish: impl FnOnce()) {
        let pays = !self.events.is_empty();
        let let_go = || drop(self.events);
        both(pays, let_go, || self.index.add(&self.prepared, publish));
    }
}
