//! The leader's loop: take a group, stage it, sync it, index it, publish it, answer.
//!
//! If the storage completes a group later, the leader stops there and no thread waits. Whoever learns
//! that the group is complete lands it and leads on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use trefoil_core::{Error, Result, Timestamp};
use trefoil_storage::{Completion, GroupLimits, Pending, Storage};

use super::append::{
    AppendTimes, AppendedGroup, EndedGroup, GroupSize, add_to_index, append_and_prepare,
};
use super::chain::is_worth_a_chain;
use super::decide::{GroupAttempt, GroupOutcome, attempt};
use super::pace::GroupPace;
use super::queue::Queue;
use super::request::{Asker, Demand, LetGo, TakenRequests};
use super::runway::RunBeside;
use super::stage::{Durable, Front, Stage};
use crate::background::Background;
use crate::index::{Effort, Index, Prepared};
use crate::read::waiting::WaitingSubscribers;
use crate::read::{Matcher, SearchResult, SearchedLog, fetch_all, first_match};
use crate::removal::HiddenEvents;
use crate::state::{StateStore, ToClean};
use crate::stats::{GroupFigures, GroupStats};
use crate::time::clock::Clock;
use crate::time::wake::Wake;

/// After this many groups of one request, requests are taken to come one at a time. With many
/// clients a group has one now and then, too.
const CALM_GROUPS_MIN: usize = 64;

/// Of so many requests that come one at a time, one waits for others all the same: there may be some by
/// now.
const CALM_GROUPS_PER_LOOK: usize = 16;

/// Writes the commits of one namespace, one group at a time.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) queue: Queue,
    pub(super) storage: Arc<dyn Storage>,
    /// Those of the storage.
    pub(super) limits: GroupLimits,
    pub(super) index: Arc<Index>,
    pub(super) store: Arc<StateStore>,
    wake: Arc<Wake>,
    pub(super) clock: Clock,
    /// How many groups in a row had one request.
    n_calm: AtomicUsize,
    pub(crate) pace: GroupPace,
    /// Held by the leader.
    pub(super) next: Mutex<Next>,
    /// Signalled when a group that was on its way has landed.
    landed: Condvar,
    /// The global position of the last durable event that readers may see.
    head: AtomicU64,
    /// The number of the last durable commit.
    commit: AtomicU64,
    /// Those who wait for events that are yet to be written.
    pub(crate) waiting: Arc<WaitingSubscribers>,
    pub(crate) stats: Arc<GroupStats>,
    /// Whether a full disk or a network left it unknown what is in the log: opening it again will tell.
    pub(crate) wants_reopening: AtomicBool,
}

