//! One subscriber that waits: what it wants, whether it was told of something, and how to wake it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use trefoil_core::{ConsumerGroup, QueryItem, Selection, in_group};

use super::terms::TERMS_MAX;
use crate::index::AddedEvent;
use crate::read::Matcher;

/// Of queries with more types and tags than this it is not found out whether an event is selected before
/// their subscriber is woken: that would take the writer too long.
const CHECKED_TERMS_MAX: usize = 64;

/// About how much memory a subscriber takes besides what it selects, and each term that it waits under.
const SUBSCRIBER_BYTES: usize = 1024;
const TERM_BYTES: usize = 256;

/// A subscriber, as those know it who write what it waits for.
#[derive(Debug)]
pub(crate) struct SubscriberWait {
    selection: Selection,
    is_checked: bool,
    state: Mutex<WaitState>,
    told: Condvar,
}

#[derive(Debug, Default)]
struct WaitState {
    news: News,
    task: WaitingTask,
    /// Up to which position nothing concerned it while it slept.
    slept_to: u64,
}

/// What a subscriber was told.
#[derive(Debug, Default)]
enum News {
    /// It is not waiting.
    #[default]
    Unasked,
    /// Nothing up to this position, which moves on.
    None(Arc<AtomicU64>),
    /// There is something for it from this position on.
    From(u64),
}

/// What sleeps until there is something.
#[derive(Debug, Default)]
enum WaitingTask {
    /// Nothing: the subscriber is still busy with what came before.
    #[default]
    None,
    Async(Waker),
    Blocked,
}

/// A subscriber that was told of something and is to be woken.
#[derive(Debug)]
pub(super) struct SleepingSubscriber {
    subscriber: Arc<SubscriberWait>,
    task: WaitingTask,
}

impl SleepingSubscriber {
    pub(super) fn wake(self) {
        match self.task {
            WaitingTask::Async(waker) => waker.wake(),
            WaitingTask::Blocked => drop(self.subscriber.told.notify_one()),
            WaitingTask::None => {}
        }
    }
}

impl SubscriberWait {
    pub(crate) fn new(selection: Selection) -> Self {
        Self {
            is_checked: selection.filter.query.n_terms() <= CHECKED_TERMS_MAX,
            selection,
            state: Mutex::default(),
            told: Condvar::new(),
        }
    }

    pub(super) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Returns about how much memory it takes at most.
    pub(crate) fn n_bytes(&self) -> usize {
        let query = &self.selection.filter.query;
        let names = |item: &QueryItem| {
            let names = item.types.iter().chain(&item.tags);
            names
                .map(|name| size_of::<String>() + name.len())
                .sum::<usize>()
        };
        let names: usize = query.items.iter().map(names).sum();
        let items = query.items.len() * size_of::<QueryItem>();
        SUBSCRIBER_BYTES + items + names + query.n_terms().min(TERMS_MAX) * TERM_BYTES
    }

    /// Returns whether an event is selected, or may be.
    pub(super) fn wants(&self, event: AddedEvent<'_>) -> bool {
        let is_its = |group: ConsumerGroup| {
            let hash = event.group_hash;
            hash.is_some_and(|hash| in_group(hash, group.member, group.size))
        };
        if !self.selection.filter.group.is_none_or(is_its) {
            return false;
        }
        let matcher = Matcher::of_selection(&self.selection);
        !self.is_checked
            || matcher
                .correlation
                .is_none_or(|wanted| event.correlation == Some(wanted))
                && matcher.matches_parts(event.stream, event.event_type, event.tags())
    }

    /// Begins to wait; `told` says up to where those who wait have been told of everything.
    pub(super) fn enter(&self, told: &Arc<AtomicU64>) {
        let mut state = self.state.lock();
        state.news = News::None(Arc::clone(told));
        state.task = WaitingTask::None;
    }

    /// Tells a subscriber that there may be something for it from a position on. Returns it if it sleeps.
    pub(super) fn tell(subscriber: &Arc<Self>, from: u64) -> Option<SleepingSubscriber> {
        let mut state = subscriber.state.lock();
        state.news = News::From(from);
        let task = std::mem::take(&mut state.task);
        if let WaitingTask::None = task {
            return None;
        }
        state.slept_to = state.slept_to.max(from.saturating_sub(1));
        drop(state);
        Some(SleepingSubscriber {
            subscriber: Arc::clone(subscriber),
            task,
        })
    }

    /// Returns whether it waits and was told of nothing.
    pub(crate) fn has_no_news(&self) -> bool {
        matches!(self.state.lock().news, News::None(_))
    }

    /// Returns from which position on there is something for it, if it was told so.
    pub(crate) fn news(&self) -> Option<u64> {
        match self.state.lock().news {
            News::From(position) => Some(position),
            News::Unasked | News::None(_) => None,
        }
    }

    /// Returns when there may be something for it.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if !matches!(state.news, News::None(_)) {
            return Poll::Ready(());
        }
        match &mut state.task {
            WaitingTask::Async(waker) => waker.clone_from(context.waker()),
            task => *task = WaitingTask::Async(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Blocks the thread until there may be something for it. Returns whether there is.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        if !matches!(state.news, News::None(_)) {
            return true;
        }
        state.task = WaitingTask::Blocked;
        self.told.wait_for(&mut state, timeout);
        !matches!(state.news, News::None(_))
    }

    /// Returns up to which position there was nothing for it while it slept.
    pub(crate) fn slept_to(&self) -> u64 {
        let state = self.state.lock();
        match (&state.news, &state.task) {
            (News::None(told), WaitingTask::Async(_) | WaitingTask::Blocked) => {
                state.slept_to.max(told.load(Ordering::Acquire))
            }
            _ => state.slept_to,
        }
    }
}
