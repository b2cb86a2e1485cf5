//! Ranges of members as clients give them: by rank, by score, by name.

use bytes::{BufMut, Bytes, BytesMut};
use trefoil_core::Direction;

use super::scores::{Scored, Scores, Span, order_of, place_of_order};
use crate::command::arguments::{index_range, integer};
use crate::failure::{Failure, Result};
use crate::keyspace::Keyspace;
use crate::named::AFTER_NAMED;

/// What the ends of a range are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Name,
}

/// A range of members.
#[derive(Debug)]
pub(super) enum Bounds {
    /// From a rank to a rank, both included, negative ones from the end.
    Ranks(i64, i64),
    Scores {
        min: ScoreBound,
        max: ScoreBound,
    },
    Names {
        min: NameBound,
        max: NameBound,
    },
}

/// An end of a range of scores.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScoreBound {
    score: f64,
    is_included: bool,
}

/// An end of a range of names.
#[derive(Debug, Clone)]
pub(super) enum NameBound {
    Lowest,
    Highest,
    Included(Bytes),
    Excluded(Bytes),
}

impl Bounds {
    pub(super) fn parse(by: By, min: &Bytes, max: &Bytes) -> Result<Self> {
        Ok(match by {
            By::Rank => Self::Ranks(integer(min)?, integer(max)?),
            By::Score => Self::Scores {
                min: ScoreBound::parse(min)?,
                max: ScoreBound::parse(max)?,
            },
            By::Name => Self::Names {
                min: NameBound::parse(min)?,
                max: NameBound::parse(max)?,
            },
        })
    }

    /// The members in the range, without the first `skipped` and at most `n_max` of them.
    pub(super) fn members(
        &self,
        keyspace: &Keyspace<'_>,
        scores: &Scores,
        direction: Direction,
        (skipped, n_max): (usize, usize),
    ) -> Result<Vec<Scored>> {
        if let Self::Ranks(start, end) = *self {
            return scores.ranks(keyspace, index_range(start, end, scores.len()), direction);
        }
        let Some(span) = self.span(keyspace, scores)? else {
            return Ok(Vec::new());
        };
        let members = scores.span(keyspace, &span, direction);
        members.skip(skipped).take(n_max).collect()
    }

    /// How many members are in the range.
    pub(super) fn count(&self, keyspace: &Keyspace<'_>, scores: &Scores) -> Result<usize> {
        if let Self::Ranks(start, end) = *self {
            let ranks = index_range(start, end, scores.len());
            return Ok((ranks.end - ranks.start) as usize);
        }
        let Some(span) = self.span(keyspace, scores)? else {
            return Ok(0);
        };
        let mut members = scores.span(keyspace, &span, Direction::Forwards);
        members.try_fold(0, |n, member| member.map(|_| n + 1))
    }

    /// Where the members lie; `None` if there can be none.
    fn span(&self, keyspace: &Keyspace<'_>, scores: &Scores) -> Result<Option<Span>> {
        Ok(match self {
            Self::Ranks(..) => Some(Span::all()),
            Self::Scores { min, max } => Some(Span {
                from: place_of_order(min.order() + u64::from(!min.is_included), b""),
                to: Some(place_of_order(
                    max.order() + u64::from(max.is_included),
                    b"",
                )),
            }),
            Self::Names { min, max } => {
                let from = min.place(keyspace, scores, Direction::Forwards)?;
                let to = max.place(keyspace, scores, Direction::Backwards)?;
                match (from, to) {
                    (_, Some(to)) if to == AFTER_NAMED => None,
                    (Some(from), to) => Some(Span { from, to }),
                    (None, _) => None,
                }
            }
        })
    }
}

impl ScoreBound {
    fn parse(argument: &Bytes) -> Result<Self> {
        let (is_included, number) = match argument.as_ref() {
            [b'(', number @ ..] => (false, number),
            number => (true, number),
        };
        let score = parse_bound(number);
        let score = score.ok_or(Failure::refused("ERR min or max is not a float"))?;
        Ok(Self { score, is_included })
    }

    fn order(&self) -> u64 {
        order_of(self.score)
    }
}

/// Reads an end of a range, which may be larger than any number and have space before it. Nothing
/// is zero.
fn parse_bound(text: &[u8]) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let text = std::str::from_utf8(text.trim_ascii_start()).ok()?;
    let number: f64 = text.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

impl NameBound {
    fn parse(argument: &Bytes) -> Result<Self> {
        match argument.as_ref() {
            b"-" => Ok(Self::Lowest),
            b"+" => Ok(Self::Highest),
            [b'[', ..] => Ok(Self::Included(argument.slice(1..))),
            [b'(', ..] => Ok(Self::Excluded(argument.slice(1..))),
            _ => Err(Failure::refused(
                "ERR min or max not valid string range item",
            )),
        }
    }

    /// The place at which a range begins or ends that has this end; `None` if it is after all.
    /// Names are in order among members of one score, which is that of the first or the last.
    fn place(
        &self,
        keyspace: &Keyspace<'_>,
        scores: &Scores,
        end: Direction,
    ) -> Result<Option<Bytes>> {
        let (name, is_included) = match self {
            Self::Lowest => return Ok(Some(Bytes::from_static(AFTER_NAMED))),
            Self::Highest => return Ok(None),
            Self::Included(name) => (name, true),
            Self::Excluded(name) => (name, false),
        };
        let outermost = scores.span(keyspace, &Span::all(), end).next();
        let Some((_, score)) = outermost.transpose()? else {
            return Ok(None);
        };
        let mut after = BytesMut::from(name.as_ref());
        if is_included == (end == Direction::Backwards) {
            // The next name that is possible.
            after.put_u8(0);
        }
        Ok(Some(place_of_order(order_of(score), &after)))
    }
}
