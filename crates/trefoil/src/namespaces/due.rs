//! When namespaces that are closed must be opened, because something of them is due.

use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::{Condvar, Mutex};
use trefoil_core::NamespaceId;

/// How long it may take until somebody sees that a time has come.
const PATIENCE: Duration = Duration::from_millis(500);

/// The times at which closed namespaces must be opened, in milliseconds since 1970.
#[derive(Debug, Default)]
pub(super) struct Due {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    times: HashMap<NamespaceId, u64>,
    is_closed: bool,
}

impl Due {
    pub(super) fn note(&self, id: NamespaceId, time: u64) {
        self.state.lock().times.insert(id, time);
        self.changed.notify_all();
    }

    /// The namespace is open, or gone.
    pub(super) fn forget(&self, id: &NamespaceId) {
        self.state.lock().times.remove(id);
    }

    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until something is due; `None` if nobody wants to know any more.
    pub(super) fn wait(&self, now: impl Fn() -> u64) -> Option<Vec<NamespaceId>> {
        let mut state = self.state.lock();
        while !state.is_closed {
            let now = now();
            let due = state.times.extract_if(|_, time| *time <= now);
            let due: Vec<NamespaceId> = due.map(|(id, _)| id).collect();
            if !due.is_empty() {
                return Some(due);
            }
            match state.times.is_empty() {
                true => self.changed.wait(&mut state),
                false => {
                    self.changed.wait_for(&mut state, PATIENCE);
                }
            }
        }
        None
    }
}
