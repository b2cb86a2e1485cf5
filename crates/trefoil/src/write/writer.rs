//! The leader's loop: take a group, stage it, sync it, index it, publish it, answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use trefoil_core::{Committed, Error, Event, Result, Timestamp};
use trefoil_state::Cleaned;
use trefoil_storage::{Group, Storage};

use super::append::append;
use super::changes::logged_bytes;
use super::queue::{Executions, Queue, Request, Work};
use super::stage::{Front, Stage};
use crate::index::{Effort, Index, Layers};
use crate::read::{Found, Selection, fetch, first_match};
use crate::state::Store;
use crate::stats::Stats;
use crate::transaction::Executed;
use crate::wake::Wake;

/// After so many groups of one request, requests are taken to come one at a time. With many
/// clients a group has one now and then, too.
const CALM_GROUPS_MIN: usize = 64;

/// Writes the commits of one namespace, one group at a time.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) queue: Queue,
    storage: Arc<dyn Storage>,
    index: Arc<Index>,
    store: Arc<Store>,
    wake: Arc<Wake>,
    /// How many groups in a row had one request.
    n_calm: AtomicUsize,
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
    /// Whether a full disk left it unknown what is in the log: opening it again will tell.
    pub(crate) wants_reopening: AtomicBool,
}

impl Writer {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        index: Arc<Index>,
        store: Arc<Store>,
        wake: Arc<Wake>,
        front: Front,
        seed: u64,
    ) -> Self {
        Self {
            queue: Queue::default(),
            storage,
            index,
            store,
            wake,
            n_calm: AtomicUsize::new(0),
            front: Mutex::new((front, seed)),
            head: AtomicU64::new(front.position),
            commit: AtomicU64::new(front.commit),
            changed: event_listener::Event::new(),
            stats: Stats::default(),
            wants_reopening: AtomicBool::new(false),
        }
    }

    /// The global position of the last durable event.
    pub(crate) fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// Whether requests have come one at a time for a while.
    pub(crate) fn is_calm(&self) -> bool {
        self.n_calm.load(Ordering::Relaxed) >= CALM_GROUPS_MIN
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
        if let Err(error) = self.check_ready() {
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
        let touched = stage.take_touched().unwrap_or_default();
        if stage.is_empty() {
            self.store.watches.mark(&touched);
            answers.send();
            return 0;
        }
        let due = stage.due();
        let end = stage.finish();
        let staged = stage.take_staged();
        let group = stage.group();
        let (n_events, bytes, logged) = measure(group);
        let sync_started = Instant::now();
        self.store.watches.begin(touched);
        let appended = self.wake.mark(due).and_then(|()| {
            append(self.storage.as_ref(), &self.index, group, staged)
                .inspect_err(|error| self.give_up_after(error))
        });
        let durable = match appended {
            Ok(durable) => durable,
            Err(error) => {
                self.store.watches.end();
                answers.send_failure(&error);
                return 0;
            }
        };
        let synced = Instant::now();
        let entries = stage.take_entries();
        self.store.note_logged(logged);
        let publish = || self.publish(end);
        self.store.apply(entries, || durable.add(publish));
        self.store.due.fetch_min(due, Ordering::SeqCst);
        self.store.watches.end();
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
        self.note_calm(answers.0.len());
        answers.send();
        bytes + logged as usize
    }

    /// Waits until there is room for another group, if one may be written.
    fn check_ready(&self) -> Result<()> {
        match self.queue.poisoned() {
            Some(error) => Err(error),
            None => self.index.wait_for_room(|| self.store.is_overfull()),
        }
    }

    /// Writes nothing more after an error that leaves it unknown what is in the log.
    fn give_up_after(&self, error: &Error) {
        if let Error::DiskFull(_) | Error::Invalid(_) = error {
            return;
        }
        self.queue.poison(error.to_string());
        if let Error::Unknown {
            is_disk_full: true, ..
        } = error
        {
            self.wants_reopening.store(true, Ordering::SeqCst);
        }
    }

    fn note_calm(&self, n_requests: usize) {
        let n_calm = match n_requests {
            0 | 1 => self.n_calm.load(Ordering::Relaxed).saturating_add(1),
            _ => 0,
        };
        self.n_calm.store(n_calm, Ordering::Relaxed);
    }

    fn publish(&self, end: Front) {
        self.commit.store(end.commit, Ordering::Release);
        self.head.store(end.position, Ordering::Release);
    }
}

