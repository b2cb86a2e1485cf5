//! The runway: where the leader hands groups to another thread, which appends them one after the other.
//!
//! A group is appended only if the one before it is durable.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use trefoil_core::{Error, Result};
use trefoil_storage::{Group, Storage};

use super::append::AppendTimes;
use crate::time::clock::Clock;

/// Has work done on another thread.
pub(crate) type RunBeside<'a> = dyn Fn(Box<dyn FnOnce() + Send>) + 'a;

/// The leader's end of the runway. The other thread is free when this is dropped.
pub(super) struct Runway {
    shared: Arc<SharedRunway>,
}

/// What became of a group, and when.
pub(super) type Departure = (Result<()>, AppendTimes);

struct SharedRunway {
    clock: Clock,
    state: Mutex<RunwayState>,
    changed: Condvar,
}

#[derive(Default)]
struct RunwayState {
    /// Groups that are to be appended, and where. The storage comes with each of them, so that nobody
    /// keeps it open who has nothing to append.
    waiting: VecDeque<(Arc<dyn Storage>, Group)>,
    gone: VecDeque<Departure>,
    /// Whether nothing more is appended.
    is_closed: bool,
}

impl Runway {
    /// Opens a runway on a thread that `run_beside` finds.
    pub(super) fn open(clock: &Clock, run_beside: &RunBeside<'_>) -> Self {
        let shared = Arc::new(SharedRunway {
            clock: clock.clone(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let beside = Arc::clone(&shared);
        run_beside(Box::new(move || beside.append_all()));
        Self { shared }
    }

    /// Has a group appended after the one before it.
    pub(super) fn hand_over(&self, storage: &Arc<dyn Storage>, group: Group) {
        let mut state = self.shared.state.lock();
        state.waiting.push_back((Arc::clone(storage), group));
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Waits for what became of the first group that was handed over, of those not waited for.
    pub(super) fn wait(&self) -> Departure {
        let SharedRunway { clock, state, .. } = &*self.shared;
        let mut state = state.lock();
        loop {
            if let Some(departure) = state.gone.pop_front() {
                return departure;
            }
            if state.is_closed {
                let lost = Error::result_lost("the thread that appends panicked");
                return (Err(lost), AppendTimes::unknown(clock.steady()));
            }
            self.shared.changed.wait(&mut state);
        }
    }
}

impl Drop for Runway {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl SharedRunway {
    /// Appends what is handed over until the runway is closed, or a group fails.
    fn append_all(&self) {
        let _guard = ClosesRunway(self);
        while let Some((storage, group)) = self.next() {
            let departure = self.append(storage.as_ref(), &group);
            // Whoever learns of it may close the storage.
            drop(storage);
            let has_failed = departure.0.is_err();
            let mut state = self.state.lock();
            state.gone.push_back(departure);
            state.is_closed |= has_failed;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Waits for the next group; `None` if there will be none.
    fn next(&self) -> Option<(Arc<dyn Storage>, Group)> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(next) = state.waiting.pop_front() {
                return Some(next);
            }
            self.changed.wait(&mut state);
        }
    }

    fn append(&self, storage: &dyn Storage, group: &Group) -> Departure {
        let (began, written_before) = (self.clock.steady(), storage.work().writing);
        let appended = storage.append(group).wait();
        let times = AppendTimes {
            began,
            write: storage.work().writing.saturating_sub(written_before),
            ended: self.clock.steady(),
        };
        (appended, times)
    }

    /// Lets go of what is not appended, and of its storage.
    fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.waiting.clear();
        drop(state);
        self.changed.notify_one();
    }
}

/// Closes the runway when the thread that appends leaves it, also if it panics: nobody must wait for
/// it then.
struct ClosesRunway<'a>(&'a SharedRunway);

impl Drop for ClosesRunway<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use trefoil_storage::MemoryStorage;

    use super::*;

    /// Whoever opens the namespace again must find its files free, also if the other thread is late.
    #[test]
    fn a_closed_runway_keeps_no_storage() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let late = Mutex::new(None);
        let runway = Runway::open(&Clock::default(), &|work| *late.lock() = Some(work));
        runway.hand_over(&storage, Group::default());
        assert_eq!(Arc::strong_count(&storage), 2);
        drop(runway);
        assert_eq!(Arc::strong_count(&storage), 1);
        // It finds nothing to append.
        late.into_inner().unwrap()();
    }
}
