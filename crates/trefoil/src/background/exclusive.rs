//! Work that at most one thread does at a time, and that others can wait for.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Work of one kind of one database, such as its checkpoints.
#[derive(Debug, Default)]
pub(crate) struct Exclusive {
    /// Whether the work is waiting for a thread.
    pub(crate) is_scheduled: AtomicBool,
    is_running: Mutex<bool>,
    finished: Condvar,
}

impl Exclusive {
    /// Does the work on this thread, when the thread that does it now has finished.
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

    /// Waits until no thread does the work, for at most `patience` unless others begin it
    /// meanwhile.
    pub(crate) fn wait_until_idle(&self, patience: Duration) {
        let mut is_running = self.is_running.lock();
        while *is_running
            && !self
                .finished
                .wait_for(&mut is_running, patience)
                .timed_out()
        {}
    }
}

/// Lets the next thread begin, also after a panic.
struct Finish<'a>(&'a Exclusive);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        *self.0.is_running.lock() = false;
        self.0.finished.notify_all();
    }
}
