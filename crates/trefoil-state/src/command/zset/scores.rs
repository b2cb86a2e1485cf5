//! How a sorted set lies in the entries: each member under its name with its score, and once more
//! in the order of the scores.

use bytes::{BufMut, Bytes, BytesMut};
use trefoil_core::Direction;

use crate::error::Result;
use crate::keyspace::{Element, FoundCollection, Keyspace, damaged};
use crate::meta::ValueKind;
use crate::named::AFTER_NAMED;

const SCORE_BYTES: usize = 8;
const PREFIX_BYTES: usize = AFTER_NAMED.len() + SCORE_BYTES;

/// A member and its score.
pub(crate) type Scored = (Bytes, f64);

/// The members of a sorted set, in the order of their scores and then of their names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scores {
    found: FoundCollection,
}

/// The places from one on and before another, in the order of scores.
#[derive(Debug, Clone)]
pub(crate) struct ScoreSpan {
    pub(super) from: Bytes,
    /// `None`: to the end.
    pub(super) to: Option<Bytes>,
}

impl ScoreSpan {
    /// Returns all members.
    pub(crate) fn all() -> Self {
        let from = Bytes::from_static(AFTER_NAMED);
        Self { from, to: None }
    }
}

impl Scores {
    /// Returns the sorted set under a key.
    pub(crate) fn find(keyspace: &Keyspace<'_>, key: &[u8]) -> Result<Option<Self>> {
        let found = keyspace.collection(key, ValueKind::SortedSet)?;
        Ok(found.map(|found| Self { found }))
    }

    /// Returns the sorted set under a key, or a new one.
    pub(crate) fn find_or_new(keyspace: &mut Keyspace<'_>, key: &[u8]) -> Result<Self> {
        let found = keyspace.collection_or_new(key, ValueKind::SortedSet)?;
        Ok(Self { found })
    }

    /// Puts a new sorted set of these members, which are different ones, in the place of whatever
    /// is under the key. Returns how many there are.
    pub(super) fn replace(
        keyspace: &mut Keyspace<'_>,
        key: &Bytes,
        members: Vec<Scored>,
    ) -> Result<usize> {
        let n_members = members.len();
        let found = keyspace.new_collection(ValueKind::SortedSet);
        let mut scores = Self { found };
        for (member, score) in members {
            scores.set(keyspace, &member, None, score)?;
        }
        scores.save(keyspace, key)?;
        Ok(n_members)
    }

    /// Returns how many members there are.
    pub(crate) fn len(&self) -> u64 {
        self.found.collection.len
    }

    /// Returns the collection of the members by name.
    pub(super) fn id(&self) -> u64 {
        self.found.collection.id
    }

    /// Returns the score of a member.
    pub(crate) fn score(&self, keyspace: &Keyspace<'_>, member: &[u8]) -> Result<Option<f64>> {
        let value = keyspace.named(self.id(), member)?;
        value.as_ref().map(read_score).transpose()
    }

    /// Gives a member another score than it had before.
    pub(crate) fn set(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        member: &[u8],
        before: Option<f64>,
        score: f64,
    ) -> Result<()> {
        let id = self.id();
        match before {
            Some(before) => keyspace.set_element(id, &place(before, member), None)?,
            None => self.found.collection.len += 1,
        }
        // What is stored is never a negative zero, as it orders like the other one.
        let value = Bytes::copy_from_slice(&(score + 0.0).to_be_bytes());
        keyspace.set_named(id, member, Some(value))?;
        keyspace.set_element(id, &place(score, member), Some(Bytes::new()))
    }

    /// Removes a member that has this score.
    pub(super) fn remove(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        member: &[u8],
        score: f64,
    ) -> Result<()> {
        self.found.collection.len = self.len().saturating_sub(1);
        keyspace.set_named(self.id(), member, None)?;
        keyspace.set_element(self.id(), &place(score, member), None)
    }

    /// Removes members that are there. Returns how many they are.
    pub(super) fn remove_all(
        mut self,
        keyspace: &mut Keyspace<'_>,
        key: &Bytes,
        members: &[Scored],
    ) -> Result<usize> {
        if members.len() as u64 == self.len() {
            keyspace.delete(key)?;
            return Ok(members.len());
        }
        for (member, score) in members {
            self.remove(keyspace, member, *score)?;
        }
        if !members.is_empty() {
            self.save(keyspace, key)?;
        }
        Ok(members.len())
    }

