//! Finding out whether there is an event at all, for conditions.

use trefoil_core::{Direction, Result};
use trefoil_storage::Storage;

use super::plan::{Plan, Range};
use super::{Matcher, fetch};
use crate::index::{Cursor, Effort, Layers, Step};

/// How many positions are expected to be wanted: one, mostly.
const PAGE_SIZE: usize = 8;

/// What a search came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The position of the first event that is selected.
    Match(u64),
    /// There is none before this position; the effort that was allowed is used up.
    Paused(u64),
    /// There is none.
    Nothing,
}

/// Looks for the first selected event from `from` to `head`, both inclusive.
pub(crate) fn first_match(
    storage: &dyn Storage,
    layers: &Layers,
    matcher: Matcher<'_>,
    from: u64,
    head: u64,
    effort: &Effort,
) -> Result<Found> {
    if from > head {
        return Ok(Found::Nothing);
    }
    let range = Range {
        low: from.max(1),
        high: head,
    };
    let plan = Plan::new(layers, matcher, range)?;
    let verify = plan.verify;
    let Some(walk) = plan.into_walk(Direction::Forwards, PAGE_SIZE) else {
        return Ok(Found::Nothing);
    };
    let mut cursor = Cursor::new(walk, Direction::Forwards, range.low, head);
    loop {
        match cursor.next(effort)? {
            Step::At(position) if !verify => return Ok(Found::Match(position)),
            Step::At(position) => {
                if matcher.matches(&fetch(storage, position)?) {
                    return Ok(Found::Match(position));
                }
                if !effort.spend(4) {
                    return Ok(Found::Paused(position + 1));
                }
            }
            Step::Paused(position) => return Ok(Found::Paused(position)),
            Step::End => return Ok(Found::Nothing),
        }
    }
}
