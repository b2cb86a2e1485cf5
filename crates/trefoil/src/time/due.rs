//! When namespaces that are closed must be opened, because something of them is due.

use std::collections::BTreeSet;
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::{Condvar, Mutex};
use trefoil_core::NamespaceId;

/// How long it may take until somebody sees that a time has come because the clock was set.
const PATIENCE: Duration = Duration::from_millis(500);

/// The times at which closed namespaces must be opened, in milliseconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct Due {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    times: HashMap<NamespaceId, u64>,
    /// The same in the order of time.
    order: BTreeSet<(u64, NamespaceId)>,
    is_closed: bool,
}

impl State {
    fn remove(&mut self, id: &NamespaceId) {
        if let Some((id, time)) = self.times.remove_entry(id) {
            self.order.remove(&(time, id));
        }
    }
}

impl Due {
    pub(crate) fn note(&self, id: NamespaceId, time: u64) {
        let mut state = self.state.lock();
        state.remove(&id);
        state.times.insert(id.clone(), time);
        state.order.insert((time, id));
        self.changed.notify_all();
    }

    /// The namespace is open, or gone.
    pub(crate) fn forget(&self, id: &NamespaceId) {
        self.state.lock().remove(id);
    }

    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until something is due. Answers what was due first; `None` if nobody wants to know any
    /// more.
    pub(crate) fn wait(&self, now: impl Fn() -> u64) -> Option<NamespaceId> {
        let mut state = self.state.lock();
        while !state.is_closed {
            let Some((time, id)) = state.order.first().cloned() else {
                self.changed.wait(&mut state);
                continue;
            };
            let left = time.saturating_sub(now());
            if left == 0 {
                state.remove(&id);
                return Some(id);
            }
            let left = Duration::from_millis(left).min(PATIENCE);
            self.changed.wait_for(&mut state, left);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_first_comes_first_and_once() {
        let due = Due::default();
        let id = |name: &str| NamespaceId::new(name).unwrap();
        for (name, time) in [("a", 30), ("b", 10), ("c", 20), ("d", 5), ("b", 25)] {
            due.note(id(name), time);
        }
        due.forget(&id("d"));
        for name in ["c", "b", "a"] {
            assert_eq!(due.wait(|| 100), Some(id(name)));
        }
        due.close();
        assert_eq!(due.wait(|| 100), None);
    }
}
