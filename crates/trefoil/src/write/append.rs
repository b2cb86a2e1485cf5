//! Appending a group to the log, and meanwhile preparing the index for it.

use trefoil_core::Result;
use trefoil_storage::{Group, Storage};

use super::staged::Staged;
use crate::index::{Index, Prepared};

/// From so many events on it pays to start a thread for the log.
const EVENTS_FOR_TWO_THREADS: usize = 512;

/// Appends a group and returns when it is durable, with what the index needs to add its events.
/// They are let go of: that takes as long as much else, and nobody waits for it here.
pub(super) fn append(
    storage: &dyn Storage,
    index: &Index,
    group: &Group,
    events: Vec<Staged>,
) -> Result<Prepared> {
    let prepare = |events: Vec<Staged>| index.prepare(&events, Staged::indexed);
    if events.len() < EVENTS_FOR_TWO_THREADS {
        storage.append(group)?;
        return Ok(prepare(events));
    }
    std::thread::scope(|scope| {
        let append = || storage.append(group);
        let appending = std::thread::Builder::new().spawn_scoped(scope, append);
        let prepared = prepare(events);
        let appended = match appending.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(appended)) => appended,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // No thread was to be had.
            Err(_) => append(),
        };
        match appended {
            Ok(()) => Ok(prepared),
            Err(error) => {
                index.forget(&prepared);
                Err(error)
            }
        }
    })
}
