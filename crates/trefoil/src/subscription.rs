//! Following events from any position on, from the past into the present.
//!
//! A subscription is a read that goes on: it reads the log up to its head, then waits for the head
//! to move. It keeps a position and nothing else, so a slow subscriber costs the writer nothing and
//! misses nothing.

use std::time::{Duration, Instant};

use event_listener::Listener as _;
use trefoil_core::{Direction, Error, Event, From, Read, Result};

use crate::{Database, read};

/// How many events, and about how many bytes of them, are handed over at a time at most.
const BATCH_EVENTS: usize = 256;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Events from any position on, without gap, duplicate or reordering.
#[derive(Debug)]
pub struct Subscription {
    database: Database,
    generation: u64,
    read: Read,
}

impl Subscription {
    pub(crate) fn new(database: Database, generation: u64, mut read: Read) -> Self {
        read.direction = Direction::Forwards;
        read.limit = BATCH_EVENTS;
        Self {
            database,
            generation,
            read,
        }
    }

    /// The next events if there are any already; empty if the subscription is at the head.
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
            BATCH_BYTES,
        )?;
        match page.events.last() {
            Some(last) if page.is_cut => self.read.from = From::Position(last.position() + 1),
            // Everything up to the head was looked at. A stream that does not reach the wanted
            // place yet is asked for that place again.
            _ if matches!(self.read.from, From::StreamPosition(_)) && page.events.is_empty() => {}
            _ => self.read.from = From::Position(self.next_position(head)),
        }
        Ok(page.events)
    }

    /// The position after `head`, or where the subscription begins if that is still ahead.
    fn next_position(&self, head: u64) -> u64 {
        match self.read.from {
            From::Position(position) => position.max(head + 1),
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
            changed.await;
        }
    }

    /// Waits for the next events, at most this long; empty if none came. Blocks the thread.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Vec<Event>> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let engine = self.database.engine()?;
            let changed = engine.writer.changed.listen();
            drop(engine);
            let events = self.try_next()?;
            let is_over = || match deadline {
                Some(deadline) => changed.wait_deadline(deadline).is_none(),
                None => {
                    changed.wait();
                    false
                }
            };
            if !events.is_empty() || is_over() {
                return Ok(events);
            }
        }
    }
}
