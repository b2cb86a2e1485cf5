//! Deciding how events are found: by which terms, in which order, or by reading all of them.
//!
//! The plan decides what a read costs, never what it answers: whatever the walk over the index does
//! not check is checked on the events.

use trefoil_core::{Direction, QueryItem, Result, Source};

use super::matcher::Matcher;
use crate::index::{Layers, TermKind, TermLookup, Walk};
use crate::read::explain::{ExplainedItem, ExplainedTerm, Explanation, Role, Strategy};

/// A term this many times more frequent than the rarest one is checked on the events themselves:
/// reading an event costs less than seeking in a long list.
const VERIFY_ON_EVENT_RATIO: u64 = 64;

/// What it costs to look at a position of a term, to read an event, and to check it, in about
/// nanoseconds. Only the ratios matter.
const POSITION_COST: u64 = 20;
const EVENT_COST: u64 = 300;
const CHECK_COST: u64 = 50;

/// How many positions of a term that does not lead are looked at together at first.
const PAGE_FIRST: usize = 64;

/// The alternative that stands for a query without any.
static EVERYTHING: QueryItem = QueryItem {
    types: Vec::new(),
    tags: Vec::new(),
};

/// The positions that are looked at, both inclusive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PositionRange {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// How events are found.
#[derive(Debug)]
pub(crate) struct ReadPlan<'a> {
    layers: &'a Layers,
    range: PositionRange,
    items: Vec<PlanItem<'a>>,
    strategy: Strategy,
    /// At most how many events are read.
    estimate: u64,
    /// Whether the matcher must be checked on the events.
    pub(crate) verify: bool,
}

/// How the events of one alternative are found: its terms, the rarest first.
#[derive(Debug)]
struct PlanItem<'a> {
    terms: Vec<PlanTerm<'a>>,
}

/// Something that events of an alternative have: one name of a kind, or any of several.
#[derive(Debug)]
struct PlanTerm<'a> {
    kind: TermKind,
    lookups: Vec<TermLookup<'a>>,
    /// At most how many events of the range have it.
    events: u64,
    is_verified: bool,
}

impl<'a> ReadPlan<'a> {
    /// Returns the plan for events that one term, already looked up, leads to: there is nothing to
    /// choose.
    pub(crate) fn of_term(layers: &'a Layers, range: PositionRange, term: TermLookup<'a>) -> Self {
        let item = PlanItem {
            terms: vec![PlanTerm::new(vec![term])],
        };
        Self {
            layers,
            range,
            items: vec![item],
            strategy: Strategy::Index,
            estimate: 0,
            verify: false,
        }
    }

    /// Decides how to find what is selected of a range.
    pub(crate) fn new(
        layers: &'a Layers,
        matcher: Matcher<'a>,
        range: PositionRange,
    ) -> Result<Self> {
        let alternatives = match matcher.query.is_all() {
            true => std::slice::from_ref(&EVERYTHING),
            false => matcher.query.items.as_slice(),
        };
        let mut items = Vec::with_capacity(alternatives.len());
        for alternative in alternatives {
            let terms = terms_of(layers, matcher, alternative);
            items.extend(PlanItem::new(terms, range)?);
        }
        let width = (range.high + 1).saturating_sub(range.low);
        let estimate = items.iter().map(PlanItem::estimate).sum::<u64>().min(width);
        let positions: u64 = items.iter().map(PlanItem::positions).sum();
        let by_index = positions * POSITION_COST + estimate * EVENT_COST;
        let is_verified = items.iter().any(PlanItem::is_verified);
        let strategy = if items.is_empty() {
            Strategy::Nothing
        } else if width.saturating_mul(EVENT_COST + CHECK_COST) < by_index {
            Strategy::Scan
        } else {
            Strategy::Index
        };
        Ok(Self {
            layers,
            range,
            items,
            estimate,
            verify: is_verified || strategy == Strategy::Scan,
            strategy,
        })
    }

    /// Returns the walk over the positions at which the events are, or may be if they are to be
    /// verified; `None` if there are none. About `page_size` of them will be wanted.
    pub(crate) fn into_walk(self, direction: Direction, page_size: usize) -> Option<Walk<'a>> {
        match self.strategy {
            Strategy::Nothing => None,
            Strategy::Scan => {
                let everything = TermLookup::new(self.layers, TermKind::All, "");
                Some(Walk::term(everything, direction, page_size))
            }
            Strategy::Index => {
                let items = self.items.into_iter();
                let walks = items.map(|item| item.into_walk(direction, page_size));
                Some(Walk::any(walks.collect()))
            }
        }
    }

    /// Returns the plan in the words of the product.
    pub(crate) fn explain(&self) -> Explanation {
        Explanation {
            range: (self.range.low, self.range.high),
            strategy: self.strategy,
            items: self.items.iter().map(PlanItem::explain).collect(),
            estimate: self.estimate,
        }
    }
}

