//! The threads that serve connections of a protocol: each connection stays with one of them.
//!
//! A runtime that shares its tasks out among its threads wakes one of them whenever another has more
//! than one to do. Most requests are so short that this costs more than it saves, and there are
//! enough connections to share the work out by themselves. It also lets a part of its tasks wait while
//! others run again and again, as soon as more than a few hundred are ready. Here tasks run in the
//! order in which they were woken. Whatever takes long must run elsewhere.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId, available_parallelism};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use trefoil::{Error, Result, ServingThread};

/// How many threads serve a protocol unless somebody says so: the others are for the log, for the
/// other protocols and for the system's own work on the network.
pub(crate) fn default_threads() -> usize {
    available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

/// Threads with a runtime each.
#[derive(Debug)]
pub(crate) struct Threads {
    threads: Vec<Serving>,
    /// How many connections there were so far.
    n_connections: AtomicUsize,
}

thread_local! {
    /// The thread that this is, if it is one of these.
    static CURRENT: RefCell<Option<Arc<dyn ServingThread>>> = const { RefCell::new(None) };
}

/// Returns the thread that this is, if it serves connections.
pub(crate) fn current() -> Option<Arc<dyn ServingThread>> {
    CURRENT.with_borrow(Option::clone)
}

/// Returns whether this thread serves connections.
pub(crate) fn is_serving() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// A thread for others that have something for its tasks.
#[derive(Debug)]
struct TokioThread {
    thread: ThreadId,
    tasks: Handle,
}

impl ServingThread for TokioThread {
    fn is_here(&self) -> bool {
        thread::current().id() == self.thread
    }

    fn run(&self, work: Box<dyn FnOnce() + Send>) {
        self.tasks.spawn(async move { work() });
    }
}

/// A thread with a runtime.
#[derive(Debug)]
struct Serving {
    tasks: Handle,
    /// The thread ends when this is dropped.
    _until: oneshot::Sender<()>,
}

impl Threads {
    /// Starts `n_threads` threads that have the name of their protocol.
    pub(crate) fn start(protocol: &str, n_threads: usize) -> Result<Self> {
        let start = |number| {
            let thread = Serving::start(format!("trefoil-{protocol}-{number}"));
            thread.map_err(|error| Error::io("starting a thread for connections", &error))
        };
        Ok(Self {
            threads: (0..n_threads).map(start).collect::<Result<_>>()?,
            n_connections: AtomicUsize::new(0),
        })
    }

    /// Returns where the next connection is served; `None` if there are no threads.
    pub(crate) fn next(&self) -> Option<&Handle> {
        let number = self.n_connections.fetch_add(1, Ordering::Relaxed);
        let thread = self.threads.get(number % self.threads.len().max(1));
        thread.map(|thread| &thread.tasks)
    }
}

impl Serving {
    fn start(name: String) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (until, ended) = oneshot::channel();
        let tasks = runtime.handle().clone();
        thread::Builder::new().name(name).spawn(move || {
            let this = TokioThread {
                thread: thread::current().id(),
                tasks: runtime.handle().clone(),
            };
            CURRENT.set(Some(Arc::new(this)));
            // It ends when the sender is dropped, which is an error to the receiver.
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        })?;
        Ok(Self {
            tasks,
            _until: until,
        })
    }
}
