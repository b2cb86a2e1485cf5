//! The elements of a list, which are in counted [blocks](crate::blocks).
//!
//! Those of a list that version 0.1.0 wrote may have an entry each, under numbers without gaps. They
//! come after the ones in blocks, and move there bit by bit.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use trefoil_core::Direction;

use crate::blocks::{BlockTree, Sought, TAKEN_MAX};
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
    tree: BlockTree,
}

/// Where an element of a list is.
enum ElementPlace {
    /// In a block, at this index.
    Block(u64),
    /// In an entry of its own.
    Single(Bytes),
}

impl ListRow {
    fn new_of(found: FoundCollection) -> Self {
        let tree = found.collection.tree();
        Self { found, tree }
    }

    /// The list under a key.
    pub(in crate::command) fn find(keyspace: &Keyspace<'_>, key: &[u8]) -> Result<Option<Self>> {
        let found = keyspace.collection(key, ValueKind::List)?;
        Ok(found.map(Self::new_of))
    }

    /// Returns the list under a key, which is to be changed.
    pub(super) fn find_to_change(keyspace: &mut Keyspace<'_>, key: &Bytes) -> Result<Option<Self>> {
        let Some(mut row) = Self::find(keyspace, key)? else {
            return Ok(None);
        };
        if row.n_single() > 0 {
            row.take_into_blocks(keyspace, TAKEN_MAX)?;
            keyspace.put_same(key, &row.kept())?;
        }
        Ok(Some(row))
    }

    /// Returns the list under a key, or a new one.
    pub(super) fn find_or_new(keyspace: &mut Keyspace<'_>, key: &Bytes) -> Result<Self> {
        match Self::find_to_change(keyspace, key)? {
            Some(row) => Ok(row),
            None => Ok(Self::new(keyspace)),
        }
    }

    /// A new list, in the place of whatever will be under its key.
    pub(in crate::command) fn new(keyspace: &mut Keyspace<'_>) -> Self {
        Self::new_of(keyspace.new_collection(ValueKind::List))
    }

    /// Remembers under the key what the list is now, and that it was changed.
    pub(in crate::command) fn save(&self, keyspace: &mut Keyspace<'_>, key: &Bytes) -> Result<()> {
        keyspace.put_collection(key, &self.kept())
    }

    /// Returns what is remembered of the list as it is now.
    fn kept(&self) -> FoundCollection {
        let mut found = self.found;
        found.collection.keep(&self.tree);
        found
    }

    /// How many elements there are.
    pub(in crate::command) fn len(&self) -> u64 {
        self.tree.len + self.n_single()
    }

    fn n_single(&self) -> u64 {
        self.found.collection.n_single
    }

    /// Takes up to this many of the elements that have an entry each into blocks.
    fn take_into_blocks(&mut self, keyspace: &mut Keyspace<'_>, n_max: u64) -> Result<()> {
        if self.n_single() == 0 {
            return Ok(());
        }
        let element_of = |(_, value): &(_, Bytes)| value.clone();
        let n_taken = keyspace.take_into_blocks(&mut self.tree, n_max, element_of)?;
        self.shrink_singles(End::Left, n_taken);
        Ok(())
    }

    /// Takes all elements before an index into blocks.
    fn take_up_to(&mut self, keyspace: &mut Keyspace<'_>, index: u64) -> Result<()> {
        let n_missing = index.saturating_sub(self.tree.len);
        self.take_into_blocks(keyspace, n_missing)
    }

    /// Gives up elements that have an entry each, which are no more.
    fn shrink_singles(&mut self, end: End, n: u64) {
        let collection = &mut self.found.collection;
        collection.n_single = collection.n_single.saturating_sub(n);
        if end == End::Left {
            collection.extra = collection.extra.wrapping_add_unsigned(n);
        }
    }

    /// Returns the index that a client means, which counts from the end if it is negative.
    pub(super) fn index(&self, index: i64) -> Option<u64> {
        let index = match u64::try_from(index) {
            Ok(index) => Some(index),
            Err(_) => self.len().checked_sub(index.unsigned_abs()),
        };
        index.filter(|index| *index < self.len())
    }

    fn place(&self, index: u64) -> ElementPlace {
        match index.checked_sub(self.tree.len) {
            None => ElementPlace::Block(index),
            Some(number) => ElementPlace::Single(self.single_place(number)),
        }
    }

    /// Returns the element at an index.
    pub(super) fn get(&self, keyspace: &Keyspace<'_>, index: u64) -> Result<Bytes> {
        match self.place(index) {
            ElementPlace::Block(index) => self.tree.get(keyspace, index),
            ElementPlace::Single(place) => {
                let element = keyspace.element(self.tree.id, &place)?;
                Ok(element.ok_or_else(|| damaged("an element of a list"))?)
            }
        }
    }

