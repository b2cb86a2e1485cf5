//! Following events from any position on, from the past into the present.
//!
//! A subscription is a read that goes on: it reads the log up to its head, then waits for events that
//! it selects. It keeps a position and at most one page of events, so a slow subscriber costs the
//! writer nothing and misses nothing.
//!
//! It takes its place among those who wait before it reads what may be the last page. So it need not
//! look at what is written while it is busy with that page: if something of it is for the subscription,
//! it is told.
//!
//! As a stream it reads pages on a thread of the library: a poll waits for no disk.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use oneshot::AsyncReceiver;
use trefoil_core::{Direction, Error, Event, Result, Selection, StartAt};

use crate::background::Lane;
use crate::database::engine::{Engine, abandoned};
use crate::read::LogMoment;
use crate::read::waiting::{SubscriberWait, WaitPlace};
use crate::{Database, Page, read};

/// How many events, and about how many bytes of them, are read at a time at most.
const PAGE_EVENTS: usize = 256;
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Events from any position on, without gap, duplicate or reordering.
///
/// It is a [`Stream`] of events that works in any async runtime. It ends with [`Error::Closed`] when
/// the database is closed, deleted or cleared, and after any other error. [`Self::next_timeout`] is
/// the blocking form.
///
/// ```
/// use std::time::Duration;
/// use trefoil::{Commit, Database, NewEvent, Options, Selection};
///
/// # fn main() -> trefoil::Result<()> {
/// let database = Database::in_memory(&Options::default())?;
/// let mut orders = database.subscribe(Selection::category("order"));
/// database.commit(Commit::new([NewEvent::new("order-1", "Placed", "{}")]))?;
///
/// let placed = orders.next_timeout(Duration::from_secs(10))?;
/// assert_eq!(placed[0].event_type(), "Placed");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Subscription {
    database: Database,
    generation: u64,
    /// What is still to be read.
    selection: Selection,
    /// Whether there is more of the log to look at before it is time to wait.
    is_behind: bool,
    /// Up to where the log was looked at.
    seen: u64,
    bytes_max: usize,
    wait: Arc<SubscriberWait>,
    /// Its place among those who wait; what comes after it was taken need not be looked for.
    place: Option<WaitPlace>,
    progress: FollowState,
    /// What was read and not handed over yet.
    events: std::vec::IntoIter<Event>,
}

/// What a subscription is doing between two polls.
#[derive(Debug)]
enum FollowState {
    Idle,
    /// A page is being read.
    Reading(AsyncReceiver<Result<Page>>),
    /// It has failed, and returns nothing more.
    Ended,
}

impl Subscription {
    pub(crate) fn new(database: Database, generation: u64, mut selection: Selection) -> Self {
        selection.direction = Direction::Forwards;
        selection.limit = PAGE_EVENTS;
        selection.as_of = None;
        Self {
            database,
            generation,
            wait: Arc::new(SubscriberWait::new(selection.clone())),
            selection,
            is_behind: true,
            seen: 0,
            bytes_max: PAGE_BYTES,
            place: None,
            progress: FollowState::Idle,
            events: Vec::new().into_iter(),
        }
    }

    /// Reads at most about this many bytes of events at a time.
    #[must_use]
    pub fn with_page_bytes(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// Returns the global position up to which the log was handed over: what does not match counts as
    /// handed over.
    pub fn position(&self) -> u64 {
        let read = match self.selection.from {
            StartAt::Position(next) => next.saturating_sub(1),
            StartAt::Edge | StartAt::StreamPosition(_) => self.seen,
        };
        read.max(self.wait.slept_to())
    }

    /// Returns how far it comes while it waits, for others to look at.
    pub fn progress(&self) -> SubscriptionProgress {
        SubscriptionProgress(Arc::clone(&self.wait))
    }

    /// Returns about how much memory it takes at most, without its pages.
    pub fn n_bytes(&self) -> usize {
        self.wait.n_bytes()
    }

    /// Waits until there may be events for [`Self::next_page`], and reads none. A server can find
    /// memory for a page between the two.
    pub async fn ready(&mut self) -> Result<()> {
        poll_fn(|context| self.poll_ready(context)).await
    }

    /// Returns the next events, read on a thread of the library. There may be none, if the
    /// subscription is at the head of the log or if none of those that it looked at is for it. A call
    /// that is dropped before it returns loses nothing.
    pub async fn next_page(&mut self) -> Result<Vec<Event>> {
        poll_fn(|context| self.poll_page(context)).await
    }

    /// Returns the next events; none if none came in this time. Blocks the thread.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Vec<Event>> {
        if !self.events.as_slice().is_empty() {
            return Ok(self.events.by_ref().collect());
        }
        // A page that is being read was not counted as seen: it is read again.
        self.progress = FollowState::Idle;
        let engine = self.engine()?;
        let began = engine.clock().steady();
        // Commits are answered first, and their subscribers told then: what was answered is there.
        self.is_behind |= engine.writer.head() > engine.writer.waiting.told();
        drop(engine);
        loop {
            let engine = self.engine()?;
            let left = timeout.saturating_sub(engine.clock().since(began));
            if self.has_more(&engine) {
                self.wait_from_here(&engine);
                let page = read_page(&engine, &self.selection, self.bytes_max)?;
                let events = self.advance(page);
                if !events.is_empty() || self.is_behind && left.is_zero() {
                    return Ok(events);
                }
                continue;
            }
            drop(engine);
            if self.place.is_some() && !self.wait.wait(left) {
                return Ok(Vec::new());
            }
        }
    }

