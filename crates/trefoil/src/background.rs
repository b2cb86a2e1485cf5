//! Threads for work that callers do not wait for, shared by all databases of a process.
//!
//! There are a few lanes, so that long work of one sort never delays another: leading groups of
//! commits, checkpoints, merges of the index, upkeep of the log, conditions that take long, cleaning,
//! and snapshots of the state.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use trefoil_core::{Error, Result};

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::host::Host;
use crate::state::Rows;

/// What sort of work a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Commit = 0,
    Checkpoint = 1,
    Merge = 2,
    Upkeep = 3,
    Condition = 4,
    Clean = 5,
    Snapshot = 6,
}

/// The name, the number of threads and the niceness of each lane, in the order of [`Lane`]. Merges,
/// upkeep and snapshots can wait when the processor is busy.
const LANES: [(&str, usize, i32); 7] = [
    ("trefoil-commit", 8, 0),
    ("trefoil-checkpoint", 1, 0),
    ("trefoil-merge", 1, 5),
    ("trefoil-upkeep", 1, 15),
    ("trefoil-condition", 2, 5),
    ("trefoil-clean", 1, 5),
    ("trefoil-snapshot", 1, 10),
];

/// Entries of state that were read lately take this part of what cached blocks take, besides.
const ROWS_PART: u64 = 8;

type Job = Box<dyn FnOnce() + Send>;

/// The jobs of one lane. Handing one over wakes one thread and nobody else: a channel behind a
/// lock would wake the next to wait for it, too.
#[derive(Default)]
struct Jobs {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = self.state.lock().jobs.len();
        formatter
            .debug_struct("Jobs")
            .field("waiting", &waiting)
            .finish()
    }
}

impl Jobs {
    fn push(&self, job: Job) {
        self.state.lock().jobs.push_back(job);
        self.changed.notify_one();
    }

    /// Ends the threads when the jobs handed over are done.
    fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits for the next job; `None` if there will be none.
    fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            let job = state.jobs.pop_front();
            if job.is_some() || state.is_closed {
                return job;
            }
            self.changed.wait(&mut state);
        }
    }
}

/// The threads. They end when the last handle is dropped and the jobs handed over are done.
#[derive(Debug)]
pub(crate) struct Background {
    lanes: [Arc<Jobs>; LANES.len()],
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The runtime in which callers wait, if they do in one.
    pub(crate) host: OnceLock<Arc<dyn Host>>,
    /// What time it is for all databases.
    pub(crate) clock: Clock,
    /// Wakes databases when something of them is due.
    pub(crate) alarm: Alarm,
    /// How much memory is taken by what all databases have not written to disk yet: the tails of
    /// their indexes, and their entries of state.
    pub(crate) tail_bytes: Arc<AtomicUsize>,
    /// Their entries of state that were read lately.
    pub(crate) rows: Arc<Rows>,
}

impl Background {
    /// Starts the threads, for databases whose caches take `cache_bytes`.
    pub(crate) fn start(cache_bytes: u64, clock: Clock) -> Result<Arc<Self>> {
        let mut threads = Vec::new();
        let lanes: [Arc<Jobs>; LANES.len()] = Default::default();
        for ((name, n_threads, niceness), jobs) in LANES.into_iter().zip(&lanes) {
            for _ in 0..n_threads {
                let jobs = Arc::clone(jobs);
                let thread = std::thread::Builder::new()
                    .name(name.to_owned())
                    .spawn(move || work(&jobs, niceness))
                    .map_err(|error| Error::io("starting a thread", &error))?;
                threads.push(thread);
            }
        }
        Ok(Arc::new(Self {
            lanes,
            threads: Mutex::new(threads),
            host: OnceLock::new(),
            alarm: Alarm::start(clock.clone())?,
            clock,
            tail_bytes: Arc::default(),
            rows: Arc::new(Rows::new(cache_bytes / ROWS_PART)),
        }))
    }

    /// Hands over a job.
    pub(crate) fn run(&self, lane: Lane, job: impl FnOnce() + Send + 'static) {
        self.lanes[lane as usize].push(Box::new(job));
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        for jobs in &self.lanes {
            jobs.close();
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

fn work(jobs: &Jobs, niceness: i32) {
    if niceness != 0 {
        let thread = rustix::thread::gettid();
        // A thread that may not be made nicer does the same work.
        let _ = rustix::process::setpriority_process(Some(thread), niceness);
    }
    while let Some(job) = jobs.next() {
        // A job that panics must not take the thread with it that all databases share.
        if std::panic::catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("work in the background panicked");
        }
    }
}