    /// Puts an element at an index, in the place of the one that is there.
    pub(super) fn set(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        index: u64,
        element: Bytes,
    ) -> Result<()> {
        match self.place(index) {
            ElementPlace::Block(index) => self.tree.replace(keyspace, index, &element),
            ElementPlace::Single(place) => {
                keyspace.set_element(self.tree.id, &place, Some(element))
            }
        }
    }

    /// The elements of a range of indexes, in either direction.
    pub(in crate::command) fn elements<'s, 'a>(
        &self,
        keyspace: &'s Keyspace<'a>,
        range: Range<u64>,
        direction: Direction,
    ) -> impl Iterator<Item = Result<Bytes>> + use<'s, 'a> {
        let n_blocks = self.tree.len;
        let in_blocks = range.start.min(n_blocks)..range.end.min(n_blocks);
        let in_blocks = self.tree.walk(keyspace, in_blocks, direction);
        let singles = (range.end > n_blocks).then(|| {
            let from = self.single_place(range.start.saturating_sub(n_blocks));
            let to = self.single_place(range.end - n_blocks);
            let elements = keyspace.elements(self.tree.id, &from, Some(&to), direction);
            elements.map(|element| element.map(|(_, value)| value))
        });
        let (first, last) = match direction {
            Direction::Forwards => (None, singles),
            Direction::Backwards => (singles, None),
        };
        let (first, last) = (first.into_iter().flatten(), last.into_iter().flatten());
        first.chain(in_blocks).chain(last)
    }

    /// Adds elements at one end, one after the other.
    pub(in crate::command) fn push(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        end: End,
        elements: &[Bytes],
    ) -> Result<()> {
        if end == End::Right && self.n_single() > 0 {
            for element in elements {
                let place = self.single_place(self.n_single());
                keyspace.set_element(self.tree.id, &place, Some(element.clone()))?;
                self.found.collection.n_single += 1;
            }
            return Ok(());
        }
        match end {
            End::Left => self.insert_all(keyspace, 0, elements.iter().rev()),
            End::Right => self.insert_all(keyspace, self.tree.len, elements.iter()),
        }
    }

    fn insert_all<'e>(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        index: u64,
        elements: impl Iterator<Item = &'e Bytes>,
    ) -> Result<()> {
        let path = self.tree.find(keyspace, Sought::Index(index))?;
        self.tree
            .insert(keyspace, path, elements.map(AsRef::as_ref))
    }

    /// Removes this many elements at one end; there are as many.
    pub(super) fn drop(&mut self, keyspace: &mut Keyspace<'_>, end: End, n: u64) -> Result<()> {
        // All of them go with the key.
        if n == self.len() {
            self.tree.len = 0;
            self.found.collection.n_single = 0;
            return Ok(());
        }
        let (n_blocks, n_single) = match end {
            End::Left => (n.min(self.tree.len), n.saturating_sub(self.tree.len)),
            End::Right => (n.saturating_sub(self.n_single()), n.min(self.n_single())),
        };
        for offset in 0..n_single {
            let number = match end {
                End::Left => offset,
                End::Right => self.n_single() - 1 - offset,
            };
            let place = self.single_place(number);
            keyspace.set_element(self.tree.id, &place, None)?;
        }
        self.shrink_singles(end, n_single);
        match end {
            End::Left => self.tree.remove(keyspace, 0..n_blocks),
            End::Right => {
                let len = self.tree.len;
                self.tree.remove(keyspace, len - n_blocks..len)
            }
        }
    }

    /// Puts an element before the one at this index.
    pub(super) fn insert(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        index: u64,
        element: &Bytes,
    ) -> Result<()> {
        self.take_up_to(keyspace, index)?;
        self.insert_all(keyspace, index, std::iter::once(element))
    }

    /// Removes the elements at these indexes, which ascend.
    pub(super) fn remove(&mut self, keyspace: &mut Keyspace<'_>, indexes: &[u64]) -> Result<()> {
        let n_removed = indexes.len() as u64;
        if n_removed == self.len() {
            return self.drop(keyspace, End::Right, n_removed);
        }
        if let Some(last) = indexes.last() {
            self.take_up_to(keyspace, last + 1)?;
        }
        self.tree.remove(keyspace, indexes.iter().copied())
    }

    /// Returns the place of one of the elements that have an entry each: offset so that negative
    /// numbers are before the others.
    fn single_place(&self, index: u64) -> Bytes {
        let number = self.found.collection.extra.wrapping_add_unsigned(index);
        let mut place = BytesMut::with_capacity(AFTER_NAMED.len() + size_of::<i64>());
        place.put_slice(AFTER_NAMED);
        place.put_i64(number ^ i64::MIN);
        place.freeze()
    }
}
