//! How a sorted set lies in the entries: each member under its name with its score, and all of them in
//! the order of their scores in counted [blocks](crate::blocks).
//!
//! In a sorted set that version 0.1.0 wrote, the last ones in order may have an entry each instead.
//! They move into the blocks bit by bit.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use trefoil_core::Direction;

use crate::blocks::{BLOCKS, BlockTree, Sought, TAKEN_MAX};
use crate::error::Result;
use crate::keyspace::{Element, FoundCollection, Keyspace, damaged};
use crate::meta::ValueKind;
use crate::named::AFTER_NAMED;

const SCORE_BYTES: usize = 8;

/// A member and its score.
pub(crate) type Scored = (Bytes, f64);

/// The members of a sorted set, in the order of their scores and then of their names.
#[derive(Debug, Clone)]
pub(crate) struct Scores {
    found: FoundCollection,
    tree: BlockTree,
    /// The first member that has an entry of its own, if the sorted set is to be changed.
    first_single: Option<Bytes>,
}

/// The members from one on and before another, as they lie in order.
#[derive(Debug, Clone)]
pub(crate) struct ScoreSpan {
    pub(super) from: Bytes,
    /// `None`: to the end.
    pub(super) to: Option<Bytes>,
}

impl Scores {
    fn new_of(found: FoundCollection) -> Self {
        Self {
            tree: found.collection.tree(),
            found,
            first_single: None,
        }
    }

    /// Returns the sorted set under a key.
    pub(crate) fn find(keyspace: &Keyspace<'_>, key: &[u8]) -> Result<Option<Self>> {
        let found = keyspace.collection(key, ValueKind::SortedSet)?;
        Ok(found.map(Self::new_of))
    }

    /// Returns the sorted set under a key, which is to be changed.
    pub(super) fn find_to_change(keyspace: &mut Keyspace<'_>, key: &Bytes) -> Result<Option<Self>> {
        let Some(mut scores) = Self::find(keyspace, key)? else {
            return Ok(None);
        };
        if scores.n_single() > 0 {
            let element_of = |(place, _): &Element| place.slice(AFTER_NAMED.len()..);
            let n_taken = keyspace.take_into_blocks(&mut scores.tree, TAKEN_MAX, element_of)?;
            let n_single = &mut scores.found.collection.n_single;
            *n_single = n_single.saturating_sub(n_taken);
            keyspace.put_same(key, &scores.kept())?;
            let all = scores.singles(keyspace, &ScoreSpan::all(), Direction::Forwards);
            scores.first_single = all.into_iter().flatten().next().transpose()?;
        }
        Ok(Some(scores))
    }

    /// Returns the sorted set under a key, or a new one.
    pub(crate) fn find_or_new(keyspace: &mut Keyspace<'_>, key: &Bytes) -> Result<Self> {
        match Self::find_to_change(keyspace, key)? {
            Some(scores) => Ok(scores),
            None => Ok(Self::new(keyspace)),
        }
    }

    fn new(keyspace: &mut Keyspace<'_>) -> Self {
        Self::new_of(keyspace.new_collection(ValueKind::SortedSet))
    }

    /// Puts a new sorted set of these members, which are different ones, in the place of whatever
    /// is under the key. Returns how many there are.
    pub(super) fn replace(
        keyspace: &mut Keyspace<'_>,
        key: &Bytes,
        members: &[Scored],
    ) -> Result<usize> {
        let mut scores = Self::new(keyspace);
        let mut elements = Vec::with_capacity(members.len());
        for (member, score) in members {
            scores.set_score(keyspace, member, Some(*score))?;
            elements.push(element(*score, member));
        }
        elements.sort_unstable();
        let end = scores.tree.find(keyspace, Sought::Index(0))?;
        let elements = elements.iter().map(AsRef::as_ref);
        scores.tree.insert(keyspace, end, elements)?;
        scores.save(keyspace, key)?;
        Ok(members.len())
    }

    /// Returns how many members there are.
    pub(crate) fn len(&self) -> u64 {
        self.tree.len + self.n_single()
    }

    fn n_single(&self) -> u64 {
        self.found.collection.n_single
    }

