//! Ranges of members as clients give them: by rank, by score, by [name](super::names).

use std::ops::Range;

use bytes::Bytes;
use trefoil_core::Direction;

use super::names::NameRange;
use super::scores::{ScoreSpan, Scores, element_of_order, order_of};
use crate::command::arguments::{from_end, index_range, integer};
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

    /// Returns the ranks of the members in the range, seen in a direction: without the first `skipped`
    /// and at most `n_max` of them.
    pub(super) fn ranks(
        &self,
        keyspace: &Keyspace<'_>,
        scores: &Scores,
        direction: Direction,
        (skipped, n_max): (u64, u64),
    ) -> Result<Range<u64>> {
        let ranks = match self {
            Self::Ranks(start, end) => {
                let ranks = index_range(*start, *end, scores.len());
                return Ok(from_end(ranks, scores.len(), direction));
            }
            Self::Scores { min, max } => scores.ranks(keyspace, &span(min, max))?,
            Self::Names(names) => {
                return names.ranks(keyspace, scores, direction, (skipped, n_max));
            }
        };
        Ok(part(&ranks, direction, (skipped, n_max)))
    }
}

/// Returns a part of a range, seen in a direction: without the first `skipped` and at most `n_max`.
pub(super) fn part(
    ranks: &Range<u64>,
    direction: Direction,
    (skipped, n_max): (u64, u64),
) -> Range<u64> {
    match direction {
        Direction::Forwards => {
            let start = ranks.start.saturating_add(skipped).min(ranks.end);
            start..ranks.end.min(start.saturating_add(n_max))
        }
        Direction::Backwards => {
            let end = ranks.end.saturating_sub(skipped).max(ranks.start);
            ranks.start.max(end.saturating_sub(n_max))..end
        }
    }
}

/// Returns where members of such scores lie.
fn span(min: &ScoreBound, max: &ScoreBound) -> ScoreSpan {
    let first = |order| element_of_order(order, b"");
    ScoreSpan {
        from: first(min.order() + u64::from(!min.is_included)),
        to: Some(first(max.order() + u64::from(max.is_included))),
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
