//! Threads for work that callers do not wait for, shared by all databases of a process.
//!
//! There are a few lanes, so that long work of one kind never delays another: leading groups of
//! commits, appending them, checkpoints, merges of the index, upkeep of the log, reads and conditions that take long,
//! removing what has expired, removing garbage, snapshots of the state, opening namespaces of which
//! something is due, pages of subscriptions, and redactions. Databases whose storage may wait have two lanes of
//! their own, one for reads and one for everything behind the scenes; reads that wait for a disk are in the
//! first one, too. Within a lane the databases take turns, and none has all the threads of a lane for
//! what waits, so that one with much to do, or a slow one, does not keep the others waiting.
//!
//! A lane is a queue per database behind one lock. A channel in its place would be one queue for
//! all: a database that hands over thousands of long reads would keep the others waiting for all of
//! them. A channel per database would need a list of those that have jobs, which is what this is.

mod cleaning;
pub(crate) mod deferred;
#[cfg(test)]
mod deferred_tests;
#[cfg(test)]
pub(crate) mod eventually;
pub(crate) mod exclusive;
pub(crate) mod quiet;
#[cfg(test)]
mod quiet_tests;
pub(crate) mod task;
pub(crate) mod write_load;

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use trefoil_core::limits::LONG_READ_QUEUE_MAX;
use trefoil_core::{Error, Result};
use trefoil_storage::BlockCache;

use crate::database::host::{Host, ServingThread};
use crate::state::ReadCache;
use crate::stats::SharedStats;
use crate::time::clock::Clock;
use crate::time::timer::TimerThread;

/// What kind of work a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Commit = 0,
    Checkpoint = 1,
    Merge = 2,
    Upkeep = 3,
    Look = 4,
    Expire = 5,
    Collect = 6,
    Snapshot = 7,
    Open = 8,
    Follow = 9,
    Redact = 10,
    Wait = 11,
    Tend = 12,
    Append = 13,
}

/// What a lane has.
struct LaneSpec {
    name: &'static str,
    n_threads: usize,
    /// How many of them may work for one database at a time.
    per_tenant_max: usize,
    niceness: i32,
}

const fn lane(name: &'static str, n_threads: usize, niceness: i32) -> LaneSpec {
    LaneSpec {
        name,
        n_threads,
        per_tenant_max: n_threads,
        niceness,
    }
}

impl LaneSpec {
    const fn shared_by(mut self, per_tenant_max: usize) -> Self {
        self.per_tenant_max = per_tenant_max;
        self
    }
}

/// The lanes, in the order of [`Lane`]: the name, the number of threads and the niceness of each.
/// Merges, upkeep, garbage and snapshots can wait when the processor is busy.
const LANES: [LaneSpec; 14] = [
    lane("trefoil-commit", 8, 0),
    lane("trefoil-checkpoint", 1, 0),
    lane("trefoil-merge", 1, 5),
    lane("trefoil-upkeep", 1, 15),
    lane("trefoil-look", 4, 5),
    lane("trefoil-expire", 4, 0),
    lane("trefoil-garbage", 1, 5),
    lane("trefoil-snapshot", 1, 10),
    // One that takes long to open must not delay the others.
    lane("trefoil-open", 4, 0),
    lane("trefoil-follow", 4, 0),
    // What is redacted must go soon, whatever else is dropped.
    lane("trefoil-redact", 1, 5),
    // They mostly wait, so that so many cost little: for a storage on a network, or for a disk, which
    // needs many reads at a time to do as much as it can.
    lane("trefoil-wait", 48, 0).shared_by(16),
    lane("trefoil-tend", 12, 5).shared_by(4),
    // One for each thread that leads.
    lane("trefoil-append", 8, 0),
];

/// The lanes that are there for what waits alone. Their threads are started when something does.
const WAITING_LANES: [Lane; 2] = [Lane::Wait, Lane::Tend];

/// The read cache of the state takes this part of what cached blocks take, besides.
const READ_CACHE_PART: u64 = 12;

type Job = Box<dyn FnOnce() + Send>;

/// What tells databases apart.
pub(crate) type Tenant = usize;

/// Whose reads they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadOwner {
    pub(crate) tenant: Tenant,
    /// Whether they may wait, for the storage or for the disk.
    pub(crate) may_wait: bool,
}

/// The jobs of one lane. Handing one over wakes one thread and no other.
#[derive(Default)]
struct Jobs {
    state: Mutex<Waiting>,
    changed: Condvar,
}

/// Databases that have jobs waiting, in turn, and their jobs.
#[derive(Default)]
struct Waiting {
    turns: VecDeque<Tenant>,
    jobs: HashMap<Tenant, VecDeque<Job>>,
    n_jobs: usize,
    /// How many threads work for each database.
    running: HashMap<Tenant, usize>,
    is_closed: bool,
}

