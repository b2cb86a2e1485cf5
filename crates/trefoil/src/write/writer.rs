//! The leader's loop: take a group, stage it, sync it, index it, publish it, answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use trefoil_core::{Error, Event, Result, Timestamp};
use trefoil_storage::{Group, Storage};

use super::append::{DurableGroup, append};
use super::changes::logged_bytes;
use super::decide::{Attempt, attempt, refuse_first};
use super::queue::{LetGo, Queue, Request};
use super::stage::{Front, Stage};
use crate::database::stats::Stats;
use crate::index::{Effort, Index, Layers};
use crate::read::{Found, Matcher, fetch, first_match};
use crate::state::{Due, Entries, Store};
use crate::time::clock::Clock;
use crate::time::wake::Wake;

/// After so many groups of one request, requests are taken to come one at a time. With many
/// clients a group has one now and then, too.
const CALM_GROUPS_MIN: usize = 64;

/// The index takes longer for so many events than the log does.
const MANY_EVENTS: usize = 4096;

/// Writes the commits of one namespace, one group at a time.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) queue: Queue,
    storage: Arc<dyn Storage>,
    index: Arc<Index>,
    store: Arc<Store>,
    wake: Arc<Wake>,
    clock: Clock,
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
        clock: Clock,
        front: Front,
        seed: u64,
    ) -> Self {
        clock.note_event(front.clock);
        Self {
            queue: Queue::default(),
            storage,
            index,
            store,
            wake,
            clock,
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
            if group.is_empty() && !self.queue.next_group(&mut group) {
                return false;
            }
            let bytes = self.write_group(&mut group);
            after_group(bytes);
        }
        self.queue.step_down(group)
    }

    /// Writes as many of the requests as one group holds and answers them; the others are left. One
    /// that panics before anything is written is refused, and costs the others nothing. Answers how
    /// many bytes were written.
    fn write_group(&self, requests: &mut Vec<Request>) -> usize {
        let started = Instant::now();
        let mut guard = self.front.lock();
        if let Err(error) = self.check_ready() {
            requests
                .drain(..)
                .for_each(|request| request.refuse(&error));
            return 0;
        }
        let find = |position: u64| -> Result<Event> { fetch(self.storage.as_ref(), position) };
        let layers = self.index.layers();
        let search = |matcher: Matcher<'_>, from: u64, head: u64| -> Result<Option<u64>> {
            search(self.storage.as_ref(), &layers, matcher, from, head)
        };
        let ((front, random), now) = (*guard, self.clock.now());
        let places = (&*self.index, &*self.store);
        let new_stage = || Stage::new(places, (&find, &search), front, now, random);
        let Attempt {
            stage,
            decisions,
            has_panicked,
        } = attempt(requests, &new_stage);
        let (mut n_bytes, mut failure) = (0, None);
        match self.make_durable(stage) {
            Ok(None) => {}
            Err(error) => failure = Some(error),
            Ok(Some(durable)) => {
                n_bytes = durable.n_bytes + durable.n_logged as usize;
                let decided = &mut requests[..decisions.len()];
                let let_go = durable.events_to_let_go(decided);
                let (n_events, n_bytes, sync) = (durable.n_events, durable.n_bytes, durable.sync);
                *guard = self.make_visible(durable, let_go);
                let waited = started.elapsed().saturating_sub(sync);
                let n_requests = decisions.len();
                self.stats
                    .record_group(n_requests, n_events, n_bytes, sync, waited);
                self.note_calm(n_requests);
            }
        }
        drop(guard);
        decisions.send(requests, failure.as_ref());
        if has_panicked {
            let text = "it panicked before anything of it was written";
            refuse_first(requests, Error::Internal(text.to_owned()));
        }
        n_bytes
    }

    /// Makes durable what is staged, if something is.
    fn make_durable(&self, mut stage: Stage<'_>) -> Result<Option<Durable<'_>>> {
        let touched = stage.take_touched().unwrap_or_default();
        if stage.is_empty() {
            self.store.watches.mark(&touched);
            return Ok(None);
        }
        let due = stage.take_due();
        let end = stage.finish();
        let (n_events, n_bytes, n_logged) = measure(stage.group());
        let started = Instant::now();
        self.store.watches.begin(touched);
        let marked = self.wake.mark(due.first());
        let (storage, group) = (self.storage.as_ref(), stage.group());
        let appended = marked.and_then(|()| {
            append(storage, &self.index, group, stage.staged())
                .inspect_err(|error| self.give_up_after(error))
        });
        let group = appended.inspect_err(|_| self.store.watches.end())?;
        Ok(Some(Durable {
            sync: started.elapsed(),
            group,
            front: (end, stage.random()),
            entries: stage.take_entries(),
            due,
            n_events,
            n_bytes,
            n_logged,
        }))
    }

    /// Makes visible what is durable. Answers where the next event goes.
    fn make_visible(&self, durable: Durable<'_>, let_go: LetGo) -> (Front, u64) {
        let Durable {
            group,
            front,
            entries,
            due,
            n_logged,
            ..
        } = durable;
        self.store.note_logged(n_logged);
        let publish = || self.publish(front.0);
        self.store.apply(entries, || group.add(let_go, publish));
        self.store.note_due(due, self.clock.now().millis());
        self.store.watches.end();
        self.clock.note_event(front.0.clock);
        self.changed.notify(usize::MAX);
        front
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

/// A group that is durable and not yet visible.
struct Durable<'a> {
    group: DurableGroup<'a>,
    /// Where the next event goes after it, and the generator of random bits.
    front: (Front, u64),
    entries: Entries,
    due: Due,
    n_events: usize,
    n_bytes: usize,
    n_logged: u64,
    /// How long writing and syncing took.
    sync: Duration,
}

impl Durable<'_> {
    /// The events of the requests that were decided about, which nobody needs any more, if they
    /// are many.
    fn events_to_let_go(&self, decided: &mut [Request]) -> LetGo {
        match self.n_events >= MANY_EVENTS {
            true => decided
                .iter_mut()
                .filter_map(Request::take_events)
                .collect(),
            false => Vec::new(),
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
    matcher: Matcher<'_>,
    from: u64,
    head: u64,
) -> Result<Option<u64>> {
    let mut from = from;
    loop {
        let effort = Effort::new(usize::MAX);
        match first_match(storage, layers, matcher, from, head, &effort)? {
            Found::Match(position) => return Ok(Some(position)),
            Found::Paused(position) => from = position,
            Found::Nothing => return Ok(None),
        }
    }
}

/// Closes the queue if its leader panics while it writes: nobody knows what is on disk then, and its
/// callers would wait for ever otherwise.
struct LeaderGuard<'a>(&'a Queue);

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .abandon(Error::Poisoned("the writer panicked".into()));
        }
    }
}
