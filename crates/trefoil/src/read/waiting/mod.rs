//! The subscribers that wait, by the terms of the events that they wait for. A commit wakes those it
//! concerns and no others.
//!
//! No event is missed: who waits is entered first and looks at the head of the log then, and a commit
//! moves the head first and looks for those who wait then. So one of the two sees the other. Who is
//! woken, or goes away, is taken out.

mod subscriber;
mod terms;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use hashbrown::{DefaultHashBuilder, HashMap};
use parking_lot::Mutex;

use crate::background::{Background, Lane};
use crate::index::{AddedEvent, Prepared, TermKind};
use crate::stats::GroupStats;
use subscriber::SleepingSubscriber;
pub(crate) use subscriber::SubscriberWait;

/// How many events are looked at before others may enter or leave again.
const EVENTS_PER_LOOK: usize = 64;

/// So many tasks are woken by the thread that wrote what they wait for. More are woken by another one,
/// so that no commit waits for them.
const WAKES_HERE_MAX: usize = 32;

/// Those who wait for events of one log.
#[derive(Debug)]
pub(crate) struct WaitingSubscribers {
    table: Mutex<WaitTable>,
    /// How many are in the table.
    n_waiting: AtomicUsize,
    /// Up to which position those it concerns have been told.
    told: Arc<AtomicU64>,
    stats: Arc<GroupStats>,
    background: Arc<Background>,
}

/// Who waits, by term.
#[derive(Debug, Default)]
struct WaitTable {
    by_term: HashMap<TermHash, BTreeMap<u64, Arc<ListedWait>>>,
    /// For how many terms of each kind somebody waits.
    n_of_kind: [usize; TermKind::EVERY.len()],
    hasher: DefaultHashBuilder,
    n_entered: u64,
    /// Whether nobody writes to this log any more.
    is_ended: bool,
}

/// The hash of a term. If two have the same, some are asked in vain whether an event concerns them.
type TermHash = u64;

/// A subscriber in the table.
#[derive(Debug)]
struct ListedWait {
    subscriber: Arc<SubscriberWait>,
    number: u64,
    terms: Box<[(TermKind, TermHash)]>,
    /// Where the log ended when it was entered. It looks itself at what comes before.
    since: u64,
}

/// A subscriber's place among those who wait. If it is dropped, it waits no more.
#[derive(Debug)]
pub(crate) struct WaitPlace {
    waiting: Arc<WaitingSubscribers>,
    listed: Arc<ListedWait>,
}

impl Drop for WaitPlace {
    fn drop(&mut self) {
        self.waiting.leave(&self.listed);
    }
}

