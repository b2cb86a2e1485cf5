//! The deadlines of namespaces that are closed: they are opened because something of them is due.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;
use trefoil_core::NamespaceId;

use crate::time::NEVER;
use crate::time::timer::TimerThread;

/// When closed namespaces must be opened.
#[derive(Debug)]
pub(crate) struct ClosedDeadlines {
    set: Mutex<DeadlineSet>,
    timer: Arc<TimerThread>,
}

#[derive(Debug, Default)]
struct DeadlineSet {
    by_id: HashMap<NamespaceId, u64>,
    /// The same in the order of time.
    order: BTreeSet<(u64, NamespaceId)>,
}

impl DeadlineSet {
    fn remove(&mut self, id: &NamespaceId) {
        if let Some((id, deadline)) = self.by_id.remove_entry(id) {
            self.order.remove(&(deadline, id));
        }
    }
}

impl ClosedDeadlines {
    /// No deadlines yet. The timer is told of those to come.
    pub(crate) fn new(timer: Arc<TimerThread>) -> Self {
        let set = Mutex::default();
        Self { set, timer }
    }

    /// Notes when a namespace must be opened.
    pub(crate) fn note(&self, id: NamespaceId, deadline: u64) {
        let mut set = self.set.lock();
        set.remove(&id);
        set.by_id.insert(id.clone(), deadline);
        set.order.insert((deadline, id));
        drop(set);
        self.timer.note(deadline);
    }

    /// The namespace is open, or gone.
    pub(crate) fn forget(&self, id: &NamespaceId) {
        self.set.lock().remove(id);
    }

    /// Returns the first deadline.
    pub(crate) fn first(&self) -> u64 {
        let set = self.set.lock();
        set.order.first().map_or(NEVER, |(deadline, _)| *deadline)
    }

    /// Takes out a namespace whose deadline has come, the first of them.
    pub(crate) fn take_due(&self, now: u64) -> Option<NamespaceId> {
        let mut set = self.set.lock();
        let (deadline, id) = set.order.first()?;
        if *deadline > now {
            return None;
        }
        let id = id.clone();
        set.remove(&id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    #[test]
    fn what_is_due_first_comes_first_and_once() {
        let timer = Arc::new(TimerThread::start(Clock::default()).unwrap());
        let closed = ClosedDeadlines::new(timer);
        let id = |name: &str| NamespaceId::new(name).unwrap();
        for (name, deadline) in [("a", 30), ("b", 10), ("c", 20), ("d", 5), ("b", 25)] {
            closed.note(id(name), deadline);
        }
        closed.forget(&id("d"));
        assert_eq!((closed.first(), closed.take_due(19)), (20, None));
        for name in ["c", "b", "a"] {
            assert_eq!(closed.take_due(100), Some(id(name)));
        }
        assert_eq!((closed.first(), closed.take_due(100)), (NEVER, None));
    }
}