    /// Returns the generation that it follows, as long as that is the current one.
    fn engine(&self) -> Result<Arc<Engine>> {
        let engine = self.database.engine()?;
        if engine.generation != self.generation {
            return Err(Error::Closed("all events were removed".into()));
        }
        Ok(engine)
    }

    /// Returns whether there may be more to read. If not, it has taken its place among those who wait,
    /// unless the engine is not the current one any more.
    fn has_more(&mut self, engine: &Engine) -> bool {
        if self.is_behind {
            return true;
        }
        if self.place.is_some() {
            match self.wait.news() {
                None => return false,
                // Nothing before it was for this subscription.
                Some(position) if position > self.seen => {
                    self.is_behind = true;
                    self.skip_to(position);
                    return true;
                }
                // It was seen already, or the log has ended.
                Some(_) => {}
            }
        }
        self.take_place(engine);
        self.is_behind = self.place.is_some() && engine.writer.head() > self.seen;
        self.is_behind
    }

    fn take_place(&mut self, engine: &Engine) {
        // One who has two would be told of what concerns the old one.
        self.place = None;
        let head = || engine.writer.head();
        self.place = engine.writer.waiting.enter(&self.wait, head);
    }

    /// Takes its place among those who wait before a page is read, if that may be the last one.
    fn wait_from_here(&mut self, engine: &Engine) {
        let is_waiting = self.place.is_some() && self.wait.has_no_news();
        let left = engine.writer.head().saturating_sub(self.position());
        if is_waiting {
            return;
        }
        match left <= PAGE_EVENTS as u64 {
            true => self.take_place(engine),
            false => self.place = None,
        }
    }

    /// Goes on at a position, as nothing before it is selected.
    fn skip_to(&mut self, position: u64) {
        self.seen = position - 1;
        match self.selection.from {
            // The place in the stream may be one that is still to come.
            StartAt::StreamPosition(_) => {}
            _ => self.selection.from = StartAt::Position(self.position_after(self.seen)),
        }
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        loop {
            let has_page = matches!(self.progress, FollowState::Reading(_));
            if has_page || !self.events.as_slice().is_empty() {
                return Poll::Ready(Ok(()));
            }
            let engine = self.engine()?;
            if self.has_more(&engine) {
                return Poll::Ready(Ok(()));
            }
            drop(engine);
            if self.place.is_some() {
                ready!(self.wait.poll(context));
            }
        }
    }

    fn poll_page(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<Event>>> {
        if !self.events.as_slice().is_empty() {
            return Poll::Ready(Ok(self.events.by_ref().collect()));
        }
        let mut page = match std::mem::replace(&mut self.progress, FollowState::Idle) {
            FollowState::Reading(page) => page,
            _ => self.start_reading()?,
        };
        let Poll::Ready(page) = Pin::new(&mut page).poll(context) else {
            self.progress = FollowState::Reading(page);
            return Poll::Pending;
        };
        let page = page.unwrap_or_else(|_| Err(abandoned()))?;
        Poll::Ready(Ok(self.advance(page)))
    }

    fn start_reading(&mut self) -> Result<AsyncReceiver<Result<Page>>> {
        let engine = self.engine()?;
        self.wait_from_here(&engine);
        let (reply, page) = oneshot::async_channel();
        let (selection, bytes_max) = (self.selection.clone(), self.bytes_max);
        let reader = Arc::clone(&engine);
        let lane = match engine.may_wait {
            true => Lane::Wait,
            false => Lane::Follow,
        };
        engine.background.run(lane, engine.tenant(), move || {
            // The subscriber may have gone.
            if !reply.is_closed() {
                let _ = reply.send(read_page(&reader, &selection, bytes_max));
            }
        });
        Ok(page)
    }

    /// Goes on to what comes after a page, and returns its events.
    fn advance(&mut self, page: Page) -> Vec<Event> {
        self.is_behind = page.next.is_some();
        self.seen = page.head;
        match page.next {
            Some(next) => self.selection.from = StartAt::Position(next),
            // Everything up to the head was looked at. A stream that does not reach the wanted
            // place yet is asked for that place again.
            _ if matches!(self.selection.from, StartAt::StreamPosition(_))
                && page.events.is_empty() => {}
            _ => self.selection.from = StartAt::Position(self.position_after(page.head)),
        }
        page.events
    }

    /// Returns the position after `head`, or where the subscription begins if that is still ahead.
    fn position_after(&self, head: u64) -> u64 {
        match self.selection.from {
            StartAt::Position(position) => position.max(head + 1),
            _ => head + 1,
        }
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Event>> {
        loop {
            if let Some(event) = self.events.next() {
                return Poll::Ready(Ok(event));
            }
            ready!(self.poll_ready(context))?;
            self.events = ready!(self.poll_page(context))?.into_iter();
        }
    }
}

impl Stream for Subscription {
    type Item = Result<Event>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if matches!(this.progress, FollowState::Ended) {
            return Poll::Ready(None);
        }
        let event = ready!(this.poll_event(context));
        if event.is_err() {
            this.progress = FollowState::Ended;
        }
        Poll::Ready(Some(event))
    }
}

/// How far a subscription comes while it waits.
#[derive(Debug, Clone)]
pub struct SubscriptionProgress(Arc<SubscriberWait>);

impl SubscriptionProgress {
    /// Returns the position up to which the log has nothing more for the subscription, as of the last time
    /// that it waited: it moves on while others write what is not for it. 0 if it has never waited.
    pub fn position(&self) -> u64 {
        self.0.slept_to()
    }
}

fn read_page(engine: &Engine, selection: &Selection, bytes_max: usize) -> Result<Page> {
    read::execute(&LogMoment::new(engine), selection, bytes_max)
}
