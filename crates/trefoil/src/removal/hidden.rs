//! What a read asks about each event that it finds: whether it was removed.

use std::cell::{OnceCell, RefCell};

use hashbrown::HashMap;
use trefoil_core::{Event, Result};

use super::entries::stream_removal;
use crate::state::{StateStore, StoreReader};

/// How many floors are remembered.
const FLOORS_MAX: usize = 4096;

/// The events that are hidden from a read, which are those that were removed when it began.
#[derive(Debug)]
pub(crate) struct HiddenEvents<'a> {
    store: &'a StateStore,
    highest_floor: u64,
    /// The entries as they were when they were needed first.
    entries: OnceCell<StoreReader>,
    /// The floors of streams that were asked for.
    floors: RefCell<HashMap<String, u64>>,
}

impl<'a> HiddenEvents<'a> {
    pub(crate) fn new(store: &'a StateStore) -> Self {
        Self {
            store,
            highest_floor: store.highest_floor(),
            entries: OnceCell::new(),
            floors: RefCell::default(),
        }
    }

    /// Returns whether an event at or after this position can be hidden.
    pub(crate) fn reach(&self, position: u64) -> bool {
        position < self.highest_floor
    }

    /// Returns the first position that a stream keeps.
    pub(crate) fn floor(&self, stream: &str) -> Result<u64> {
        if self.highest_floor == 0 {
            return Ok(0);
        }
        let mut floors = self.floors.borrow_mut();
        if let Some(floor) = floors.get(stream) {
            return Ok(*floor);
        }
        let entries = self.entries.get_or_init(|| self.store.read());
        let removal = stream_removal(entries, stream)?;
        let floor = removal.map_or(0, |removal| removal.floor);
        if floors.len() >= FLOORS_MAX {
            floors.clear();
        }
        floors.insert(stream.to_owned(), floor);
        Ok(floor)
    }

    /// Returns whether an event was removed.
    pub(crate) fn contain(&self, event: &Event) -> Result<bool> {
        match event.stream() {
            Some(stream) if self.reach(event.position()) => {
                Ok(event.position() < self.floor(stream)?)
            }
            _ => Ok(false),
        }
    }

    /// Returns an event as it may be shown: its stub, if it was redacted.
    pub(crate) fn shown(&self, event: Event) -> Event {
        self.store.redactions.shown(event)
    }

    /// Returns whether the index may have terms of events that they do not have any more.
    pub(crate) fn have_lost_terms(&self) -> bool {
        self.store.redactions.have_been()
    }

    /// Returns whether the log may have dropped the event at this position, also since the read
    /// began.
    pub(crate) fn may_be_dropped(&self, position: u64) -> bool {
        position < self.store.highest_floor()
    }
}
