//! Following events from any position on, from the past into the present.
//!
//! A subscription is a read that goes on: it reads the log up to its head, then waits for the head
//! to move. It keeps a position and nothing else, so a slow subscriber costs the writer nothing and
//! misses nothing.

use std::task::Poll;
use std::time::Duration;

use event_listener::Listener as _;
use trefoil_core::{Direction, Error, Event, Result, Selection, StartAt};

use crate::{Database, read};

/// How many events, and about how many bytes of them, are handed over at a time at most.
const BATCH_EVENTS: usize = 256;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Events from any position on, without gap, duplicate or reordering.
#[derive(Debug)]
pub struct Subscription {
    database: Database,
    generation: u64,
    read: Selection,
    /// Whether there is more of the log to look at before it is time to wait.
    is_behind: bool,
    /// Up to where the log was looked at.
    seen: u64,
    bytes_max: usize,
}

impl Subscription {
    pub(crate) fn new(database: Database, generation: u64, mut read: Selection) -> Self {
        read.direction = Direction::Forwards;
        read.limit = BATCH_EVENTS;
        read.as_of = None;
        Self {
            database,
            generation,
            read,
            is_behind: true,
            seen: 0,
            bytes_max: BATCH_BYTES,
        }
    }

    /// Hands over about so many bytes of events at a time, at most.
    #[must_use]
    pub fn in_batches_of(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// Waits until there may be events for [`Self::try_next`]. Fails as [`Self::next`] does.
    pub async fn ready(&self) -> Result<()> {
        loop {
            let engine = self.database.engine()?;
            let changed = engine.writer.changed.listen();
            let has_changed = engine.generation != self.generation;
            if self.is_behind || has_changed || engine.writer.head() > self.seen {
                return Ok(());
            }
            drop(engine);
            changed.await;
        }
    }

    /// The next events if there are any already; empty if the subscription is at the head, or if
    /// it looked at many events and none was for it.
    pub fn try_next(&mut self) -> Result<Vec<Event>> {
        let engine = self.database.engine()?;
        if engine.generation != self.generation {
            return Err(Error::Closed("all events were removed".into()));
        }
        let head = engine.writer.head();
        let layers = engine.index.layers();
        let page = read::execute(
            engine.storage.as_ref(),
            &layers,
            head,
            &self.read,
            self.bytes_max,
        )?;
        self.is_behind = page.next.is_some();
        self.seen = head;
        match page.next {
            Some(next) => self.read.from = StartAt::Position(next),
            // Everything up to the head was looked at. A stream that does not reach the wanted
            // place yet is asked for that place again.
            _ if matches!(self.read.from, StartAt::StreamPosition(_)) && page.events.is_empty() => {
            }
            _ => self.read.from = StartAt::Position(self.next_position(head)),
        }
        Ok(page.events)
    }

    /// The position after `head`, or where the subscription begins if that is still ahead.
    fn next_position(&self, head: u64) -> u64 {
        match self.read.from {
            StartAt::Position(position) => position.max(head + 1),
            _ => head + 1,
        }
    }

    /// Waits for the next events. Fails with [`Error::Closed`] when the database is closed,
    /// deleted or cleared. A call that is dropped before it returns loses nothing.
    pub async fn next(&mut self) -> Result<Vec<Event>> {
        loop {
            let engine = self.database.engine()?;
            let changed = engine.writer.changed.listen();
            drop(engine);
            let events = self.try_next()?;
            if !events.is_empty() {
                return Ok(events);
            }
            if self.is_behind {
                let_others_run().await;
            } else {
                changed.await;
            }
        }
    }

    /// Waits for the next events, at most this long; empty if none came. Blocks the thread.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Vec<Event>> {
        let mut began = None;
        loop {
            let engine = self.database.engine()?;
            let changed = engine.writer.changed.listen();
            let began = *began.get_or_insert_with(|| engine.clock().steady());
            let left = timeout.saturating_sub(engine.clock().since(began));
            drop(engine);
            let events = self.try_next()?;
            if events.is_empty() && self.is_behind && !left.is_zero() {
                continue;
            }
            if !events.is_empty() || changed.wait_timeout(left).is_none() {
                return Ok(events);
            }
        }
    }
}

/// Gives way once to whatever else the runtime has to do.
async fn let_others_run() {
    let mut has_yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
