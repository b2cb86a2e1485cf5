//! Ranges of members as clients give them: by rank, by score, by [name](super::names).

use bytes::Bytes;
use trefoil_core::Direction;

use super::names::NameRange;
use super::scores::{ScoreSpan, Scored, Scores, order_of, place_of_order};
use crate::command::arguments::{index_range, integer};
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;

/// What the ends of a range are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeBy {
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
    Names(NameRange),
}

/// An end of a range of scores.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScoreBound {
    score: f64,
    is_included: bool,
}

impl Bounds {
    pub(super) fn parse(by: RangeBy, min: &Bytes, max: &Bytes) -> Result<Self> {
        Ok(match by {
            RangeBy::Rank => Self::Ranks(integer(min)?, integer(max)?),
            RangeBy::Score => Self::Scores {
                min: ScoreBound::parse(min)?,
                max: ScoreBound::parse(max)?,
            },
            RangeBy::Name => Self::Names(NameRange::parse(min, max)?),
        })
    }

    /// Returns the members in the range, without the first `skipped` and at most `n_max` of them.
    pub(super) fn members(
        &self,
        keyspace: &Keyspace<'_>,
        scores: &Scores,
        direction: Direction,
        (skipped, n_max): (usize, usize),
    ) -> Result<Vec<Scored>> {
        match self {
            Self::Ranks(start, end) => {
                let ranks = index_range(*start, *end, scores.len());
                scores.ranks(keyspace, ranks, direction)
            }
            Self::Scores { min, max } => {
                let members = scores.span(keyspace, &span(min, max), direction);
                keyspace.collect_counted(members.skip(skipped).take(n_max))
            }
            Self::Names(names) => names.members(keyspace, scores, direction, (skipped, n_max)),
        }
    }

    /// Returns how many members are in the range.
    pub(super) fn count(&self, keyspace: &Keyspace<'_>, scores: &Scores) -> Result<usize> {
        match self {
            Self::Ranks(start, end) => {
                let ranks = index_range(*start, *end, scores.len());
                Ok((ranks.end - ranks.start) as usize)
            }
            Self::Scores { min, max } => {
                let mut members = scores.span(keyspace, &span(min, max), Direction::Forwards);
                members.try_fold(0, |n, member| member.map(|_| n + 1))
            }
            Self::Names(names) => names.count(keyspace, scores),
        }
    }
}

/// Returns where members of such scores lie.
fn span(min: &ScoreBound, max: &ScoreBound) -> ScoreSpan {
    let place = |order| place_of_order(order, b"");
    ScoreSpan {
        from: place(min.order() + u64::from(!min.is_included)),
        to: Some(place(max.order() + u64::from(max.is_included))),
    }
}

impl ScoreBound {
    fn parse(argument: &Bytes) -> Result<Self> {
        let (is_included, number) = match argument.as_ref() {
            [b'(', number @ ..] => (false, number),
            number => (true, number),
        };
        let score = parse_bound(number);
        let score = score.ok_or(CommandError::refused("ERR min or max is not a float"))?;
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
