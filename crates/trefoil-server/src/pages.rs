//! A read taken page by page, so that it needs little memory whatever its events weigh.
//!
//! Pages end where the log ended when the read began: events that are written meanwhile do not
//! make it longer.

use trefoil::{Database, Event, OpenDatabase, Page, Selection, StartAt};

use crate::error::Result;
use crate::limits::{PAGE_BYTES, SHORT_READ_EVENTS_MAX};

/// What is left of a read.
#[derive(Debug)]
pub(crate) struct Pages {
    database: OpenDatabase,
    /// Its limit is the number of events that are still wanted.
    read: Selection,
    head: u64,
    /// Whether a page has been read.
    has_begun: bool,
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
            has_begun: false,
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

    /// Returns whether the next page is likely to be all, and short.
    pub(crate) fn is_short(&self) -> bool {
        !self.has_begun && self.read.limit <= SHORT_READ_EVENTS_MAX
    }

    /// The next events, if they are likely to be few and need not be waited for.
    pub(crate) fn next_at_hand(&mut self) -> Result<Option<Vec<Event>>> {
        if !self.is_short() || self.is_done() {
            return Ok(None);
        }
        let read = |database: &Database| database.read_page(&self.read, PAGE_BYTES);
        let page = self.database.at_hand(read)?;
        Ok(page.map(|page| self.take(page)))
    }

    /// The next events; there may be none before the end. Blocks the thread for the length of one page.
    pub(crate) fn next_page(&mut self) -> Result<Vec<Event>> {
        if self.is_done() {
            return Ok(Vec::new());
        }
        let page = self.database.read_page(&self.read, PAGE_BYTES)?;
        Ok(self.take(page))
    }

    fn take(&mut self, page: Page) -> Vec<Event> {
        self.has_begun = true;
        self.read.limit -= page.events.len();
        match page.next {
            Some(next) => self.read.from = StartAt::Position(next),
            None => self.read.limit = 0,
        }
        page.events
    }

    /// Returns whether there is nothing left.
    pub(crate) fn is_done(&self) -> bool {
        self.read.limit == 0
    }
}
