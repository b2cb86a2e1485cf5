//! The leader's loop: take a group, stage it, sync it, index it, publish it, answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use trefoil_core::{Committed, Error, Event, Result, Timestamp};
use trefoil_storage::Storage;

use super::queue::{Queue, Request, Work};
use super::stage::{Front, Stage};
use crate::index::{Effort, Index, Layers};
use crate::read::{Found, Selection, fetch, first_match};
use crate::state::Store;
use crate::stats::Stats;

/// Writes the commits of one namespace, one group at a time.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) queue: Queue,
    storage: Arc<dyn Storage>,
    index: Arc<Index>,
    store: Arc<Store>,
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
        store: Arc<Store>,
        front: Front,
        seed: u64,
    ) -> Self {
        Self {
            queue: Queue::default(),
            storage,
            index,
            store,
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

    /// Freezes what was added to index and state since the last checkpoint, between two groups.
    /// Answers whether there is something to be written.
    pub(crate) fn freeze(&self) -> bool {
        let front = self.front.lock();
        freeze(&self.index, &self.store, front.0.commit, front.0.clock)
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
        let layers = self.index.layers();
        let search = |selection: Selection<'_>, from: u64, head: u64| -> Result<Option<u64>> {
            search(self.storage.as_ref(), &layers, selection, from, head)
        };
        let mut stage = Stage::new(
            (&self.index, &self.store),
            (&find, &search),
            front,
            now(),
            random,
        );
        let answers = Answers::of(requests, &mut stage);
        if stage.is_empty() {
            answers.send();
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
            answers.send_failure(&error);
            return 0;
        }
        let synced = Instant::now();
        let entries = stage.take_entries();
        let indexed = stage.indexed();
        self.store.apply(entries, || {
            self.index.add(&indexed, || self.publish(end));
        });
        *guard = (end, stage.random());
        self.changed.notify(usize::MAX);
        drop(guard);
        let waited = (sync_started - started) + synced.elapsed();
        self.stats.record_group(
            answers.0.len(),
            n_events,
            bytes,
            synced - sync_started,
            waited,
        );
        answers.send();
        bytes
    }

    fn publish(&self, end: Front) {
        self.commit.store(end.commit, Ordering::Release);
        self.head.store(end.position, Ordering::Release);
    }
}

/// The answers to the requests of a group, to be sent once it is known what became of it.
struct Answers(Vec<Answer>);

struct Answer {
    reply: oneshot::Sender<Result<Committed>>,
    answer: Result<Committed>,
    /// Whether something was staged before, on which the answer may depend.
    depends_on_stage: bool,
}

impl Answers {
    /// Stages the requests of a group.
    fn of(requests: &mut Vec<Request>, stage: &mut Stage<'_>) -> Self {
        let answers = requests.drain(..).map(|Request { work, reply }| Answer {
            reply,
            depends_on_stage: !stage.is_empty(),
            answer: match work {
                Work::Commit(commit) => stage.commit(commit),
                Work::Import(events) => stage.import(events),
            },
        });
        Self(answers.collect())
    }

    fn send(self) {
        for Answer { reply, answer, .. } in self.0 {
            // Whoever asked may have gone.
            drop(reply.send(answer));
        }
    }

    /// The group could not be written: only what failed for other reasons is certain.
    fn send_failure(self, error: &Error) {
        for mut one in self.0 {
            let is_certain = !one.depends_on_stage && one.answer.is_err();
            if !is_certain {
                one.answer = Err(error.clone());
            }
            drop(one.reply.send(one.answer));
        }
    }
}

/// Freezes what was added to index and state, unless there is nothing or something is frozen
/// already. Answers whether there is something to be written.
pub(crate) fn freeze(index: &Index, store: &Store, commit: u64, clock: Timestamp) -> bool {
    if index.is_frozen() {
        return true;
    }
    if index.is_tail_empty() && store.is_empty() {
        return false;
    }
    store.freeze();
    index.freeze(commit, clock);
    true
}

/// The first selected event between two positions, however long it takes to find out. There are
/// few positions: those that were written since the commit's conditions were looked into.
fn search(
    storage: &dyn Storage,
    layers: &Layers,
    selection: Selection<'_>,
    from: u64,
    head: u64,
) -> Result<Option<u64>> {
    let mut from = from;
    loop {
        let effort = Effort::new(usize::MAX);
        match first_match(storage, layers, selection, from, head, &effort)? {
            Found::Match(position) => return Ok(Some(position)),
            Found::Paused(position) => from = position,
            Found::Nothing => return Ok(None),
        }
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