    /// Remembers under the key how many members there are now, and that there was a change.
    pub(crate) fn save(&self, keyspace: &mut Keyspace<'_>, key: &Bytes) -> Result<()> {
        keyspace.put_collection(key, &self.found)
    }

    /// Returns the members in a span, in either direction.
    pub(crate) fn span<'s, 'a>(
        &self,
        keyspace: &'s Keyspace<'a>,
        span: &ScoreSpan,
        direction: Direction,
    ) -> impl Iterator<Item = Result<Scored>> + use<'s, 'a> {
        // A span whose end is before its begin is empty.
        let to = span.to.as_ref().map(|to| to.max(&span.from).as_ref());
        let elements = keyspace.elements(self.id(), &span.from, to, direction);
        elements.map(|element| read_element(&element?))
    }

    /// Returns the members from one rank to another, counted from the end that the direction begins
    /// at. Walks from the nearer end.
    pub(crate) fn ranks(
        &self,
        keyspace: &Keyspace<'_>,
        ranks: std::ops::Range<u64>,
        direction: Direction,
    ) -> Result<Vec<Scored>> {
        let n_found = (ranks.end - ranks.start) as usize;
        let n_after = self.len().saturating_sub(ranks.end);
        if ranks.start <= n_after {
            let members = self.span(keyspace, &ScoreSpan::all(), direction);
            let members = members.skip(ranks.start as usize).take(n_found);
            return keyspace.collect_counted(members);
        }
        let members = self.span(keyspace, &ScoreSpan::all(), opposite(direction));
        let members = members.skip(n_after as usize).take(n_found);
        let mut members = keyspace.collect_counted(members)?;
        members.reverse();
        Ok(members)
    }

    /// Returns how many members are before one that is there. Walks to both ends until it comes to
    /// one.
    pub(super) fn rank(&self, keyspace: &Keyspace<'_>, member: &[u8], score: f64) -> Result<u64> {
        let place = place(score, member);
        let to_member = ScoreSpan {
            from: Bytes::from_static(AFTER_NAMED),
            to: Some(place.clone()),
        };
        let from_member = ScoreSpan {
            from: place,
            to: None,
        };
        let mut before = self.span(keyspace, &to_member, Direction::Backwards);
        let mut after = self.span(keyspace, &from_member, Direction::Forwards);
        let mut n_passed = 0;
        loop {
            if before.next().transpose()?.is_none() {
                return Ok(n_passed);
            }
            if after.next().transpose()?.is_none() {
                return Ok(self.len().saturating_sub(n_passed));
            }
            n_passed += 1;
        }
    }
}

/// Returns the other direction.
fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Forwards => Direction::Backwards,
        Direction::Backwards => Direction::Forwards,
    }
}

/// Returns a number that orders as the score does: positive scores get the upper half, and negative
/// ones are turned around.
pub(super) fn order_of(score: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    let bits = (score + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// Returns the score that orders so.
fn score_of(order: u64) -> f64 {
    const SIGN: u64 = 1 << 63;
    f64::from_bits(if order & SIGN == 0 {
        !order
    } else {
        order & !SIGN
    })
}

/// Returns the place of a member in the order of scores.
fn place(score: f64, member: &[u8]) -> Bytes {
    place_of_order(order_of(score), member)
}

/// Returns the place of a member whose score orders so.
pub(super) fn place_of_order(order: u64, member: &[u8]) -> Bytes {
    let mut place = BytesMut::with_capacity(PREFIX_BYTES + member.len());
    place.put_slice(AFTER_NAMED);
    place.put_u64(order);
    place.put_slice(member);
    place.freeze()
}

/// Returns the score that an entry under the name of a member holds.
pub(super) fn read_score(value: &Bytes) -> Result<f64> {
    let bytes = value.as_ref().try_into();
    let bytes: [u8; SCORE_BYTES] = bytes.map_err(|_| damaged("a score"))?;
    Ok(f64::from_be_bytes(bytes))
}

fn read_element((place, _): &Element) -> Result<Scored> {
    let order = place.get(AFTER_NAMED.len()..PREFIX_BYTES);
    let order = order.and_then(|order| order.try_into().ok());
    let order = u64::from_be_bytes(order.ok_or_else(|| damaged("a member in order"))?);
    Ok((place.slice(PREFIX_BYTES..), score_of(order)))
}