/// The answers to the requests of a group, to be sent once it is known what became of it.
struct Answers(Vec<Answer>);

enum Answer {
    Write(oneshot::Sender<Result<Committed>>, Decided<Committed>),
    Execute(oneshot::Sender<Executions>, Vec<Decided<Executed>>),
    Clean(oneshot::Sender<Result<Cleaned>>, Decided<Cleaned>),
}

/// What was decided about a request.
struct Decided<T> {
    answer: Result<T>,
    /// Whether something was staged before, on which the answer may depend.
    depends_on_stage: bool,
}

impl<T> Decided<T> {
    fn on<'a>(stage: &mut Stage<'a>, decide: impl FnOnce(&mut Stage<'a>) -> Result<T>) -> Self {
        Self {
            depends_on_stage: !stage.is_empty(),
            answer: decide(stage),
        }
    }

    /// The answer. If the group could not be written, only what failed for other reasons is
    /// certain.
    fn unless(self, failure: Option<&Error>) -> Result<T> {
        match (self.answer, failure) {
            (answer, None) => answer,
            (Err(reason), _) if !self.depends_on_stage => Err(reason),
            (_, Some(error)) => Err(error.clone()),
        }
    }
}

impl Answers {
    /// Stages the requests of a group.
    fn of(requests: &mut Vec<Request>, stage: &mut Stage<'_>) -> Self {
        let answers = requests.drain(..).map(|request| match request {
            Request::Write(Work::Commit(commit), reply) => {
                Answer::Write(reply, Decided::on(stage, |stage| stage.commit(commit)))
            }
            Request::Write(Work::Import(events), reply) => {
                Answer::Write(reply, Decided::on(stage, |stage| stage.import(events)))
            }
            Request::Execute(works, reply) => {
                let execute = |work: Result<_>| {
                    Decided::on(stage, |stage| work.and_then(|work| stage.execute(work)))
                };
                Answer::Execute(reply, works.into_iter().map(execute).collect())
            }
            Request::Clean(reply) => Answer::Clean(reply, Decided::on(stage, Stage::clean)),
        });
        Self(answers.collect())
    }

    fn send(self) {
        self.send_unless(None);
    }

    /// The group could not be written.
    fn send_failure(self, error: &Error) {
        self.send_unless(Some(error));
    }

    fn send_unless(self, failure: Option<&Error>) {
        for answer in self.0 {
            // Whoever asked may have gone.
            match answer {
                Answer::Write(reply, decided) => drop(reply.send(decided.unless(failure))),
                Answer::Clean(reply, decided) => drop(reply.send(decided.unless(failure))),
                Answer::Execute(reply, decided) => {
                    let answers = decided.into_iter().map(|decided| decided.unless(failure));
                    drop(reply.send(answers.collect()));
                }
            }
        }
    }
}

/// How many events a group has, how many bytes they take, and how many the changes of state do.
fn measure(group: &Group) -> (usize, usize, u64) {
    let records = &group.records;
    let n_events = records.iter().map(|record| record.items.len()).sum();
    let bytes = records.iter().map(|record| record.items.n_bytes()).sum();
    (n_events, bytes, records.iter().map(logged_bytes).sum())
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
    for request in requests.drain(..) {
        match request {
            Request::Write(_, reply) => drop(reply.send(Err(error.clone()))),
            Request::Execute(works, reply) => {
                let refused = works.iter().map(|_| Err(error.clone()));
                drop(reply.send(refused.collect()));
            }
            Request::Clean(reply) => drop(reply.send(Err(error.clone()))),
        }
    }
}

/// The wall clock. What the server does with it never goes backwards: see [`Stage`].
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
