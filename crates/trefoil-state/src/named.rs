//! Elements that have names: the fields of a hash, the members of sets.
//!
//! They lie in the order of a hash of their names. So one number says how far a walk has come,
//! however the collection changes meanwhile, and one at a random place is a random one.

use bytes::{BufMut, Bytes, BytesMut};
use trefoil_core::Direction;

use crate::error::Result;
use crate::keyspace::Keyspace;
use crate::layout::{HASH_BYTES, hash};

/// What the places of named elements begin with.
const NAMED: u8 = 0;

/// The first place after all named elements: a type may keep other elements there.
pub(crate) const AFTER_NAMED: &[u8] = &[NAMED + 1];

const PREFIX_BYTES: usize = 1 + HASH_BYTES;

/// In a collection of this many elements or fewer, a random one is found by counting.
const COUNTED_MAX: u64 = 128;

/// How many elements from a random place on are candidates: one alone would be found the more
/// often the farther it is from the one before.
const CANDIDATES: u64 = 16;

/// Returns the place of the element of this name.
pub(crate) fn place(name: &[u8]) -> Bytes {
    let mut place = BytesMut::with_capacity(PREFIX_BYTES + name.len());
    place.put_u8(NAMED);
    place.put_u32(hash(name));
    place.put_slice(name);
    place.freeze()
}

/// Returns the name of the element at this place; `None` if it has none.
pub(crate) fn read_place(place: &[u8]) -> Option<&[u8]> {
    let name = place.get(PREFIX_BYTES..)?;
    let is_named = place[..PREFIX_BYTES] == place_of_hash(hash(name));
    is_named.then_some(name)
}

fn place_of_hash(hash: u32) -> [u8; PREFIX_BYTES] {
    let mut place = [NAMED; PREFIX_BYTES];
    place[1..].copy_from_slice(&hash.to_be_bytes());
    place
}

/// A part of a walk: what was found, and where to go on; `None` at the end.
#[derive(Debug)]
pub(crate) struct WalkPart<T> {
    pub(crate) found: Vec<T>,
    pub(crate) next: Option<u32>,
}

impl<T> WalkPart<T> {
    /// Takes about `count` things from a walk, but never tears those of one hash apart.
    pub(crate) fn take(
        walk: impl Iterator<Item = Result<T>>,
        count: usize,
        hash_of: impl Fn(&T) -> u32,
    ) -> Result<Self> {
        let mut found: Vec<T> = Vec::new();
        for one in walk {
            let one = one?;
            let next = hash_of(&one);
            if found.len() >= count && found.last().map(&hash_of) != Some(next) {
                let next = Some(next);
                return Ok(Self { found, next });
            }
            found.push(one);
        }
        Ok(Self { found, next: None })
    }
}

impl Keyspace<'_> {
    /// Returns the value of the element of this name.
    pub(crate) fn named(&self, id: u64, name: &[u8]) -> Result<Option<Bytes>> {
        self.element(id, &place(name))
    }

    /// Gives the element of this name a value, or removes it. Does not count it.
    pub(crate) fn set_named(&mut self, id: u64, name: &[u8], value: Option<Bytes>) -> Result<()> {
        self.set_element(id, &place(name), value)
    }

    /// Returns all named elements: names and values.
    pub(crate) fn all_named(&self, id: u64) -> impl Iterator<Item = Result<(Bytes, Bytes)>> + '_ {
        self.named_from(id, 0)
    }

    fn named_from(&self, id: u64, hash: u32) -> impl Iterator<Item = Result<(Bytes, Bytes)>> + '_ {
        let from = place_of_hash(hash);
        let elements = self.elements(id, &from, Some(AFTER_NAMED), Direction::Forwards);
        elements.map(|element| {
            let (place, value) = element?;
            Ok((place.slice(PREFIX_BYTES..), value))
        })
    }

    /// Returns about `count` named elements from the place on that a cursor says.
    pub(crate) fn scan_named(
        &self,
        id: u64,
        cursor: u32,
        count: usize,
    ) -> Result<WalkPart<(Bytes, Bytes)>> {
        let walk = self.named_from(id, cursor);
        WalkPart::take(walk, count, |(name, _)| hash(name))
    }

    /// Returns a random one of `len` named elements.
    pub(crate) fn random_named(&mut self, id: u64, len: u64) -> Result<Option<(Bytes, Bytes)>> {
        let random = self.random();
        if len <= COUNTED_MAX {
            let index = random % len.max(1);
            return self.all_named(id).nth(index as usize).transpose();
        }
        let from = self.named_from(id, random as u32);
        let skipped = (random >> 32) % CANDIDATES;
        let mut found = from.chain(self.all_named(id)).skip(skipped as usize);
        found.next().transpose()
    }
}
