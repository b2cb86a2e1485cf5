//! What state stands on: ordered entries, bytes under bytes.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use trefoil_core::{Direction, Result};

/// An ordered walk over entries.
pub type SpaceScan<'a> = Box<dyn Iterator<Item = Result<(Bytes, Bytes)>> + 'a>;

/// Ordered entries that can be read and changed.
pub trait Space {
    /// Returns the value of an entry.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// Gives an entry a value, or removes it.
    fn set(&mut self, key: Bytes, value: Option<Bytes>) -> Result<()>;

    /// Returns the entries with `from <= key < to`, in either direction.
    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> SpaceScan<'_>;

    /// Notes that something under this key of the user was changed.
    fn touch(&mut self, key: &Bytes);

    /// Notes that everything was removed.
    fn touch_all(&mut self);

    /// Removes an entry that is known to be there.
    fn remove(&mut self, key: Bytes) -> Result<()> {
        self.set(key, None)
    }

    /// Notes that something expires at this time, in milliseconds since 1970.
    fn due(&mut self, time: u64);

    /// Notes that there is garbage, and the name of the entry that says so.
    fn garbage(&mut self, name: &Bytes);
}

/// Entries in memory and nothing else: for tests and for trying things out.
pub type MemorySpace = BTreeMap<Bytes, Bytes>;

impl Space for MemorySpace {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(BTreeMap::get(self, key).cloned())
    }

    fn set(&mut self, key: Bytes, value: Option<Bytes>) -> Result<()> {
        match value {
            Some(value) => self.insert(key, value),
            None => self.remove(&key),
        };
        Ok(())
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> SpaceScan<'_> {
        if from >= to {
            return Box::new(std::iter::empty());
        }
        let range = self.range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)));
        let own = |(key, value): (&Bytes, &Bytes)| Ok((key.clone(), value.clone()));
        match direction {
            Direction::Forwards => Box::new(range.map(own)),
            Direction::Backwards => Box::new(range.rev().map(own)),
        }
    }

    fn touch(&mut self, _: &Bytes) {}

    fn touch_all(&mut self) {}

    fn due(&mut self, _: u64) {}

    fn garbage(&mut self, _: &Bytes) {}
}
