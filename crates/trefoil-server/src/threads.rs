//! The threads that serve connections of a protocol: each connection stays with one of them.
//!
//! A runtime that shares its tasks out among its threads wakes one of them whenever another has more
//! than one to do. Most requests are so short that this costs more than it saves, and there are
//! enough connections to share the work out by themselves. Whatever takes long must run elsewhere.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Handle, Runtime};
use trefoil::{Error, Result};

/// How many threads serve a protocol unless somebody says so: the others are for the log, for the
/// other protocols and for the system's own work on the network.
pub(crate) fn default_threads() -> usize {
    available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

/// Runtimes of one thread each.
#[derive(Debug)]
pub(crate) struct Threads {
    threads: Vec<Runtime>,
    /// How many connections there were so far.
    n_connections: AtomicUsize,
}

impl Threads {
    /// Starts `n_threads` threads that have the name of their protocol.
    pub(crate) fn start(protocol: &str, n_threads: usize) -> Result<Self> {
        let start = |number| {
            let thread = Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name(format!("trefoil-{protocol}-{number}"))
                .enable_all()
                .build();
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
        thread.map(Runtime::handle)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for thread in self.threads.drain(..) {
            // Waiting for a runtime is not allowed in another one.
            thread.shutdown_background();
        }
    }
}
