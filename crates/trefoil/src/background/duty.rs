//! Work of one sort that is done by at most one thread at a time, and may be waited for.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// Work of one sort that is done by at most one thread at a time.
#[derive(Debug, Default)]
pub(crate) struct Duty {
    /// Whether the work is waiting for a thread.
    pub(crate) is_scheduled: AtomicBool,
    is_running: Mutex<bool>,
    finished: Condvar,
}

impl Duty {
    /// Does the work on this thread, after whoever is at it.
    pub(crate) fn perform<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut is_running = self.is_running.lock();
        while *is_running {
            self.finished.wait(&mut is_running);
        }
        *is_running = true;
        drop(is_running);
        let _finish = Finish(self);
        work()
    }

    /// Waits until nobody is at it, but not longer than until `deadline`.
    pub(crate) fn wait_until_idle(&self, deadline: Instant) {
        let mut is_running = self.is_running.lock();
        while *is_running
            && !self
                .finished
                .wait_until(&mut is_running, deadline)
                .timed_out()
        {}
    }
}

/// Lets the next one begin, also after a panic.
struct Finish<'a>(&'a Duty);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        *self.0.is_running.lock() = false;
        self.0.finished.notify_all();
    }
}
