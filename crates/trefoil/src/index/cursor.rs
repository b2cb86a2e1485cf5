//! Walking over the positions at which terms occur: one term, all of several, or any of several.
//!
//! A walk answers one question: which is the first position at or beyond a given one? From this,
//! an intersection is found by leapfrog: every term in turn is asked for the candidate, and one
//! that is further on names the next candidate. Nothing is read that lies between.

use std::cell::Cell;

use trefoil_core::{Direction, Result};

use super::lookup::TermLookup;

/// How many positions are copied from the index at a time at most.
const PAGE_MAX: usize = 4096;

/// What a walk finds at or beyond a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkStep {
    /// The first position.
    At(u64),
    /// None before this one; the effort that was allowed is used up.
    Paused(u64),
    /// None.
    End,
}

/// How much work a walk may still do, counted in positions looked at.
#[derive(Debug)]
pub(crate) struct Effort(Cell<usize>);

impl Effort {
    pub(crate) fn new(positions: usize) -> Self {
        Self(Cell::new(positions))
    }

    /// Uses up some. Returns whether there was any left before.
    pub(crate) fn spend(&self, positions: usize) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(positions));
        left > 0
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.0.get() == 0
    }
}

/// A walk over positions.
#[derive(Debug)]
pub(crate) enum Walk<'a> {
    /// Those of one term.
    Term(TermWalk<'a>),
    /// Those that all parts have. The first part should be the rarest.
    Every(Vec<Walk<'a>>),
    /// Those that any part has.
    Any(Vec<WalkBranch<'a>>),
}

/// A part of [`Walk::Any`], and what it said last: it need not be asked again before the walk has
/// come that far.
#[derive(Debug)]
pub(crate) struct WalkBranch<'a> {
    walk: Walk<'a>,
    last: Option<WalkStep>,
}

impl<'a> Walk<'a> {
    /// Returns the walk over the positions of a term, of which about `page_size` will be wanted at
    /// a time.
    pub(crate) fn term(term: TermLookup<'a>, direction: Direction, page_size: usize) -> Self {
        Self::Term(TermWalk {
            term,
            direction,
            page: Vec::new(),
            next: 0,
            page_size: page_size.min(PAGE_MAX),
            is_last_page: false,
        })
    }

    /// Returns the walk over what all of these have.
    pub(crate) fn every(mut walks: Vec<Self>) -> Self {
        match walks.len() {
            1 => walks.remove(0),
            _ => Self::Every(walks),
        }
    }

    /// Returns the walk over what any of these has.
    pub(crate) fn any(mut walks: Vec<Self>) -> Self {
        match walks.len() {
            1 => walks.remove(0),
            _ => Self::Any(
                walks
                    .into_iter()
                    .map(|walk| WalkBranch { walk, last: None })
                    .collect(),
            ),
        }
    }

    /// Returns the first position at or beyond `from`. Calls must not go back.
    fn seek(&mut self, from: u64, direction: Direction, effort: &Effort) -> Result<WalkStep> {
        match self {
            Self::Term(term) => Ok(term.seek(from)?.map_or(WalkStep::End, WalkStep::At)),
            Self::Every(parts) => seek_every(parts, from, direction, effort),
            Self::Any(parts) => seek_any(parts, from, direction, effort),
        }
    }
}

fn seek_every(
    parts: &mut [Walk<'_>],
    from: u64,
    direction: Direction,
    effort: &Effort,
) -> Result<WalkStep> {
    let mut candidate = from;
    'candidates: loop {
        if !effort.spend(1) {
            return Ok(WalkStep::Paused(candidate));
        }
        for part in &mut *parts {
            match part.seek(candidate, direction, effort)? {
                WalkStep::At(position) if position == candidate => {}
                WalkStep::At(position) => {
                    candidate = position;
                    continue 'candidates;
                }
                other => return Ok(other),
            }
        }
        return Ok(WalkStep::At(candidate));
    }
}

fn seek_any(
    parts: &mut [WalkBranch<'_>],
    from: u64,
    direction: Direction,
    effort: &Effort,
) -> Result<WalkStep> {
    let mut first = WalkStep::End;
    effort.spend(parts.len() / 8);
    for part in parts {
        let step = match part.last {
            Some(WalkStep::End) => WalkStep::End,
            Some(WalkStep::At(at)) if !is_before(at, from, direction) => WalkStep::At(at),
            _ => part.walk.seek(from, direction, effort)?,
        };
        part.last = Some(step);
        first = earlier(first, step, direction);
    }
    Ok(first)
}

/// Returns which of two answers holds for both. A position that was found stands if nothing can
/// come before it.
fn earlier(one: WalkStep, other: WalkStep, direction: Direction) -> WalkStep {
    let place = |step| match step {
        WalkStep::At(position) => Some((position, false)),
        WalkStep::Paused(position) => Some((position, true)),
        WalkStep::End => None,
    };
    match (place(one), place(other)) {
        (None, _) => other,
        (_, None) => one,
        (Some((here, is_paused)), Some((there, _))) => {
            let is_first = is_before(here, there, direction) || (here == there && !is_paused);
            if is_first { one } else { other }
        }
    }
}

/// Returns whether a walk in this direction comes by `position` before `other`.
fn is_before(position: u64, other: u64, direction: Direction) -> bool {
    match direction {
        Direction::Forwards => position < other,
        Direction::Backwards => position > other,
    }
}

/// Returns the position that follows in a direction.
fn next_position(position: u64, direction: Direction) -> Option<u64> {
    match direction {
        Direction::Forwards => position.checked_add(1),
        Direction::Backwards => position.checked_sub(1).filter(|&position| position > 0),
    }
}

/// A walk over the positions of one term.
#[derive(Debug)]
pub(crate) struct TermWalk<'a> {
    term: TermLookup<'a>,
    direction: Direction,
    page: Vec<u64>,
    next: usize,
    page_size: usize,
    is_last_page: bool,
}

impl TermWalk<'_> {
    /// Skips what comes before `from` in the page. Mostly that is nothing or little.
    fn skip_to(&mut self, from: u64) {
        let direction = self.direction;
        let mut step = 1;
        while self
            .page
            .get(self.next + step - 1)
            .is_some_and(|&position| is_before(position, from, direction))
        {
            self.next += step;
            step *= 2;
        }
        let end = (self.next + step).min(self.page.len());
        self.next += self.page[self.next..end]
            .partition_point(|&position| is_before(position, from, direction));
    }

    /// Returns the first position at or beyond `from`; calls must not go back.
    fn seek(&mut self, from: u64) -> Result<Option<u64>> {
        let n_before = self.next;
        self.skip_to(from);
        if self.next >= self.page.len() && !self.is_last_page {
            // A walk that used its page will want a larger one; one that jumped over it will not.
            let n_jumped = self.next - n_before;
            if n_jumped < self.page.len().div_ceil(2) {
                self.page_size = (self.page_size * 2).min(PAGE_MAX);
            }
            self.page.clear();
            self.next = 0;
            self.term
                .page(from, self.direction, self.page_size, &mut self.page)?;
            self.is_last_page = self.page.len() < self.page_size;
        }
        Ok(self.page.get(self.next).copied())
    }
}

