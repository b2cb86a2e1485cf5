//! Finding out whether there is an event at all, for conditions.

use std::ops::ControlFlow;

use trefoil_core::{Direction, Result};
use trefoil_storage::Storage;

use super::plan::{PositionRange, ReadPlan};
use super::{Matcher, decode};
use crate::index::{Cursor, Effort, Layers, WalkStep};
use crate::removal::HiddenEvents;

/// How many positions are expected to be wanted: one, mostly.
const PAGE_SIZE: usize = 8;

/// How many events are fetched together at most. The first one alone, since it mostly is selected.
const CANDIDATES_MAX: usize = 64;

/// What a search came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchResult {
    /// The position of the first event that is selected.
    Match(u64),
    /// There is none before this position; the effort that was allowed is used up.
    Paused(u64),
    /// There is none.
    Nothing,
}

/// Where is looked for events.
#[derive(Clone, Copy)]
pub(crate) struct SearchedLog<'a> {
    pub(crate) storage: &'a dyn Storage,
    pub(crate) layers: &'a Layers,
    pub(crate) hidden: &'a HiddenEvents<'a>,
}

/// Looks for the first selected event from `from` to `head`, both inclusive, that is not hidden.
pub(crate) fn first_match(
    log: SearchedLog<'_>,
    matcher: Matcher<'_>,
    from: u64,
    head: u64,
    effort: &Effort,
) -> Result<SearchResult> {
    if from > head {
        return Ok(SearchResult::Nothing);
    }
    let range = PositionRange {
        low: from.max(1),
        high: head,
    };
    let plan = ReadPlan::new(log.layers, matcher, range)?;
    let verify = plan.verify || log.hidden.have_lost_terms() && matcher.asks_for_terms();
    let Some(walk) = plan.into_walk(Direction::Forwards, PAGE_SIZE) else {
        return Ok(SearchResult::Nothing);
    };
    let mut cursor = Cursor::new(walk, Direction::Forwards, range.low, head);
    let (mut candidates, mut wanted) = (Vec::new(), 1);
    loop {
        let step = cursor.next(effort)?;
        if let WalkStep::At(position) = step {
            let is_certain = !verify && !log.hidden.reach(position);
            if is_certain && candidates.is_empty() {
                return Ok(SearchResult::Match(position));
            }
            candidates.push(position);
            if candidates.len() < wanted && !is_certain {
                continue;
            }
        }
        if let Some(position) = first_of(log, &candidates, matcher)? {
            return Ok(SearchResult::Match(position));
        }
        match step {
            WalkStep::At(position) if !effort.spend(matcher.effort() * candidates.len()) => {
                return Ok(SearchResult::Paused(position + 1));
            }
            WalkStep::At(_) => {}
            WalkStep::Paused(position) => return Ok(SearchResult::Paused(position)),
            WalkStep::End => return Ok(SearchResult::Nothing),
        }
        candidates.clear();
        wanted = (wanted * 4).min(CANDIDATES_MAX);
    }
}

/// Returns the first of these positions whose event is selected and not hidden.
fn first_of(log: SearchedLog<'_>, positions: &[u64], matcher: Matcher<'_>) -> Result<Option<u64>> {
    let mut found = None;
    if positions.is_empty() {
        return Ok(None);
    }
    log.storage.read(positions, &mut |item| {
        let position = item.position;
        let is_match = decode(item).and_then(|event| {
            let event = log.hidden.shown(event);
            Ok(matcher.matches(&event) && !log.hidden.contain(&event)?)
        });
        match is_match {
            Ok(false) => return ControlFlow::Continue(()),
            Ok(true) => found = Some(Ok(position)),
            Err(error) => found = Some(Err(error)),
        }
        ControlFlow::Break(())
    })?;
    found.transpose()
}
