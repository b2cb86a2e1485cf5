//! Ranges of members by name.
//!
//! Members of one score lie in the order of their names, and a range of names is a span. Among
//! members of different scores names are in no order. There the reply is what Redis comes upon
//! when it walks over a small sorted set: the first member, seen from where the walk begins, that
//! is not before the range; if that is in the range, it and those after it up to the first that is
//! beyond. (In a large one Redis takes shortcuts that are a matter of chance.)

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use trefoil_core::Direction;

use super::bounds::part;
use super::scores::{ScoreSpan, Scores, element_of_order, order_of};
use crate::command::arguments::from_end;
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;

/// A range of names.
#[derive(Debug)]
pub(super) struct NameRange {
    min: NameBound,
    max: NameBound,
}

/// An end of a range of names.
#[derive(Debug, Clone)]
enum NameBound {
    Lowest,
    Highest,
    Included(Bytes),
    Excluded(Bytes),
}

/// Where the members of a range are to be found.
enum RangePlace {
    Nowhere,
    Span(ScoreSpan),
    /// Anywhere: each has to be looked at.
    Scattered,
}

impl NameRange {
    pub(super) fn parse(min: &Bytes, max: &Bytes) -> Result<Self> {
        let (min, max) = (NameBound::parse(min)?, NameBound::parse(max)?);
        Ok(Self { min, max })
    }

    /// Returns the ranks of the members in the range, seen in a direction: without the first `skipped`
    /// and at most `n_max` of them.
    pub(super) fn ranks(
        &self,
        keyspace: &Keyspace<'_>,
        scores: &Scores,
        direction: Direction,
        limit: (u64, u64),
    ) -> Result<Range<u64>> {
        match self.place(keyspace, scores)? {
            RangePlace::Nowhere => Ok(0..0),
            RangePlace::Scattered => self.walk(keyspace, scores, direction, limit),
            RangePlace::Span(span) => {
                let ranks = scores.ranks(keyspace, &span)?;
                Ok(part(&ranks, direction, limit))
            }
        }
    }

    fn place(&self, keyspace: &Keyspace<'_>, scores: &Scores) -> Result<RangePlace> {
        let all = 0..scores.len();
        let end = |direction| scores.members(keyspace, all.clone(), direction).next();
        let ends = (end(Direction::Forwards), end(Direction::Backwards));
        let ((first, lowest), (last, highest)) = match ends {
            (Some(first), Some(last)) => (first?, last?),
            _ => return Ok(RangePlace::Nowhere),
        };
        if !self.has_begun(&last) || self.is_over(&first) {
            return Ok(RangePlace::Nowhere);
        }
        let order = order_of(lowest);
        if order != order_of(highest) {
            return Ok(RangePlace::Scattered);
        }
        let from = match &self.min {
            NameBound::Included(name) => element_of_order(order, name),
            NameBound::Excluded(name) => element_of_order(order, &next_name(name)),
            NameBound::Lowest | NameBound::Highest => Bytes::new(),
        };
        let to = match &self.max {
            NameBound::Included(name) => Some(element_of_order(order, &next_name(name))),
            NameBound::Excluded(name) => Some(element_of_order(order, name)),
            NameBound::Lowest | NameBound::Highest => None,
        };
        Ok(RangePlace::Span(ScoreSpan { from, to }))
    }

    /// Looks at members of different scores. Those that are skipped are not looked at.
    fn walk(
        &self,
        keyspace: &Keyspace<'_>,
        scores: &Scores,
        direction: Direction,
        (skipped, n_max): (u64, u64),
    ) -> Result<Range<u64>> {
        let is_before = |name: &[u8]| match direction {
            Direction::Forwards => !self.has_begun(name),
            Direction::Backwards => self.is_over(name),
        };
        let is_beyond = |name: &[u8]| match direction {
            Direction::Forwards => self.is_over(name),
            Direction::Backwards => !self.has_begun(name),
        };
        let mut n_before = 0;
        let mut first = None;
        for member in scores.members(keyspace, 0..scores.len(), direction) {
            let (name, _) = member?;
            if !is_before(&name) {
                first = Some(name);
                break;
            }
            n_before += 1;
        }
        if first.is_none_or(|name| is_beyond(&name)) {
            return Ok(0..0);
        }
        let all = from_end(n_before..scores.len(), scores.len(), direction);
        let rest = part(&all, direction, (skipped, n_max));
        let mut n_found = 0;
        for member in scores.members(keyspace, rest.clone(), direction) {
            if is_beyond(&member?.0) {
                break;
            }
            n_found += 1;
        }
        Ok(part(&rest, direction, (0, n_found)))
    }

    /// Returns whether a name is not before the range.
    fn has_begun(&self, name: &[u8]) -> bool {
        match &self.min {
            NameBound::Lowest => true,
            NameBound::Highest => false,
            NameBound::Included(min) => name >= min.as_ref(),
            NameBound::Excluded(min) => name > min.as_ref(),
        }
    }

    /// Returns whether a name is beyond the range.
    fn is_over(&self, name: &[u8]) -> bool {
        match &self.max {
            NameBound::Lowest => true,
            NameBound::Highest => false,
            NameBound::Included(max) => name > max.as_ref(),
            NameBound::Excluded(max) => name >= max.as_ref(),
        }
    }
}

impl NameBound {
    fn parse(argument: &Bytes) -> Result<Self> {
        match argument.as_ref() {
            b"-" => Ok(Self::Lowest),
            b"+" => Ok(Self::Highest),
            [b'[', ..] => Ok(Self::Included(argument.slice(1..))),
            [b'(', ..] => Ok(Self::Excluded(argument.slice(1..))),
            _ => Err(CommandError::refused(
                "ERR min or max not valid string range item",
            )),
        }
    }
}

/// Returns the next name that is possible.
fn next_name(name: &[u8]) -> BytesMut {
    let mut next = BytesMut::with_capacity(name.len() + 1);
    next.put_slice(name);
    next.put_u8(0);
    next
}
