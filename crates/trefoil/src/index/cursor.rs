//! Walking over the positions at which all of several terms occur.

use trefoil_core::{Direction, Result};

use super::lookup::Lookup;

/// How many positions are copied from the index at a time at most.
const PAGE_MAX: usize = 4096;

/// A walk over the positions of one term.
#[derive(Debug)]
struct TermCursor<'a> {
    term: Lookup<'a>,
    direction: Direction,
    page: Vec<u64>,
    next: usize,
    page_size: usize,
    is_last_page: bool,
}

/// A walk over the positions at which all of some terms occur: leapfrog, led by the first term.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    terms: Vec<TermCursor<'a>>,
    direction: Direction,
    /// Where the walk goes on, and where it ends, both inclusive.
    from: Option<u64>,
    last: u64,
}

impl<'a> TermCursor<'a> {
    fn new(term: Lookup<'a>, direction: Direction, page_size: usize) -> Self {
        Self {
            term,
            direction,
            page: Vec::new(),
            next: 0,
            page_size,
            is_last_page: false,
        }
    }

    /// Skips what comes before `from` in the page. Mostly that is nothing or little.
    fn skip_to(&mut self, from: u64) {
        let direction = self.direction;
        let is_before = |position: u64| match direction {
            Direction::Forwards => position < from,
            Direction::Backwards => position > from,
        };
        let mut step = 1;
        while self
            .page
            .get(self.next + step - 1)
            .is_some_and(|&position| is_before(position))
        {
            self.next += step;
            step *= 2;
        }
        let end = (self.next + step).min(self.page.len());
        self.next += self.page[self.next..end].partition_point(|&position| is_before(position));
    }

    /// The first position at or beyond `from`; calls must not go back.
    fn seek(&mut self, from: u64) -> Result<Option<u64>> {
        self.skip_to(from);
        if self.next == self.page.len() && !self.is_last_page {
            self.page.clear();
            self.next = 0;
            self.term
                .page(from, self.direction, self.page_size, &mut self.page)?;
            self.is_last_page = self.page.len() < self.page_size;
            self.page_size = (self.page_size * 2).min(PAGE_MAX);
        }
        Ok(self.page.get(self.next).copied())
    }
}

impl<'a> Cursor<'a> {
    /// A walk over the positions from `from` to `last` at which all `terms` occur. The first term
    /// should be the rarest. About `page_size` positions are expected to be wanted.
    pub(crate) fn new(
        terms: Vec<Lookup<'a>>,
        direction: Direction,
        from: u64,
        last: u64,
        page_size: usize,
    ) -> Self {
        let cursor = |term| TermCursor::new(term, direction, page_size);
        let cursors = terms.into_iter().map(cursor).collect();
        Self {
            terms: cursors,
            direction,
            from: Some(from),
            last,
        }
    }

    /// The next position.
    pub(crate) fn next(&mut self) -> Result<Option<u64>> {
        let Some(mut candidate) = self.from else {
            return Ok(None);
        };
        'candidates: loop {
            for term in &mut self.terms {
                match term.seek(candidate)? {
                    Some(position) if position == candidate => {}
                    Some(position) => {
                        candidate = position;
                        continue 'candidates;
                    }
                    None => {
                        self.from = None;
                        return Ok(None);
                    }
                }
            }
            break;
        }
        let is_past_end = match self.direction {
            Direction::Forwards => candidate > self.last,
            Direction::Backwards => candidate < self.last,
        };
        if is_past_end {
            self.from = None;
            return Ok(None);
        }
        self.from = match self.direction {
            Direction::Forwards => candidate.checked_add(1),
            Direction::Backwards => candidate.checked_sub(1),
        };
        Ok(Some(candidate))
    }
}