/// A walk over the positions of a range.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    walk: Walk<'a>,
    direction: Direction,
    /// Where the walk goes on, and where it ends, both inclusive.
    from: Option<u64>,
    last: u64,
}

impl<'a> Cursor<'a> {
    /// Returns a walk over the positions from `from` to `last`.
    pub(crate) fn new(walk: Walk<'a>, direction: Direction, from: u64, last: u64) -> Self {
        Self {
            walk,
            direction,
            from: Some(from),
            last,
        }
    }

    /// Returns where the walk goes on, if it does.
    pub(crate) fn place(&self) -> Option<u64> {
        self.from
    }

    /// Appends the next positions, up to `max` of them, as far as they are at hand.
    pub(crate) fn take_some(&mut self, max: usize, positions: &mut Vec<u64>) {
        let (Walk::Term(term), Some(from)) = (&mut self.walk, self.from) else {
            return;
        };
        term.skip_to(from);
        let some = &term.page[term.next..];
        let some = &some[..some.len().min(max)];
        let is_within = |&position: &u64| !is_before(self.last, position, self.direction);
        let some = &some[..some.partition_point(is_within)];
        positions.extend_from_slice(some);
        term.next += some.len();
        if let Some(&last) = some.last() {
            self.from = next_position(last, self.direction);
        }
    }

    /// Returns the next position.
    pub(crate) fn next(&mut self, effort: &Effort) -> Result<WalkStep> {
        let Some(from) = self.from else {
            return Ok(WalkStep::End);
        };
        let step = self.walk.seek(from, self.direction, effort)?;
        let is_past_end = |position| is_before(self.last, position, self.direction);
        let step = match step {
            WalkStep::At(position) | WalkStep::Paused(position) if is_past_end(position) => {
                WalkStep::End
            }
            step => step,
        };
        self.from = match step {
            WalkStep::At(position) => next_position(position, self.direction),
            WalkStep::Paused(position) => Some(position),
            WalkStep::End => None,
        };
        Ok(step)
    }
}
