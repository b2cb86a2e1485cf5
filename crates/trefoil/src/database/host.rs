//! The asynchronous runtime in which callers wait, as far as the database has to know of it.

use std::fmt::Debug;
use std::sync::Arc;

/// Something that a thread does at the end of its turn. Returns whether it is to be done again at
/// the end of the next one. If it is dropped before it returned `false`, others do it.
pub type TurnWork = Box<dyn FnMut() -> bool + Send>;

/// The asynchronous runtime that hosts the callers of a database. Without one everything works the
/// same, for a little more: threads are woken where none had to be.
pub trait Host: Send + Sync + Debug {
    /// Runs what keeps this thread for about as long as a sync takes, at once. If it is a thread of
    /// the runtime, another one takes its place meanwhile.
    fn block(&self, work: &mut dyn FnMut());

    /// Has `work` done at the end of this thread's turn, if it is a thread that serves connections by
    /// itself, or else hands it back.
    ///
    /// A turn ends when all that could be read without waiting has been read: all tasks of the thread
    /// that were ready have run, and the network has been asked for more. The work keeps the thread
    /// for about as long as a sync takes, and wakes tasks that are mostly its own.
    fn at_end_of_turn(&self, work: TurnWork) -> Option<TurnWork>;

    /// Returns the thread that this is, if it serves connections by itself.
    fn serving_thread(&self) -> Option<Arc<dyn ServingThread>>;
}

/// A thread that serves connections by itself.
pub trait ServingThread: Send + Sync + Debug {
    /// Returns whether this is the thread.
    fn is_here(&self) -> bool;

    /// Has `work` done on the thread soon. It is short, and wakes tasks of the thread.
    fn run(&self, work: Box<dyn FnOnce() + Send>);
}
