//! The asynchronous runtime in which callers wait, as far as the database has to know of it.

use std::fmt::Debug;

/// The asynchronous runtime that hosts the callers of a database. Without one everything works the
/// same, for a little more: threads are woken where none had to be.
pub trait Host: Send + Sync + Debug {
    /// Runs what keeps this thread for about as long as a sync takes, at once. If it is a thread of
    /// the runtime, another one takes its place meanwhile.
    fn block(&self, work: &mut dyn FnMut());
}
