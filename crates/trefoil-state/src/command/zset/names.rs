//! Ranges of members by name.
//!
//! Members of one score lie in the order of their names, and a range of names is a span. Among
//! members of different scores names are in no order. There the reply is what Redis comes upon
//! when it walks over a small sorted set: the first member, seen from where the walk begins, that
//! is not before the range; if that is in the range, it and those after it up to the first that is
//! beyond. (In a large one Redis takes shortcuts that are a matter of chance.)

use bytes::{BufMut, Bytes, BytesMut};
use trefoil_core::Direction;

use super::scores::{ScoreSpan, Scored, Scores, order_of, place_of_order};
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

    /// Returns the members in the range, without the first `skipped` and at most `n_max` of them.
    pub(super) fn members(
        &self,
        keyspace: &Keyspace<'_>,
        scores: &Scores,
        direction: Direction,
        (skipped, n_max): (usize, usize),
    ) -> Result<Vec<Scored>> {
        let span = match self.place(keyspace, scores)? {
            RangePlace::Nowhere => return Ok(Vec::new()),
            RangePlace::Scattered => {
                return self.walk(keyspace, scores, direction, (skipped, n_max));
            }
            RangePlace::Span(span) => span,
        };
        let members = scores.span(keyspace, &span, direction);
        members.skip(skipped).take(n_max).collect()
    }

    /// Returns how many members are in the range.
    pub(super) fn count(&self, keyspace: &Keyspace<'_>, scores: &Scores) -> Result<usize> {
        let forwards = Direction::Forwards;
        let span = match self.place(keyspace, scores)? {
            RangePlace::Nowhere => return Ok(0),
            RangePlace::Scattered => {
                let members = self.walk(keyspace, scores, forwards, (0, usize::MAX))?;
                return Ok(members.len());
            }
            RangePlace::Span(span) => span,
        };
        let mut members = scores.span(keyspace, &span, forwards);
        members.try_fold(0, |n, member| member.map(|_| n + 1))
    }

    fn place(&self, keyspace: &Keyspace<'_>, scores: &Scores) -> Result<RangePlace> {
        let end = |direction| scores.span(keyspace, &ScoreSpan::all(), direction).next();
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
            NameBound::Included(name) => place_of_order(order, name),
            NameBound::Excluded(name) => place_of_order(order, &next_name(name)),
            NameBound::Lowest | NameBound::Highest => ScoreSpan::all().from,
        };
        let to = match &self.max {
            NameBound::Included(name) => Some(place_of_order(order, &next_name(name))),
            NameBound::Excluded(name) => Some(place_of_order(order, name)),
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
        (skipped, n_max): (usize, usize),
    ) -> Result<Vec<Scored>> {
        let is_before = |name: &[u8]| match direction {
            Direction::Forwards => !self.has_begun(name),
            Direction::Backwards => self.is_over(name),
        };
        let is_beyond = |name: &[u8]| match direction {
            Direction::Forwards => self.is_over(name),
            Direction::Backwards => !self.has_begun(name),
        };
        let members = scores.span(keyspace, &ScoreSpan::all(), direction);
        let mut members = members
            .skip_while(|member| matches!(member, Ok((name, _)) if is_before(name)))
            .peekable();
        if matches!(members.peek(), Some(Ok((name, _))) if is_beyond(name)) {
            return Ok(Vec::new());
        }
        let members = members.skip(skipped);
        members
            .take_while(|member| !matches!(member, Ok((name, _)) if is_beyond(name)))
            .take(n_max)
            .collect()
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