impl Waiting {
    fn push(&mut self, tenant: Tenant, job: Job) {
        match self.jobs.entry(tenant) {
            Entry::Occupied(mut jobs) => jobs.get_mut().push_back(job),
            Entry::Vacant(jobs) => {
                jobs.insert(VecDeque::from([job]));
                self.turns.push_back(tenant);
            }
        }
        self.n_jobs += 1;
    }

    /// Takes the next job of a database for which fewer than `running_max` threads work.
    fn pop(&mut self, running_max: usize) -> Option<(Tenant, Job)> {
        let has_thread = |tenant: &Tenant| {
            let n_running = self.running.get(tenant).copied().unwrap_or(0);
            n_running < running_max
        };
        let turn = self.turns.iter().position(has_thread)?;
        let tenant = self.turns.remove(turn)?;
        let Entry::Occupied(mut jobs) = self.jobs.entry(tenant) else {
            return None;
        };
        let job = jobs.get_mut().pop_front()?;
        if jobs.get().is_empty() {
            jobs.remove();
        } else {
            self.turns.push_back(tenant);
        }
        self.n_jobs -= 1;
        *self.running.entry(tenant).or_default() += 1;
        Some((tenant, job))
    }

    /// A job is done. Returns whether another one of its database waits.
    fn finish(&mut self, tenant: Tenant) -> bool {
        if let Entry::Occupied(mut running) = self.running.entry(tenant) {
            *running.get_mut() -= 1;
            if *running.get() == 0 {
                running.remove();
            }
        }
        self.jobs.contains_key(&tenant)
    }
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = self.state.lock().n_jobs;
        formatter
            .debug_struct("Jobs")
            .field("waiting", &waiting)
            .finish()
    }
}

impl Jobs {
    /// Adds a job, unless more than `n_max` of the database would wait. Returns whether it was added.
    fn push(&self, tenant: Tenant, job: Job, n_max: usize) -> bool {
        let mut state = self.state.lock();
        if state.jobs.get(&tenant).map_or(0, VecDeque::len) >= n_max {
            return false;
        }
        state.push(tenant, job);
        drop(state);
        self.changed.notify_one();
        true
    }

    /// Ends the threads when the jobs handed over are done.
    fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits for the next job of a database for which fewer than `running_max` threads work; `None`
    /// if there will be none.
    fn next(&self, running_max: usize) -> Option<(Tenant, Job)> {
        let mut state = self.state.lock();
        loop {
            let job = state.pop(running_max);
            if job.is_some() || state.is_closed && state.n_jobs == 0 {
                return job;
            }
            self.changed.wait(&mut state);
        }
    }

    /// A job is done: another one of its database may begin.
    fn finish(&self, tenant: Tenant) {
        let mut state = self.state.lock();
        let has_more = state.finish(tenant);
        let is_over = state.is_closed && state.n_jobs == 0;
        drop(state);
        if is_over {
            self.changed.notify_all();
        } else if has_more {
            self.changed.notify_one();
        }
    }
}

/// The threads. They end when the last handle is dropped and the jobs handed over are done.
#[derive(Debug)]
pub(crate) struct Background {
    lanes: [Arc<Jobs>; LANES.len()],
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Whether the threads of the lanes for storages that may wait have been started.
    can_wait: Mutex<bool>,
    /// The runtime in which callers wait, if they do in one.
    pub(crate) host: OnceLock<Arc<dyn Host>>,
    /// What time it is for all databases.
    pub(crate) clock: Clock,
    /// What all databases have counted.
    pub(crate) stats: Arc<SharedStats>,
    /// Wakes databases when something of them is due.
    pub(crate) timer: Arc<TimerThread>,
    /// How much memory is taken by what all databases have not written to disk yet: the tails of
    /// their indexes, and their entries of state.
    pub(crate) tail_bytes: Arc<AtomicUsize>,
    /// What their storages have read.
    pub(crate) block_cache: Arc<BlockCache>,
    /// Their entries of state that were read recently.
    pub(crate) read_cache: Arc<ReadCache>,
}

impl Background {
    /// Starts the threads, for databases whose caches take `cache_bytes`.
    pub(crate) fn start(cache_bytes: u64, clock: Clock) -> Result<Arc<Self>> {
        let mut threads = Vec::new();
        let lanes: [Arc<Jobs>; LANES.len()] = Default::default();
        for (lane, jobs) in lanes.iter().enumerate() {
            if WAITING_LANES.iter().all(|other| lane != *other as usize) {
                start_lane(lane, jobs, &mut threads)?;
            }
        }
        Ok(Arc::new(Self {
            lanes,
            threads: Mutex::new(threads),
            can_wait: Mutex::new(false),
            host: OnceLock::new(),
            timer: Arc::new(TimerThread::start(clock.clone())?),
            block_cache: Arc::new(BlockCache::new(cache_bytes)),
            read_cache: Arc::new(ReadCache::new(cache_bytes / READ_CACHE_PART, clock.clone())),
            clock,
            stats: Arc::default(),
            tail_bytes: Arc::default(),
        }))
    }