/// Returns what the events of one alternative have.
fn terms_of<'a>(
    layers: &'a Layers,
    matcher: Matcher<'a>,
    alternative: &'a QueryItem,
) -> Vec<PlanTerm<'a>> {
    let single = |kind, name| PlanTerm::new(vec![TermLookup::new(layers, kind, name)]);
    let mut terms = Vec::new();
    match matcher.source {
        Source::All => {}
        Source::Category(name) => terms.push(single(TermKind::Category, name)),
        Source::Stream(name) => terms.push(single(TermKind::Stream, name)),
    }
    terms.extend(matcher.event_type.map(|name| single(TermKind::Type, name)));
    let correlation = matcher.correlation;
    terms.extend(correlation.map(|name| single(TermKind::Correlation, name)));
    let types = distinct(&alternative.types);
    if !types.is_empty() {
        let lookups = types.into_iter();
        let lookups = lookups.map(|name| TermLookup::new(layers, TermKind::Type, name));
        terms.push(PlanTerm::new(lookups.collect()));
    }
    let tags = distinct(&alternative.tags).into_iter();
    terms.extend(tags.map(|name| single(TermKind::Tag, name)));
    if terms.is_empty() {
        terms.push(single(TermKind::All, ""));
    }
    terms
}

fn distinct(names: &[String]) -> Vec<&str> {
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl<'a> PlanItem<'a> {
    /// Counts and orders the terms; `None` if one of them does not occur.
    fn new(mut terms: Vec<PlanTerm<'a>>, range: PositionRange) -> Result<Option<Self>> {
        for term in &mut terms {
            if term.count(range)? == 0 {
                return Ok(None);
            }
        }
        terms.sort_by_key(|term| term.events);
        let frequent = terms[0].events.saturating_mul(VERIFY_ON_EVENT_RATIO);
        for term in &mut terms {
            term.is_verified = term.events > frequent;
        }
        Ok(Some(Self { terms }))
    }

    /// At most how many events are read.
    fn estimate(&self) -> u64 {
        self.terms.first().map_or(0, |term| term.events)
    }

    /// Returns about how many positions are looked at: each of the rarest term, in every other one.
    fn positions(&self) -> u64 {
        let walked = self.terms.iter().filter(|term| !term.is_verified);
        let names: usize = walked.map(|term| term.lookups.len()).sum();
        self.estimate().saturating_mul(names as u64)
    }

    fn is_verified(&self) -> bool {
        self.terms.iter().any(|term| term.is_verified)
    }

    fn into_walk(self, direction: Direction, page_size: usize) -> Walk<'a> {
        let walked = self.terms.into_iter().filter(|term| !term.is_verified);
        let walks = walked.enumerate().map(|(index, term)| {
            let page_size = if index == 0 { page_size } else { PAGE_FIRST };
            term.into_walk(direction, page_size)
        });
        Walk::every(walks.collect())
    }

    fn explain(&self) -> ExplainedItem {
        let role = |(index, term): (usize, &PlanTerm<'_>)| match index {
            _ if term.is_verified => Role::Verify,
            0 => Role::Lead,
            _ => Role::Intersect,
        };
        let terms = self.terms.iter().enumerate();
        let explained = terms.map(|(index, term)| term.explain(role((index, term))));
        ExplainedItem {
            terms: explained.collect(),
        }
    }
}

impl<'a> PlanTerm<'a> {
    /// Returns a term that events have if they have any of these names, which are of one kind.
    fn new(lookups: Vec<TermLookup<'a>>) -> Self {
        Self {
            kind: lookups.first().map_or(TermKind::All, TermLookup::kind),
            lookups,
            events: 0,
            is_verified: false,
        }
    }

    /// Counts the events of the range that have the term. Names that do not occur are dropped.
    fn count(&mut self, range: PositionRange) -> Result<u64> {
        let mut found = Vec::with_capacity(self.lookups.len());
        for mut lookup in self.lookups.drain(..) {
            let events = lookup.count(range.low, range.high)?;
            if events > 0 {
                self.events = self.events.saturating_add(events);
                found.push(lookup);
            }
        }
        self.lookups = found;
        Ok(self.events)
    }

    fn into_walk(self, direction: Direction, page_size: usize) -> Walk<'a> {
        let lookups = self.lookups.into_iter();
        let walks = lookups.map(|lookup| Walk::term(lookup, direction, page_size));
        Walk::any(walks.collect())
    }

    fn explain(&self, role: Role) -> ExplainedTerm {
        let names = self.lookups.iter().map(|lookup| lookup.name().to_owned());
        ExplainedTerm {
            kind: self.kind.name(),
            names: names.collect(),
            events: self.events,
            role,
        }
    }
}
