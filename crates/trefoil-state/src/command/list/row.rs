//! How a list lies in the entries: each element under a number, the numbers without gaps.
//!
//! The numbers begin anywhere and may be negative, so that both ends grow and shrink without
//! touching the rest. What changes the middle moves the elements of the shorter side.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use trefoil_core::Direction;

use crate::error::Result;
use crate::keyspace::{FoundCollection, Keyspace, damaged};
use crate::meta::ValueKind;
use crate::named::AFTER_NAMED;

/// One of the ends of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::command) enum End {
    Left,
    Right,
}

/// The elements of a list.
#[derive(Debug, Clone, Copy)]
pub(in crate::command) struct ListRow {
    found: FoundCollection,
}

impl ListRow {
    /// The list under a key.
    pub(in crate::command) fn find(keyspace: &Keyspace<'_>, key: &[u8]) -> Result<Option<Self>> {
        let found = keyspace.collection(key, ValueKind::List)?;
        Ok(found.map(|found| Self { found }))
    }

    /// Returns the list under a key, or a new one.
    pub(super) fn find_or_new(keyspace: &mut Keyspace<'_>, key: &[u8]) -> Result<Self> {
        let found = keyspace.collection_or_new(key, ValueKind::List)?;
        Ok(Self { found })
    }

    /// A new list, in the place of whatever will be under its key.
    pub(in crate::command) fn new(keyspace: &mut Keyspace<'_>) -> Self {
        let found = keyspace.new_collection(ValueKind::List);
        Self { found }
    }

    /// Remembers under the key where the list begins and ends now, and that it was changed.
    pub(in crate::command) fn save(&self, keyspace: &mut Keyspace<'_>, key: &Bytes) -> Result<()> {
        keyspace.put_collection(key, &self.found)
    }

    /// How many elements there are.
    pub(in crate::command) fn len(&self) -> u64 {
        self.found.collection.len
    }

    /// Returns the index that a client means, which counts from the end if it is negative.
    pub(super) fn index(&self, index: i64) -> Option<u64> {
        let index = match u64::try_from(index) {
            Ok(index) => Some(index),
            Err(_) => self.len().checked_sub(index.unsigned_abs()),
        };
        index.filter(|index| *index < self.len())
    }

    /// Returns the element at an index.
    pub(super) fn get(&self, keyspace: &Keyspace<'_>, index: u64) -> Result<Bytes> {
        let element = keyspace.element(self.found.collection.id, &self.place(index))?;
        Ok(element.ok_or_else(|| damaged("an element of a list"))?)
    }

    /// Puts an element at an index.
    pub(super) fn set(
        &self,
        keyspace: &mut Keyspace<'_>,
        index: u64,
        element: Bytes,
    ) -> Result<()> {
        keyspace.set_element(self.found.collection.id, &self.place(index), Some(element))
    }

    fn clear(&self, keyspace: &mut Keyspace<'_>, index: u64) -> Result<()> {
        keyspace.set_element(self.found.collection.id, &self.place(index), None)
    }

    /// The elements of a range of indexes, in either direction.
    pub(in crate::command) fn elements<'s, 'a>(
        &self,
        keyspace: &'s Keyspace<'a>,
        range: Range<u64>,
        direction: Direction,
    ) -> impl Iterator<Item = Result<Bytes>> + use<'s, 'a> {
        let (from, to) = (self.place(range.start), self.place(range.end));
        let id = self.found.collection.id;
        let elements = keyspace.elements(id, &from, Some(&to), direction);
        elements.map(|element| element.map(|(_, value)| value))
    }

    /// Makes room at one end.
    fn grow(&mut self, end: End) {
        self.found.collection.len += 1;
        if end == End::Left {
            self.found.collection.extra = self.found.collection.extra.wrapping_sub(1);
        }
    }

    /// Gives up elements at one end, which are no more.
    fn shrink(&mut self, end: End, n: u64) {
        self.found.collection.len = self.len().saturating_sub(n);
        if end == End::Left {
            self.found.collection.extra = self.found.collection.extra.wrapping_add_unsigned(n);
        }
    }

    /// Adds an element at one end.
    pub(in crate::command) fn push(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        end: End,
        element: Bytes,
    ) -> Result<()> {
        self.grow(end);
        let index = match end {
            End::Left => 0,
            End::Right => self.len().saturating_sub(1),
        };
        self.set(keyspace, index, element)
    }

    /// Removes this many elements at one end; there are as many.
    pub(super) fn drop(&mut self, keyspace: &mut Keyspace<'_>, end: End, n: u64) -> Result<()> {
        // All of them go with the key.
        if n < self.len() {
            for offset in 0..n {
                let index = match end {
                    End::Left => offset,
                    End::Right => self.len() - 1 - offset,
                };
                self.clear(keyspace, index)?;
            }
        }
        self.shrink(end, n);
        Ok(())
    }

    /// Puts an element before the one at this index.
    pub(super) fn insert(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        index: u64,
        element: Bytes,
    ) -> Result<()> {
        if index < self.len() / 2 {
            self.grow(End::Left);
            for moved in 0..index {
                let element = self.get(keyspace, moved + 1)?;
                self.set(keyspace, moved, element)?;
            }
        } else {
            let len = self.len();
            self.grow(End::Right);
            for moved in (index..len).rev() {
                let element = self.get(keyspace, moved)?;
                self.set(keyspace, moved + 1, element)?;
            }
        }
        self.set(keyspace, index, element)
    }

    /// Removes the elements at these indexes, which ascend, and closes the gaps.
    pub(super) fn remove(&mut self, keyspace: &mut Keyspace<'_>, indexes: &[u64]) -> Result<()> {
        let (Some(first), Some(last)) = (indexes.first(), indexes.last()) else {
            return Ok(());
        };
        let n_removed = indexes.len() as u64;
        if n_removed == self.len() {
            self.shrink(End::Right, n_removed);
            return Ok(());
        }
        if *last < self.len() - first {
            self.close(keyspace, (0..=*last).rev(), indexes.iter().rev())?;
            self.drop(keyspace, End::Left, n_removed)
        } else {
            self.close(keyspace, *first..self.len(), indexes.iter())?;
            self.drop(keyspace, End::Right, n_removed)
        }
    }

    /// Moves elements, in the order of a walk, over those that are removed.
    fn close<'i>(
        &self,
        keyspace: &mut Keyspace<'_>,
        walk: impl Iterator<Item = u64> + Clone,
        removed: impl Iterator<Item = &'i u64>,
    ) -> Result<()> {
        let mut removed = removed.peekable();
        let mut to = walk.clone();
        for index in walk {
            if removed.next_if(|removed| **removed == index).is_some() {
                continue;
            }
            let element = self.get(keyspace, index)?;
            if let Some(to) = to.next() {
                self.set(keyspace, to, element)?;
            }
        }
        Ok(())
    }

    /// Returns the place of an index: offset so that negative numbers are before the others.
    fn place(&self, index: u64) -> Bytes {
        let number = self.found.collection.extra.wrapping_add_unsigned(index);
        let mut place = BytesMut::with_capacity(AFTER_NAMED.len() + size_of::<i64>());
        place.put_slice(AFTER_NAMED);
        place.put_i64(number ^ i64::MIN);
        place.freeze()
    }
}