    /// Returns the collection of the members by name.
    pub(super) fn id(&self) -> u64 {
        self.tree.id
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
        if let Some(before) = before {
            self.remove_element(keyspace, &element(before, member))?;
        }
        self.set_score(keyspace, member, Some(score))?;
        let element = element(score, member);
        if self.is_single(&element) {
            self.found.collection.n_single += 1;
            let place = single_place(&element);
            return keyspace.set_element(self.id(), &place, Some(Bytes::new()));
        }
        let path = self.tree.find(keyspace, Sought::Element(&element))?;
        let element = std::iter::once(element.as_ref());
        self.tree.insert(keyspace, path, element)
    }

    fn set_score(
        &self,
        keyspace: &mut Keyspace<'_>,
        member: &[u8],
        score: Option<f64>,
    ) -> Result<()> {
        // What is stored is never a negative zero, as it orders like the other one.
        let value = score.map(|score| Bytes::copy_from_slice(&(score + 0.0).to_be_bytes()));
        keyspace.set_named(self.id(), member, value)
    }

    /// Removes a member that has this score.
    pub(super) fn remove(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        member: &[u8],
        score: f64,
    ) -> Result<()> {
        self.set_score(keyspace, member, None)?;
        self.remove_element(keyspace, &element(score, member))
    }

    fn remove_element(&mut self, keyspace: &mut Keyspace<'_>, element: &Bytes) -> Result<()> {
        if self.is_single(element) {
            let n_single = &mut self.found.collection.n_single;
            *n_single = n_single.saturating_sub(1);
            return keyspace.set_element(self.id(), &single_place(element), None);
        }
        let path = self.tree.find(keyspace, Sought::Element(element))?;
        if path.element.as_ref() != Some(element) {
            return Err(damaged("a member in order").into());
        }
        self.tree.remove_found(keyspace, path)
    }

    /// Returns whether a member has an entry of its own in order, or would have.
    fn is_single(&self, element: &Bytes) -> bool {
        let first = self.first_single.as_ref();
        first.is_some_and(|first| first <= element)
    }

    /// Removes the members of a range of ranks. Returns them, in order.
    pub(super) fn remove_ranks(
        mut self,
        keyspace: &mut Keyspace<'_>,
        key: &Bytes,
        ranks: Range<u64>,
    ) -> Result<Vec<Scored>> {
        let members = self.members(keyspace, ranks.clone(), Direction::Forwards);
        let members = keyspace.collect_counted(members)?;
        if members.len() as u64 == self.len() {
            keyspace.delete(key)?;
            return Ok(members);
        }
        if members.is_empty() {
            return Ok(members);
        }
        let n_blocks = self.tree.len;
        let in_blocks = ranks.start.min(n_blocks)..ranks.end.min(n_blocks);
        let n_in_blocks = (in_blocks.end - in_blocks.start) as usize;
        self.tree.remove(keyspace, in_blocks)?;
        for (member, score) in &members[n_in_blocks..] {
            self.remove_element(keyspace, &element(*score, member))?;
        }
        for (member, _) in &members {
            self.set_score(keyspace, member, None)?;
        }
        self.save(keyspace, key)?;
        Ok(members)
    }

    /// Remembers under the key what the sorted set is now, and that there was a change.
    pub(crate) fn save(&self, keyspace: &mut Keyspace<'_>, key: &Bytes) -> Result<()> {
        keyspace.put_collection(key, &self.kept())
    }

    /// Returns what is remembered of the sorted set as it is now.
    fn kept(&self) -> FoundCollection {
        let mut found = self.found;
        found.collection.keep(&self.tree);
        found
    }

    /// Returns the members of a range of ranks, in either direction.
    pub(crate) fn members<'s, 'a>(
        &self,
        keyspace: &'s Keyspace<'a>,
        ranks: Range<u64>,
        direction: Direction,
    ) -> impl Iterator<Item = Result<Scored>> + use<'s, 'a> {
        let n_blocks = self.tree.len;
        let in_blocks = ranks.start.min(n_blocks)..ranks.end.min(n_blocks);
        let in_blocks = self.tree.walk(keyspace, in_blocks, direction);
        let singles = ranks.start.max(n_blocks)..ranks.end.max(n_blocks);
        let n_skipped = match direction {
            Direction::Forwards => singles.start - n_blocks,
            Direction::Backwards => self.len().saturating_sub(singles.end),
        };
        let n_taken = (singles.end - singles.start) as usize;
        let singles = match n_taken {
            0 => None,
            _ => self.singles(keyspace, &ScoreSpan::all(), direction),
        };
        let singles = singles.into_iter().flatten();
        let singles = singles.skip(n_skipped as usize).take(n_taken);
        let (first, last) = match direction {
            Direction::Forwards => (None, Some(singles)),
            Direction::Backwards => (Some(singles), None),
        };
        let (first, last) = (first.into_iter().flatten(), last.into_iter().flatten());
        let elements = first.chain(in_blocks).chain(last);
        elements.map(|element| read_element(&element?))
    }

