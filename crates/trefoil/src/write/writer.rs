//! The leader's loop: take a group, stage it, sync it, index it, publish it, answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use trefoil_core::{Committed, Error, Event, Result, Timestamp};
use trefoil_storage::Storage;

use super::queue::{Queue, Request, Work};
use super::stage::{Front, Stage};
use crate::index::Index;
use crate::read::fetch;
use crate::stats::Stats;

/// Writes the commits of one namespace, one group at a time.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) queue: Queue,
    storage: Arc<dyn Storage>,
    index: Arc<Index>,
    /// Where the next event goes, and the state of the generator of random bits. Held by the
    /// leader.
    front: Mutex<(Front, u64)>,
    /// The global position of the last durable event that readers may see.
    head: AtomicU64,
    /// The number of the last durable commit.
    commit: AtomicU64,
    /// Notified whenever `head` has grown.
    pub(crate) changed: event_listener::Event,
    pub(crate) stats: Stats,
}

impl Writer {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        index: Arc<Index>,
        front: Front,
        seed: u64,
    ) -> Self {
        Self {
            queue: Queue::default(),
            storage,
            index,
            front: Mutex::new((front, seed)),
            head: AtomicU64::new(front.position),
            commit: AtomicU64::new(front.commit),
            changed: event_listener::Event::new(),
            stats: Stats::default(),
        }
    }

    /// The global position of the last durable event.
    pub(crate) fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// The number of the last durable commit.
    pub(crate) fn last_commit(&self) -> u64 {
        self.commit.load(Ordering::Acquire)
    }

    /// Freezes the tail between two groups. Answers whether there is one to be written.
    pub(crate) fn freeze(&self) -> bool {
        let front = self.front.lock();
        self.index.freeze(front.0.commit, front.0.clock)
    }

    /// Writes up to `n_groups` groups. Answers whether more is waiting; then somebody else must
    /// lead. `after_group` is called after each group, with the number of bytes it wrote.
    pub(crate) fn lead(&self, n_groups: usize, after_group: &dyn Fn(usize)) -> bool {
        let _guard = LeaderGuard(&self.queue);
        let mut group = Vec::new();
        for _ in 0..n_groups {
            if !self.queue.next_group(&mut group) {
                return false;
            }
            let bytes = self.write_group(&mut group);
            after_group(bytes);
        }
        self.queue.step_down()
    }

    fn write_group(&self, requests: &mut Vec<Request>) -> usize {
        let started = Instant::now();
        let mut guard = self.front.lock();
        let (front, random) = *guard;
        if let Err(error) = self.index.wait_for_room() {
            refuse(requests, &error);
            return 0;
        }
        let find = |position: u64| -> Result<Event> { fetch(self.storage.as_ref(), position) };
        let mut stage = Stage::new(&self.index, &find, front, now(), random);
        let mut answers = Vec::with_capacity(requests.len());
        for Request { work, reply } in requests.drain(..) {
            let depends_on_stage = !stage.is_empty();
            let answer = match work {
                Work::Commit(commit) => stage.commit(commit),
                Work::Import(events) => stage.import(events),
            };
            answers.push((reply, answer, depends_on_stage));
        }
        if stage.is_empty() {
            answers
                .into_iter()
                .for_each(|(reply, answer, _)| drop(reply.send(answer)));
            return 0;
        }
        let (group, end) = stage.finish();
        let bytes: usize = group
            .records
            .iter()
            .map(|record| record.items.n_bytes())
            .sum();
        let n_events: usize = group.records.iter().map(|record| record.items.len()).sum();
        let sync_started = Instant::now();
        if let Err(error) = self.storage.append(group) {
            for (reply, answer, depends_on_stage) in answers {
                let is_certain = !depends_on_stage && answer.is_err();
                drop(reply.send(if is_certain {
                    answer
                } else {
                    Err(error.clone())
                }));
            }
            return 0;
        }
        let synced = Instant::now();
        self.index.add(&stage.indexed(), || self.publish(end));
        *guard = (end, stage.random());
        self.changed.notify(usize::MAX);
        drop(guard);
        let waited = (sync_started - started) + synced.elapsed();
        self.stats.record_group(
            answers.len(),
            n_events,
            bytes,
            synced - sync_started,
            waited,
        );
        answers
            .into_iter()
            .for_each(|(reply, answer, _)| drop(reply.send(answer)));
        bytes
    }

    fn publish(&self, end: Front) {
        self.commit.store(end.commit, Ordering::Release);
        self.head.store(end.position, Ordering::Release);
    }
}

/// Closes the queue if its leader panics: its callers would wait for ever otherwise.
struct LeaderGuard<'a>(&'a Queue);

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .abandon(Error::Poisoned("the writer panicked".into()));
        }
    }
}

fn refuse(requests: &mut Vec<Request>, error: &Error) {
    for Request { reply, .. } in requests.drain(..) {
        drop(reply.send(Err::<Committed, _>(error.clone())));
    }
}

/// The wall clock. What the server does with it never goes backwards: see [`Stage`].
fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
