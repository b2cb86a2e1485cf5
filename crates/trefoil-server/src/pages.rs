//! A read taken page by page, so that it needs little memory whatever its events weigh.
//!
//! Pages end where the log ended when the read began: events that are written meanwhile do not
//! make it longer.

use trefoil::{Direction, Event, From, OpenDatabase, Read, Source};

use crate::error::Result;
use crate::limits::PAGE_BYTES;

/// What is left of a read.
#[derive(Debug)]
pub(crate) struct Pages {
    database: OpenDatabase,
    /// Its limit is the number of events that are still wanted.
    read: Read,
    head: u64,
}

impl Pages {
    pub(crate) fn new(database: OpenDatabase, read: Read) -> Self {
        let head = database.head();
        Self {
            database,
            read,
            head,
        }
    }

    /// The next events; empty at the end. Blocks the thread for the length of one page.
    pub(crate) fn next_page(&mut self) -> Result<Vec<Event>> {
        if self.is_done() {
            return Ok(Vec::new());
        }
        let page = self.database.read_page(&self.read, PAGE_BYTES)?;
        let mut events = page.events;
        events.retain(|event| event.position() <= self.head);
        self.read.limit -= events.len();
        match events.last() {
            Some(last) if page.is_cut => self.go_on_after(last),
            _ => self.read.limit = 0,
        }
        Ok(events)
    }

    /// Whether there is nothing left.
    pub(crate) fn is_done(&self) -> bool {
        self.read.limit == 0
    }

    fn go_on_after(&mut self, last: &Event) {
        let in_stream = matches!(self.read.source, Source::Stream(_));
        let position = match last.stream_position() {
            Some(position) if in_stream => position,
            _ => last.position(),
        };
        let next = match self.read.direction {
            Direction::Forwards => position.checked_add(1),
            Direction::Backwards => position.checked_sub(1),
        };
        match next {
            Some(next) if in_stream => self.read.from = From::StreamPosition(next),
            Some(next) => self.read.from = From::Position(next),
            None => self.read.limit = 0,
        }
    }
}
