//! A term as all layers have it: looked up once in each run, however often it is asked for.

use trefoil_core::{Direction, Result};

use super::layers::{Layer, Layers};
use super::postings::TermSummary;
use super::run::{Run, RunTerm};
use super::term::TermKind;

/// A term and what has been found of it so far.
#[derive(Debug)]
pub(crate) struct TermLookup<'a> {
    layers: &'a Layers,
    kind: TermKind,
    name: &'a str,
    /// For each layer that is a run, once it was asked: the term there, if it has it.
    found: Vec<Option<Option<RunTerm>>>,
}

impl<'a> TermLookup<'a> {
    pub(crate) fn new(layers: &'a Layers, kind: TermKind, name: &'a str) -> Self {
        let found = layers.layers.iter().map(|_| None).collect();
        Self {
            layers,
            kind,
            name,
            found,
        }
    }

    pub(crate) fn kind(&self) -> TermKind {
        self.kind
    }

    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the term in a run, which is the layer of this index.
    fn in_run(&mut self, index: usize, run: &Run) -> Result<Option<&RunTerm>> {
        let slot = &mut self.found[index];
        if slot.is_none() {
            *slot = Some(run.term(self.kind, self.name)?);
        }
        Ok(slot.as_ref().and_then(Option::as_ref))
    }

    /// Returns what is known of the term in all layers together.
    pub(crate) fn summary(&mut self) -> Result<Option<TermSummary>> {
        let mut all: Option<TermSummary> = None;
        let layers = self.layers;
        for (index, layer) in layers.layers.iter().enumerate() {
            let later = match layer {
                Layer::Run(run) => self.in_run(index, run)?.map(|term| term.summary),
                Layer::Memory(_) => layer.summary(self.kind, self.name)?,
            };
            if let Some(later) = later {
                all = Some(all.map_or(later, |earlier| earlier.followed_by(&later)));
            }
        }
        Ok(all)
    }

    /// At most how many positions there are from `low` to `high`, inclusive.
    pub(crate) fn count(&mut self, low: u64, high: u64) -> Result<u64> {
        let mut n = 0;
        let layers = self.layers;
        for (index, layer) in layers.layers.iter().enumerate() {
            match layer {
                Layer::Run(run) if run.last_position < low || run.first_position > high => {}
                Layer::Run(run) => {
                    let summary = self.in_run(index, run)?.map(|term| term.summary);
                    n += summary.map_or(0, |summary| summary.n_within(low, high));
                }
                Layer::Memory(tail) => {
                    let tail = tail.read();
                    let list = tail.list(self.kind, self.name);
                    n += list.map_or(0, |list| list.count(low, high));
                }
            }
        }
        Ok(n)
    }

    /// Copies positions at or beyond `from` in the given direction until there are `max` or no
    /// more.
    pub(crate) fn page(
        &mut self,
        from: u64,
        direction: Direction,
        max: usize,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        let start = out.len();
        let (layers, kind, name) = (self.layers, self.kind, self.name);
        for index in layers.order(direction) {
            let max = max - (out.len() - start);
            if max == 0 {
                break;
            }
            match &layers.layers[index] {
                layer if !layer.reaches(from, direction) => {}
                Layer::Run(run) => {
                    if let Some(term) = self.in_run(index, run)? {
                        run.page((kind, name), term, from, direction, max, out)?;
                    }
                }
                Layer::Memory(tail) => {
                    if let Some(list) = tail.read().list(kind, name) {
                        list.page(from, direction, max, out);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the position of the first event of a stream at or beyond `ordinal` in the given
    /// direction.
    pub(crate) fn seek_ordinal(
        &mut self,
        ordinal: u64,
        direction: Direction,
    ) -> Result<Option<u64>> {
        let (layers, name) = (self.layers, self.name);
        for index in layers.order(direction) {
            let position = match &layers.layers[index] {
                Layer::Run(run) => match self.in_run(index, run)? {
                    Some(term) if term.reaches(ordinal, direction) => {
                        run.seek_ordinal(name, term, ordinal, direction)?
                    }
                    _ => None,
                },
                Layer::Memory(tail) => {
                    let tail = tail.read();
                    let list = tail.list(self.kind, name);
                    list.and_then(|list| list.seek_ordinal(ordinal, direction))
                }
            };
            if position.is_some() {
                return Ok(position);
            }
        }
        Ok(None)
    }
}
