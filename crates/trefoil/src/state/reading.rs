//! The durable entries of a moment, for commands that only read.

use bytes::Bytes;
use trefoil_core::{Direction, Result};
use trefoil_state::{Space, SpaceScan};

use super::store::{StateStore, StoreReader};

/// Durable entries that stay as they are.
#[derive(Debug)]
pub(crate) struct DurableView {
    reader: StoreReader,
    /// Whether somebody wanted to change something.
    pub(crate) is_written_to: bool,
}

impl DurableView {
    pub(crate) fn new(store: &StateStore) -> Self {
        Self {
            reader: store.read(),
            is_written_to: false,
        }
    }

    /// Returns the entries for a thread that must not wait for the disk: if that is slow, those that are
    /// not in memory are errors.
    pub(crate) fn at_hand(store: &StateStore) -> Self {
        let mut view = Self::new(store);
        if store.is_slow_to_read() {
            view.reader = view.reader.at_hand();
        }
        view
    }

    /// Returns whether something was not in memory.
    pub(crate) fn is_short(&self) -> bool {
        self.reader.is_short()
    }

    /// Returns the entries, and what `at` finds out about the same moment.
    pub(crate) fn at<T>(store: &StateStore, at: impl FnOnce() -> T) -> (Self, T) {
        let (reader, found) = store.read_at(at);
        let view = Self {
            reader,
            is_written_to: false,
        };
        (view, found)
    }
}

impl Space for DurableView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.reader.get(key)
    }

    fn set(&mut self, _: Bytes, _: Option<Bytes>) -> Result<()> {
        self.is_written_to = true;
        Ok(())
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> SpaceScan<'_> {
        match from < to {
            true => self.reader.scan(from, to, direction, std::iter::empty()),
            false => Box::new(std::iter::empty()),
        }
    }

    fn touch(&mut self, _: &Bytes) {}

    fn touch_all(&mut self) {}

    fn due(&mut self, _: u64) {}

    fn garbage(&mut self, _: &Bytes) {}
}