impl WaitingSubscribers {
    /// Returns nobody, for a log that ends at `head`.
    pub(crate) fn new(
        background: &Arc<Background>,
        stats: &Arc<GroupStats>,
        head: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::default(),
            n_waiting: AtomicUsize::new(0),
            told: Arc::new(AtomicU64::new(head)),
            stats: Arc::clone(stats),
            background: Arc::clone(background),
        })
    }

    /// Returns up to which position those it concerns have been told.
    pub(crate) fn told(&self) -> u64 {
        self.told.load(Ordering::Acquire)
    }

    /// Enters a subscriber: it is told of events that come after where `head` says that the log ends.
    /// `None` if there will be none, because others write to another log by now.
    pub(crate) fn enter(
        self: &Arc<Self>,
        subscriber: &Arc<SubscriberWait>,
        head: impl FnOnce() -> u64,
    ) -> Option<WaitPlace> {
        let mut table = self.table.lock();
        if table.is_ended {
            return None;
        }
        self.n_waiting.fetch_add(1, Ordering::Relaxed);
        // Before the head is looked at, see `tell`.
        fence(Ordering::SeqCst);
        let listed = table.insert(subscriber, head());
        subscriber.enter(&self.told);
        Some(WaitPlace {
            waiting: Arc::clone(self),
            listed,
        })
    }

    fn leave(&self, listed: &ListedWait) {
        if self.table.lock().remove(listed) {
            self.n_waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Tells those it concerns of events that have been published.
    pub(crate) fn tell(&self, events: &Prepared) {
        let Some(last) = events.last_position() else {
            return;
        };
        // After the head was moved: who is entered later sees where it is.
        fence(Ordering::SeqCst);
        let sleepers = match self.n_waiting.load(Ordering::Relaxed) {
            0 => Vec::new(),
            _ => self.find(events, last),
        };
        if !sleepers.is_empty() {
            self.stats.record_wakes(sleepers.len() as u64);
        }
        self.told.store(last, Ordering::Release);
        self.wake(sleepers);
    }

    /// Tells those it concerns, and returns those of them who sleep.
    fn find(&self, events: &Prepared, last: u64) -> Vec<SleepingSubscriber> {
        let added = events.added();
        let mut events = added.iter().peekable();
        let mut sleepers = Vec::new();
        while events.peek().is_some() {
            let mut table = self.table.lock();
            let n_told: usize = events
                .by_ref()
                .take(EVENTS_PER_LOOK)
                .map(|event| table.tell(event, last, &mut sleepers))
                .sum();
            self.n_waiting.fetch_sub(n_told, Ordering::Relaxed);
        }
        sleepers
    }

    fn wake(&self, sleepers: Vec<SleepingSubscriber>) {
        let wake = |sleepers: Vec<SleepingSubscriber>| {
            sleepers.into_iter().for_each(SleepingSubscriber::wake);
        };
        if sleepers.len() <= WAKES_HERE_MAX {
            return wake(sleepers);
        }
        // It does not wait behind the pages of this database, which are read for those it wakes.
        let tenant = std::ptr::from_ref(self).addr();
        let job = move || wake(sleepers);
        self.background.run(Lane::Follow, tenant, job);
    }

    /// Wakes everybody: nobody writes to this log any more.
    pub(crate) fn end(&self) {
        let mut table = self.table.lock();
        table.is_ended = true;
        let mut sleepers = Vec::new();
        for (_, same) in std::mem::take(&mut table.by_term) {
            for listed in same.into_values() {
                sleepers.extend(SubscriberWait::tell(&listed.subscriber, 0));
            }
        }
        table.n_of_kind = Default::default();
        self.n_waiting.store(0, Ordering::Relaxed);
        drop(table);
        sleepers.into_iter().for_each(SleepingSubscriber::wake);
    }
}

impl WaitTable {
    fn hash(&self, (kind, name): (TermKind, &str)) -> TermHash {
        self.hasher.hash_one((kind, name))
    }

    fn insert(&mut self, subscriber: &Arc<SubscriberWait>, since: u64) -> Arc<ListedWait> {
        let n_waiting = |term| self.by_term.get(&self.hash(term)).map_or(0, BTreeMap::len);
        let terms = terms::choose(subscriber.selection(), n_waiting);
        let hashed = terms.into_iter().map(|term| (term.0, self.hash(term)));
        let mut terms: Vec<(TermKind, TermHash)> = hashed.collect();
        terms.sort_unstable();
        terms.dedup();
        self.n_entered += 1;
        let listed = Arc::new(ListedWait {
            subscriber: Arc::clone(subscriber),
            number: self.n_entered,
            terms: terms.into_boxed_slice(),
            since,
        });
        for (kind, term) in &listed.terms {
            let same = self.by_term.entry(*term).or_default();
            same.insert(listed.number, Arc::clone(&listed));
            self.n_of_kind[*kind as usize] += 1;
        }
        listed
    }

    /// Returns whether it was there.
    fn remove(&mut self, listed: &ListedWait) -> bool {
        let mut was_there = false;
        for (kind, term) in &listed.terms {
            let Some(same) = self.by_term.get_mut(term) else {
                continue;
            };
            if same.remove(&listed.number).is_some() {
                was_there = true;
                self.n_of_kind[*kind as usize] -= 1;
            }
            if same.is_empty() {
                self.by_term.remove(term);
            }
        }
        was_there
    }

    /// Tells those it concerns of an event of a group that ends at `last`, and takes them out. Returns how
    /// many these are, and adds those of them who sleep to `sleepers`.
    fn tell(
        &mut self,
        event: AddedEvent<'_>,
        last: u64,
        sleepers: &mut Vec<SleepingSubscriber>,
    ) -> usize {
        let mut n_told = 0;
        for term in event.terms() {
            if self.n_of_kind[term.0 as usize] == 0 {
                continue;
            }
            let Some(same) = self.by_term.get(&self.hash(term)) else {
                continue;
            };
            let is_concerned =
                |listed: &&Arc<ListedWait>| listed.since < last && listed.subscriber.wants(event);
            let concerned: Vec<_> = same.values().filter(is_concerned).map(Arc::clone).collect();
            for listed in &concerned {
                self.remove(listed);
                sleepers.extend(SubscriberWait::tell(&listed.subscriber, event.position));
            }
            n_told += concerned.len();
        }
        n_told
    }
}