impl Writer {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        index: Arc<Index>,
        store: Arc<StateStore>,
        wake: Arc<Wake>,
        background: &Arc<Background>,
        (front, seed): (Front, u64),
    ) -> Self {
        let clock = background.clock.clone();
        clock.note_event(front.clock);
        let stats = Arc::new(GroupStats::within(&background.stats.groups));
        Self {
            queue: Queue::new(clock.clone()),
            limits: storage.group_limits(),
            storage,
            index,
            store,
            wake,
            clock,
            n_calm: AtomicUsize::new(0),
            pace: GroupPace::default(),
            next: Mutex::new(Next {
                front,
                random: seed,
                is_group_on_its_way: false,
            }),
            landed: Condvar::new(),
            head: AtomicU64::new(front.position),
            commit: AtomicU64::new(front.commit),
            waiting: WaitingSubscribers::new(background, &stats, front.position),
            stats,
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

    /// Whether requests have come one at a time for a while, so that there is no other to be waited for.
    pub(crate) fn leads_at_once(&self) -> bool {
        let n_calm = self.n_calm.load(Ordering::Relaxed);
        n_calm >= CALM_GROUPS_MIN && !n_calm.is_multiple_of(CALM_GROUPS_PER_LOOK)
    }

    /// Returns whether the next group need not wait for a checkpoint.
    pub(crate) fn has_room(&self) -> bool {
        !self.index.is_overfull() && !self.store.is_overfull()
    }

    /// The number of the last durable commit.
    pub(crate) fn last_commit(&self) -> u64 {
        self.commit.load(Ordering::Acquire)
    }

    /// Freezes what was added to index and state since the last checkpoint, between two groups.
    /// Returns whether there is something to be written.
    pub(crate) fn freeze(&self) -> bool {
        let mut next = self.next.lock();
        // It has its places in the live tail already.
        while next.is_group_on_its_way {
            self.landed.wait(&mut next);
        }
        freeze(
            &self.index,
            &self.store,
            next.front.commit,
            next.front.clock,
        )
    }

    /// Writes up to `n_groups` groups. `after_group` is called after each of them, or after several, with
    /// the number of bytes that were written. If there is another thread, groups are staged while it
    /// appends.
    pub(crate) fn lead(
        &self,
        n_groups: usize,
        run_beside: Option<&RunBeside<'_>>,
        after_group: &dyn Fn(usize),
    ) -> Led {
        let _guard = LeaderGuard(&self.queue);
        self.lead_on(TakenRequests::default(), n_groups, run_beside, after_group)
    }

    /// Ends a group that the storage has completed, and leads on as [`Self::lead`] does.
    pub(crate) fn land(
        &self,
        flight: Flight,
        appended: Result<()>,
        n_groups: usize,
        after_group: &dyn Fn(usize),
    ) -> Led {
        let _guard = LeaderGuard(&self.queue);
        let Flight {
            mut requests,
            group,
            mut times,
            outcome,
        } = flight;
        times.ended = self.clock.steady();
        let mut next = self.next.lock();
        let let_go = group.events_to_let_go(&mut requests.demands[..outcome.decisions.len()]);
        let ended = self.end_group(&mut next, (group, let_go), (appended, times), &outcome);
        next.is_group_on_its_way = false;
        drop(next);
        self.landed.notify_all();
        after_group(self.answer(outcome, &mut requests.askers, ended));
        requests.drop_answered();
        self.lead_on(requests, n_groups, None, after_group)
    }

    /// Writes groups, first of all the requests that are left of the last one.
    fn lead_on(
        &self,
        mut requests: TakenRequests,
        n_groups: usize,
        run_beside: Option<&RunBeside<'_>>,
        after_group: &dyn Fn(usize),
    ) -> Led {
        for _ in 0..n_groups {
            let mut queued = Duration::ZERO;
            let is_new = requests.is_empty();
            if is_new {
                let taken = self
                    .queue
                    .next_group(&self.pace, self.limits, &mut requests);
                match taken {
                    Some(waited) => queued = waited,
                    None => break,
                }
            }
            if let Some(run_beside) = run_beside
                && is_new
                && is_worth_a_chain(&requests)
            {
                after_group(self.write_chain(&mut requests, queued, run_beside));
                if requests.is_empty() {
                    break;
                }
                continue;
            }
            match self.write_group(&mut requests, queued) {
                Written::Now(bytes) => after_group(bytes),
                Written::Later(flight, pending) => return Led::Later(flight, pending),
            }
        }
        match self.queue.step_down(requests) {
            true => Led::More,
            false => Led::Idle,
        }
    }

    /// Writes as many of the requests as one group holds and answers them; the others are left. One
    /// that panics before anything is written is refused, and costs the others nothing.
    fn write_group(&self, requests: &mut TakenRequests, queued: Duration) -> Written {
        let began = self.clock.steady();
        let mut next = self.next.lock();
        if let Err(error) = self.check_ready() {
            requests.refuse(&error);
            return Written::Now(0);
        }
        let demands = (requests.demands.as_slice(), requests.n_done());
        let (sent, outcome) = self.staged(demands, next.start(), |attempt| {
            let GroupAttempt {
                stage,
                decisions,
                has_panicked,
            } = attempt;
            let outcome = GroupOutcome {
                decisions,
                has_panicked,
                queued,
                began,
                staging: self.clock.since(began),
            };
            (self.send(stage), outcome)
        });
        let ended = match sent {
            Ok(None) => Ok(EndedGroup::default()),
            Err(error) => Err(error),
            Ok(Some((group, times, Completion::Now(appended)))) => {
                let n_decided = outcome.decisions.len();
                let let_go = group.events_to_let_go(&mut requests.demands[..n_decided]);
                self.end_group(&mut next, (group, let_go), (appended, times), &outcome)
            }
            Ok(Some((group, times, Completion::Later(pending)))) => {
                next.is_group_on_its_way = true;
                let requests = std::mem::take(requests);
                let flight = Flight {
                    requests,
                    group,
                    times,
                    outcome,
                };
                return Written::Later(Box::new(flight), pending);
            }
        };
        drop(next);
        let n_bytes = self.answer(outcome, &mut requests.askers, ended);
        requests.drop_answered();
        Written::Now(n_bytes)
    }

    /// Answers those whose requests are in a group, and then tells those who wait for its events. Returns
    /// how many bytes were written.
    pub(super) fn answer(
        &self,
        outcome: GroupOutcome,
        askers: &mut Vec<Asker>,
        ended: Result<EndedGroup>,
    ) -> usize {
        let began = self.clock.steady();
        let (ended, events) = EndedGroup::parts(ended);
        let n_bytes = outcome.answer(askers, ended);
        self.stats.record_answer(self.clock.since(began));
        if let Some(events) = events {
            self.waiting.tell(&events);
        }
        n_bytes
    }

    /// Stages requests, of the first of which some may be done, as one group and hands it to `then`.
    fn staged<T>(
        &self,
        (demands, n_done): (&[Demand], usize),
        start: (Front, u64),
        then: impl FnOnce(GroupAttempt<'_>) -> T,
    ) -> T {
        self.with_durable(|durable| {
            let new_stage = || self.new_stage(durable, start);
            then(attempt(demands, n_done, &new_stage))
        })
    }

    /// A stage for groups that begin there.
    pub(super) fn new_stage<'a>(
        &self,
        durable: Durable<'a>,
        (front, random): (Front, u64),
    ) -> Stage<'a> {
        Stage::new(
            durable,
            front,
            (self.clock.now(), random),
            self.limits.bytes,
        )
    }

    /// Hands to `then` what is durable now.
    pub(super) fn with_durable<T>(&self, then: impl FnOnce(Durable<'_>) -> T) -> T {
        let redactions = &self.store.redactions;
        let find = |positions: &[u64]| {
            let events = fetch_all(self.storage.as_ref(), positions)?.into_iter();
            Ok(events.map(|event| redactions.shown(event)).collect())
        };
        let layers = self.index.layers();
        let search = |matcher: Matcher<'_>, from: u64, head: u64| -> Result<Option<u64>> {
            let hidden = HiddenEvents::new(&self.store);
            let log = SearchedLog {
                storage: self.storage.as_ref(),
                layers: &layers,
                hidden: &hidden,
            };
            search(log, matcher, from, head)
        };
        then(Durable {
            index: &self.index,
            store: &self.store,
            fetch: &find,
            search: &search,
        })
    }

    /// Hands what is staged to the storage, if something is.
    fn send(
        &self,
        mut stage: Stage<'_>,
    ) -> Result<Option<(AppendedGroup, AppendTimes, Completion)>> {
        if stage.is_empty() {
            self.touch_only(&mut stage);
            return Ok(None);
        }
        let to_clean = self.announce(&mut stage)?;
        let end = stage.finish();
        let size = GroupSize::of(stage.group());
        let began = self.clock.steady();
        let storage = self.storage.as_ref();
        let (records, clock) = (stage.group(), &self.clock);
        let written_before = storage.work().writing;
        let append_now = || (storage.append(records), clock.steady());
        let ((completion, ended), prepared) =
            append_and_prepare(append_now, &self.index, stage.events());
        let write = storage.work().writing.saturating_sub(written_before);
        let group = AppendedGroup {
            prepared,
            front: (end, stage.random()),
            entries: stage.take_entries(),
            to_clean,
            size,
            preparing: clock.since(ended),
        };
        let times = AppendTimes {
            began,
            write,
            ended,
        };
        Ok(Some((group, times, completion)))
    }

    /// Watches see what a group touches that changes nothing.
    pub(super) fn touch_only(&self, stage: &mut Stage<'_>) {
        let touched = stage.take_touched().unwrap_or_default();
        self.store.watches.mark(&touched);
    }

    /// Lets those know of a group that must before it can be durable. Returns what of it is to be
    /// cleaned.
    pub(super) fn announce(&self, stage: &mut Stage<'_>) -> Result<ToClean> {
        let to_clean = stage.take_to_clean();
        // By policies, events are removed some time after they are written.
        let due = match self.store.policies.have_any() {
            true => 0,
            false => to_clean.first(),
        };
        self.wake.mark(due)?;
        let touched = stage.take_touched().unwrap_or_default();
        self.store.watches.begin(touched);
        Ok(to_clean)
    }

    /// Makes a group visible that is durable, or forgets one that failed.
    pub(super) fn end_group(
        &self,
        next: &mut Next,
        (group, let_go): (AppendedGroup, LetGo),
        (appended, times): (Result<()>, AppendTimes),
        outcome: &GroupOutcome,
    ) -> Result<EndedGroup> {
        if let Err(error) = appended {
            self.index.forget(&group.prepared);
            self.give_up_after(&error);
            self.store.watches.end();
            return Err(error);
        }
        let (size, preparing) = (group.size, group.preparing);
        let n_requests = outcome.decisions.len();
        (next.front, next.random) = group.front;
        let (prepared, indexing) = self.make_visible(group, let_go);
        let figures = GroupFigures {
            n_commits: n_requests,
            n_events: size.n_events,
            n_bytes: size.n_bytes + size.n_logged as usize,
            began: outcome.began,
            queue: outcome.queued,
            staging: outcome.staging,
            write: times.write,
            sync: times.ended.saturating_sub(times.began + times.write),
            index: preparing + indexing,
            publishing: self.clock.since(times.ended),
        };
        self.stats.record_group(&figures);
        self.note_calm(n_requests);
        self.pace.note(&figures);
        Ok(EndedGroup {
            n_bytes: figures.n_bytes,
            events: Some(prepared),
        })
    }

    /// Makes visible what is durable. Returns where its events are in the index, and how long it took to
    /// add them.
    fn make_visible(&self, group: AppendedGroup, let_go: LetGo) -> (Prepared, Duration) {
        let AppendedGroup {
            prepared,
            front,
            entries,
            to_clean,
            size,
            ..
        } = group;
        self.store.note_logged(size.n_logged);
        let publish = || self.publish(front.0);
        let mut indexing = Duration::ZERO;
        self.store.apply(entries, || {
            let began = self.clock.steady();
            add_to_index(&self.index, &prepared, let_go, publish);
            indexing = self.clock.since(began);
        });
        self.store
            .note_to_clean(to_clean, self.clock.now().millis());
        self.store.watches.end();
        self.clock.note_event(front.0.clock);
        (prepared, indexing)
    }

    /// Waits until there is room for another group, if one may be written.
    pub(super) fn check_ready(&self) -> Result<()> {
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
        let is_disk_full = matches!(
            error,
            Error::Unknown {
                is_disk_full: true,
                ..
            }
        );
        // A network fails now and then, and nobody is there to open the namespace again by hand.
        if is_disk_full || self.storage.may_wait() {
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

/// Where the next group begins.
#[derive(Debug)]
pub(super) struct Next {
    /// Where the next event goes.
    front: Front,
    /// The state of the generator of random bits.
    random: u64,
    /// Whether the storage has a group that it has not completed.
    is_group_on_its_way: bool,
}

/// What leading has come to.
pub(crate) enum Led {
    /// Nothing is waiting.
    Idle,
    /// More is waiting: somebody else must lead.
    More,
    /// A group is on its way: whoever learns what became of it must [land](Writer::land) it.
    Later(Box<Flight>, Pending),
}

/// A group that is on its way, and its requests. Whoever has it leads the queue.
pub(crate) struct Flight {
    /// Those of the group, and others that are left for the next one.
    requests: TakenRequests,
    group: AppendedGroup,
    times: AppendTimes,
    outcome: GroupOutcome,
}

/// What a group has come to.
enum Written {
    /// It is over, and this many bytes were written.
    Now(usize),
    Later(Box<Flight>, Pending),
}

impl Next {
    /// What a stage begins with.
    pub(super) fn start(&self) -> (Front, u64) {
        (self.front, self.random)
    }
}

/// Freezes what was added to index and state, unless there is nothing or something is frozen
/// already. Returns whether there is something to be written.
pub(crate) fn freeze(index: &Index, store: &StateStore, commit: u64, clock: Timestamp) -> bool {
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
fn search(log: SearchedLog<'_>, matcher: Matcher<'_>, from: u64, head: u64) -> Result<Option<u64>> {
    let mut from = from;
    loop {
        let effort = Effort::new(usize::MAX);
        match first_match(log, matcher, from, head, &effort)? {
            SearchResult::Match(position) => return Ok(Some(position)),
            SearchResult::Paused(position) => from = position,
            SearchResult::Nothing => return Ok(None),
        }
    }
}

/// Closes the queue if its leader panics while it writes: it is unknown what is on disk then, and its
/// callers would wait for ever otherwise.
struct LeaderGuard<'a>(&'a Queue);

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .abandon(&Error::Poisoned("the writer panicked".into()));
        }
    }
}
