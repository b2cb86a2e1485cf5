//! A read taken page by page, so that it needs little memory whatever its events weigh.
//!
//! Pages end where the log ended when the read began: events that are written meanwhile do not
//! make it longer.

use trefoil::{Event, OpenDatabase, Selection, StartAt};

use crate::error::Result;
use crate::limits::{PAGE_BYTES, SHORT_READ_EVENTS_MAX};

/// What is left of a read.
#[derive(Debug)]
pub(crate) struct Pages {
    database: OpenDatabase,
    /// Its limit is the number of events that are still wanted.
    read: Selection,
    head: u64,
}

impl Pages {
    pub(crate) fn new(database: OpenDatabase, read: Selection) -> Result<Self> {
        let head = database.head()?;
        Ok(Self::as_of(database, read, head))
    }

    /// The same, as of a position that the log has.
    pub(crate) fn as_of(database: OpenDatabase, read: Selection, head: u64) -> Self {
        Self {
            // The next page could not be had of another node.
            database: database.staying(),
            read: read.as_of(head),
            head,
        }
    }

    /// The database that is read.
    pub(crate) fn database(&self) -> &OpenDatabase {
        &self.database
    }

    /// Where the log ended when the read began.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Returns whether one page is likely to be all, and to be read at once.
    pub(crate) fn is_short(&self) -> bool {
        self.read.limit <= SHORT_READ_EVENTS_MAX && !self.database.may_wait()
    }

    /// The next events; there may be none before the end. Blocks the thread for the length of one page.
    pub(crate) fn next_page(&mut self) -> Result<Vec<Event>> {
        if self.is_done() {
            return Ok(Vec::new());
        }
        let page = self.database.read_page(&self.read, PAGE_BYTES)?;
        self.read.limit -= page.events.len();
        match page.next {
            Some(next) => self.read.from = StartAt::Position(next),
            None => self.read.limit = 0,
        }
        Ok(page.events)
    }

    /// Returns whether there is nothing left.
    pub(crate) fn is_done(&self) -> bool {
        self.read.limit == 0
    }
}