    /// Returns the ranks of the members in a span.
    pub(super) fn ranks(&self, keyspace: &Keyspace<'_>, span: &ScoreSpan) -> Result<Range<u64>> {
        let start = self.n_before(keyspace, &span.from)?;
        let end = match &span.to {
            Some(to) => self.n_before(keyspace, to)?,
            None => self.len(),
        };
        // A span whose end is before its begin is empty.
        Ok(start..end.max(start))
    }

    /// Returns how many members are before one that is there.
    pub(super) fn rank(&self, keyspace: &Keyspace<'_>, member: &[u8], score: f64) -> Result<u64> {
        self.n_before(keyspace, &element(score, member))
    }

    fn n_before(&self, keyspace: &Keyspace<'_>, element: &Bytes) -> Result<u64> {
        let n_in_blocks = self.tree.rank(keyspace, element)?;
        let before = ScoreSpan {
            from: Bytes::new(),
            to: Some(element.clone()),
        };
        let mut singles = self.singles(keyspace, &before, Direction::Forwards);
        let singles = singles.iter_mut().flatten();
        let n_singles = singles
            .map(|single| single.map(|_| 1))
            .sum::<Result<u64>>()?;
        Ok(n_in_blocks + n_singles)
    }

    /// Returns the members in a span that have an entry each, if there are any.
    fn singles<'s, 'a>(
        &self,
        keyspace: &'s Keyspace<'a>,
        span: &ScoreSpan,
        direction: Direction,
    ) -> Option<impl Iterator<Item = Result<Bytes>> + use<'s, 'a>> {
        if self.n_single() == 0 {
            return None;
        }
        let from = single_place(&span.from);
        let to = span.to.as_ref().map(|to| single_place(to));
        let to = to.as_ref().map_or(BLOCKS, |to| to.as_ref());
        let elements = keyspace.elements(self.id(), &from, Some(to), direction);
        Some(elements.map(|element| Ok(element?.0.slice(AFTER_NAMED.len()..))))
    }
}

impl ScoreSpan {
    /// Returns all members.
    fn all() -> Self {
        let from = Bytes::new();
        Self { from, to: None }
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

/// Returns a member as it lies in the order of scores.
fn element(score: f64, member: &[u8]) -> Bytes {
    element_of_order(order_of(score), member)
}

/// Returns a member whose score orders so, as it lies in order.
pub(super) fn element_of_order(order: u64, member: &[u8]) -> Bytes {
    let mut element = BytesMut::with_capacity(SCORE_BYTES + member.len());
    element.put_u64(order);
    element.put_slice(member);
    element.freeze()
}

/// Returns the place of a member that has an entry of its own in order.
fn single_place(element: &[u8]) -> Bytes {
    let mut place = BytesMut::with_capacity(AFTER_NAMED.len() + element.len());
    place.put_slice(AFTER_NAMED);
    place.put_slice(element);
    place.freeze()
}

/// Returns the score that an entry under the name of a member holds.
pub(crate) fn read_score(value: &Bytes) -> Result<f64> {
    let bytes = value.as_ref().try_into();
    let bytes: [u8; SCORE_BYTES] = bytes.map_err(|_| damaged("a score"))?;
    Ok(f64::from_be_bytes(bytes))
}

fn read_element(element: &Bytes) -> Result<Scored> {
    let order = element.first_chunk().copied();
    let order = u64::from_be_bytes(order.ok_or_else(|| damaged("a member in order"))?);
    Ok((element.slice(SCORE_BYTES..), score_of(order)))
}
