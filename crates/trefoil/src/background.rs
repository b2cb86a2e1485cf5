//! Threads for work that callers do not wait for, shared by all databases of a process.
//!
//! There are a few lanes, so that long work of one sort never delays another: leading groups of
//! commits, checkpoints, merges of the index, and upkeep of the log.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use trefoil_core::{Error, Result};

/// What sort of work a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Commit = 0,
    Checkpoint = 1,
    Merge = 2,
    Upkeep = 3,
}

/// The name, the number of threads and the niceness of each lane, in the order of [`Lane`]. Merges
/// and upkeep can wait when the processor is busy.
const LANES: [(&str, usize, i32); 4] = [
    ("trefoil-commit", 8, 0),
    ("trefoil-checkpoint", 1, 0),
    ("trefoil-merge", 1, 5),
    ("trefoil-upkeep", 1, 15),
];

type Job = Box<dyn FnOnce() + Send>;

/// The threads. They end when the last handle is dropped and the jobs handed over are done.
#[derive(Debug)]
pub(crate) struct Background {
    senders: [Mutex<Option<Sender<Job>>>; LANES.len()],
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// How much memory the tails of all databases take together.
    pub(crate) tail_bytes: Arc<AtomicUsize>,
}

impl Background {
    pub(crate) fn start() -> Result<Arc<Self>> {
        let mut threads = Vec::new();
        let mut senders: [Mutex<Option<Sender<Job>>>; LANES.len()] = Default::default();
        for ((name, n_threads, niceness), slot) in LANES.into_iter().zip(&mut senders) {
            let (sender, receiver) = channel::<Job>();
            *slot.get_mut() = Some(sender);
            let receiver = Arc::new(Mutex::new(receiver));
            for _ in 0..n_threads {
                let receiver = Arc::clone(&receiver);
                let thread = std::thread::Builder::new()
                    .name(name.to_owned())
                    .spawn(move || work(&receiver, niceness))
                    .map_err(|error| Error::io("starting a thread", &error))?;
                threads.push(thread);
            }
        }
        Ok(Arc::new(Self {
            senders,
            threads: Mutex::new(threads),
            tail_bytes: Arc::default(),
        }))
    }

    /// Hands over a job.
    pub(crate) fn run(&self, lane: Lane, job: impl FnOnce() + Send + 'static) {
        if let Some(sender) = &*self.senders[lane as usize].lock() {
            // A lane's threads end only after its sender is gone.
            let _ = sender.send(Box::new(job));
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        for sender in &self.senders {
            sender.lock().take();
        }
        let this_thread = std::thread::current().id();
        for thread in self.threads.get_mut().drain(..) {
            // The last handle may be dropped by a job.
            if thread.thread().id() != this_thread {
                let _ = thread.join();
            }
        }
    }
}

fn work(receiver: &Mutex<Receiver<Job>>, niceness: i32) {
    if niceness != 0 {
        let thread = rustix::thread::gettid();
        // A thread that may not be made nicer does the same work.
        let _ = rustix::process::setpriority_process(Some(thread), niceness);
    }
    loop {
        let job = receiver.lock().recv();
        let Ok(job) = job else { return };
        // A job that panics must not take the thread with it that all databases share.
        if std::panic::catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("work in the background panicked");
        }
    }
}