    /// Hands over a job of which a database has one at a time in this lane: there are no more of them
    /// than namespaces.
    pub(crate) fn run(&self, lane: Lane, tenant: Tenant, job: impl FnOnce() + Send + 'static) {
        self.lanes[lane as usize].push(tenant, Box::new(job), usize::MAX);
    }

    /// Returns the thread that this is, if it serves connections.
    pub(crate) fn serving_thread(&self) -> Option<Arc<dyn ServingThread>> {
        self.host.get()?.serving_thread()
    }

    /// Starts the threads for what waits, if that is not done yet.
    pub(crate) fn expect_waiting(&self) -> Result<()> {
        let mut can_wait = self.can_wait.lock();
        if !*can_wait {
            for lane in WAITING_LANES.map(|lane| lane as usize) {
                start_lane(lane, &self.lanes[lane], &mut self.threads.lock())?;
            }
            *can_wait = true;
        }
        Ok(())
    }

    /// Hands over a read, or a condition, that takes long or may wait. There may be as many of them as
    /// callers.
    pub(crate) fn look(
        &self,
        reader: ReadOwner,
        job: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        let ReadOwner { tenant, may_wait } = reader;
        let lane = match may_wait {
            true => &self.lanes[Lane::Wait as usize],
            false => &self.lanes[Lane::Look as usize],
        };
        if lane.push(tenant, Box::new(job), LONG_READ_QUEUE_MAX) {
            return Ok(());
        }
        Err(Error::Overloaded(format!(
            "{LONG_READ_QUEUE_MAX} long reads and conditions of this namespace are waiting, the limit \
             of their queue"
        )))
    }
}

/// Starts the threads of a lane.
fn start_lane(lane: usize, jobs: &Arc<Jobs>, threads: &mut Vec<JoinHandle<()>>) -> Result<()> {
    let spec = &LANES[lane];
    for _ in 0..spec.n_threads {
        let jobs = Arc::clone(jobs);
        let thread = std::thread::Builder::new()
            .name(spec.name.to_owned())
            .spawn(move || work(&jobs, spec))
            .map_err(|error| Error::io("starting a thread", &error))?;
        threads.push(thread);
    }
    Ok(())
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

fn work(jobs: &Jobs, spec: &LaneSpec) {
    if spec.niceness != 0 {
        let thread = rustix::thread::gettid();
        // A thread that may not be made nicer does the same work.
        let _ = rustix::process::setpriority_process(Some(thread), spec.niceness);
    }
    while let Some((tenant, job)) = jobs.next(spec.per_tenant_max) {
        // A job that panics must not take the thread with it that all databases share.
        if std::panic::catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("work in the background panicked");
        }
        jobs.finish(tenant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn databases_take_turns_and_the_queue_is_bounded() {
        let jobs = Jobs::default();
        let (done, order) = mpsc::channel();
        let push = |tenant: Tenant, n_max| {
            let done = done.clone();
            jobs.push(tenant, Box::new(move || done.send(tenant).unwrap()), n_max)
        };
        for tenant in [1, 1, 1, 2, 1, 3, 2] {
            assert!(push(tenant, 4));
        }
        assert!(!push(1, 4), "four of it are waiting");
        jobs.close();
        while let Some((tenant, job)) = jobs.next(1) {
            job();
            jobs.finish(tenant);
        }
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [1, 2, 3, 1, 2, 1, 1]);
    }

    #[test]
    fn a_slow_database_leaves_threads_to_the_others() {
        let jobs = Jobs::default();
        for tenant in [1, 1, 1, 2] {
            assert!(jobs.push(tenant, Box::new(|| {}), 10));
        }
        let tenant = |jobs: &Jobs| jobs.next(2).unwrap().0;
        // Nothing of the first ends.
        assert_eq!([tenant(&jobs), tenant(&jobs), tenant(&jobs)], [1, 2, 1]);
        assert!(jobs.state.lock().pop(2).is_none(), "it has two threads");
        jobs.finish(1);
        assert_eq!(tenant(&jobs), 1);
    }

    #[test]
    fn long_reads_beyond_the_limit_are_refused() {
        let background = Background::start(0, Clock::default()).unwrap();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let hold = |wait: &Arc<Mutex<mpsc::Receiver<()>>>| {
            let wait = Arc::clone(wait);
            // Ends when the sender is gone.
            move || {
                let _ = wait.lock().recv();
            }
        };
        let reader = |tenant| ReadOwner {
            tenant,
            may_wait: false,
        };
        let n_taken = (0..LONG_READ_QUEUE_MAX + 10)
            .take_while(|_| background.look(reader(1), hold(&wait)).is_ok())
            .count();
        assert!(n_taken >= LONG_READ_QUEUE_MAX, "{n_taken}");
        let refused = background.look(reader(1), || {}).unwrap_err();
        assert!(matches!(refused, Error::Overloaded(_)), "{refused}");
        background.look(reader(2), || {}).unwrap();
        drop(go);
    }
}
