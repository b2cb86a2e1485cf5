//! Things by name, found with as few visits to memory as possible.
//!
//! A tail has far more terms than the processor's caches hold, and each event goes to several of
//! them. The table of slots is small enough to stay in the caches; what it leads to has the name and
//! the thing side by side, and most names in place.

use std::hash::BuildHasher as _;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

/// The things.
#[derive(Debug)]
pub(crate) struct ByName<T> {
    slots: HashTable<NameSlot>,
    /// In the order in which they came.
    things: Vec<(TableName, T)>,
    hasher: DefaultHashBuilder,
    name_bytes: usize,
}

/// About how much memory a thing takes besides its name and what it refers to.
const THING_BYTES: usize = 160;

fn bytes_of(name: &[u8]) -> usize {
    THING_BYTES + name.len()
}

/// Where a thing is, and enough of the hash of its name to tell most others from it.
#[derive(Debug, Clone, Copy)]
struct NameSlot {
    hash: u32,
    index: u32,
}

impl NameSlot {
    /// Returns a hash as the table wants it: all of its bits count.
    fn spread(hash: u32) -> u64 {
        u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self {
            slots: HashTable::new(),
            things: Vec::new(),
            hasher: DefaultHashBuilder::default(),
            name_bytes: 0,
        }
    }
}

impl<T> ByName<T> {
    fn hash(&self, name: &str) -> u32 {
        (self.hasher.hash_one(name) >> 32) as u32
    }

    fn find(&self, name: &str) -> Option<usize> {
        let hash = self.hash(name);
        let is_it =
            |slot: &NameSlot| slot.hash == hash && self.things[slot.index as usize].0.is(name);
        let slot = self.slots.find(NameSlot::spread(hash), is_it)?;
        Some(slot.index as usize)
    }

    /// Returns the thing of this name, if there is one.
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.find(name).map(|place| &self.things[place].1)
    }

    /// Returns the place of the thing of this name; if there is none, of the one that `make` makes.
    pub(crate) fn place(&mut self, name: &str, make: impl FnOnce() -> T) -> usize {
        let hash = self.hash(name);
        let things = &mut self.things;
        let is_it = |slot: &NameSlot| slot.hash == hash && things[slot.index as usize].0.is(name);
        let rehash = |slot: &NameSlot| NameSlot::spread(slot.hash);
        match self.slots.entry(NameSlot::spread(hash), is_it, rehash) {
            Entry::Occupied(slot) => slot.get().index as usize,
            Entry::Vacant(slot) => {
                let index = things.len();
                things.push((TableName::new(name), make()));
                self.name_bytes += bytes_of(name.as_bytes());
                slot.insert(NameSlot {
                    hash,
                    index: index as u32,
                });
                index
            }
        }
    }

    /// Has the processor fetch what most likely has these names.
    pub(crate) fn touch<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let lengths = names.map(|name| {
            let hash = self.hash(name);
            let slot = self
                .slots
                .find(NameSlot::spread(hash), |slot| slot.hash == hash);
            slot.map_or(0, |slot| self.things[slot.index as usize].0.touch())
        });
        std::hint::black_box(lengths.fold(0, std::ops::BitXor::bitxor));
    }

    /// Returns the thing at a place.
    pub(crate) fn at(&self, place: usize) -> &T {
        &self.things[place].1
    }

    /// Returns the name at a place.
    pub(crate) fn name_at(&self, place: usize) -> &str {
        self.things[place].0.text()
    }

    /// Returns the thing at a place, to be changed.
    pub(crate) fn at_mut(&mut self, place: usize) -> &mut T {
        &mut self.things[place].1
    }

    /// Makes room for this many more.
    pub(crate) fn reserve(&mut self, n: usize) {
        self.slots.reserve(n, |slot| NameSlot::spread(slot.hash));
        self.things.reserve(n);
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.things.len()
    }

    /// Forgets those that came after the first `n`.
    pub(crate) fn truncate(&mut self, n: usize) {
        let forgotten = self
            .things
            .drain(n..)
            .map(|(name, _)| bytes_of(name.bytes()));
        self.name_bytes -= forgotten.sum::<usize>();
        self.slots.retain(|slot| (slot.index as usize) < n);
    }

    /// Returns about how much memory the things take, without what they refer to.
    pub(crate) fn name_bytes(&self) -> usize {
        self.name_bytes
    }

    /// Returns all names and things, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.things.iter().map(|(name, thing)| (name.text(), thing))
    }
}

/// The bytes of a name that is kept in place.
const SHORT_BYTES: usize = 22;

/// A name, in place if it is short.
#[derive(Debug)]
enum TableName {
    Short {
        length: u8,
        bytes: [u8; SHORT_BYTES],
    },
    Long(Box<str>),
}

impl TableName {
    fn new(name: &str) -> Self {
        let mut bytes = [0; SHORT_BYTES];
        match bytes.get_mut(..name.len()) {
            Some(place) => {
                place.copy_from_slice(name.as_bytes());
                let length = name.len() as u8;
                Self::Short { length, bytes }
            }
            None => Self::Long(name.into()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => &bytes[..usize::from(*length)],
            Self::Long(name) => name.as_bytes(),
        }
    }

    fn touch(&self) -> u8 {
        match self {
            Self::Short { length, .. } => *length,
            Self::Long(_) => 0,
        }
    }

    fn is(&self, name: &str) -> bool {
        self.bytes() == name.as_bytes()
    }

    fn text(&self) -> &str {
        match self {
            // It was text when it was put there.
            Self::Short { .. } => std::str::from_utf8(self.bytes()).unwrap_or_default(),
            Self::Long(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_found_by_names_of_every_length() {
        let mut named = ByName::default();
        let names: Vec<String> = (0..200).map(|length| "é".repeat(length)).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(named.get(name).is_none());
            assert_eq!(named.place(name, || index), index);
        }
        for (index, name) in names.iter().enumerate() {
            assert_eq!(named.place(name, || 0), index);
            assert_eq!(named.get(name), Some(&index));
            assert_eq!(*named.at(index), index);
            assert_eq!(named.name_at(index), name);
        }
        assert!(named.iter().map(|(name, _)| name).eq(&names));
        named.truncate(100);
        assert!(named.iter().map(|(name, _)| name).eq(&names[..100]));
        assert!(names[..100].iter().all(|name| named.get(name).is_some()));
        assert!(names[100..].iter().all(|name| named.get(name).is_none()));
        let bytes: usize = names[..100]
            .iter()
            .map(|name| bytes_of(name.as_bytes()))
            .sum();
        assert_eq!((named.len(), named.name_bytes()), (100, bytes));
        assert_eq!(size_of::<TableName>(), 24);
    }
}
