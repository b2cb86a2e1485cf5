//! The index as a reader sees it: runs, then the tail that is being written to a run, then the
//! live tail. Each layer follows the one before it in position, so that a lookup asks them in order.

use std::sync::Arc;

use parking_lot::RwLock;
use trefoil_core::{Direction, Result, Timestamp};

use super::lookup::TermLookup;
use super::postings::TermSummary;
use super::run::Run;
use super::tail::IndexTail;
use super::term::TermKind;

/// One stretch of the log's index.
#[derive(Debug, Clone)]
pub(crate) enum Layer {
    Run(Arc<Run>),
    Memory(Arc<RwLock<IndexTail>>),
}

/// All layers, oldest first. The last one is the live tail.
#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) layers: Vec<Layer>,
}

impl Layer {
    pub(crate) fn summary(&self, kind: TermKind, name: &str) -> Result<Option<TermSummary>> {
        match self {
            Self::Run(run) => Ok(run.term(kind, name)?.map(|term| term.summary)),
            Self::Memory(tail) => Ok(tail.read().list(kind, name).and_then(|list| list.summary())),
        }
    }

    /// Returns whether there can be a position at or beyond `from` in the given direction.
    pub(crate) fn reaches(&self, from: u64, direction: Direction) -> bool {
        match (self, direction) {
            (Self::Run(run), Direction::Forwards) => run.last_position >= from,
            (Self::Run(run), Direction::Backwards) => run.first_position <= from,
            (Self::Memory(tail), Direction::Forwards) => tail.read().last_position() >= from,
            (Self::Memory(_), Direction::Backwards) => true,
        }
    }

    fn seek_time(&self, time: Timestamp) -> Result<Option<u64>> {
        match self {
            Self::Run(run) if run.highest_time < time => Ok(None),
            Self::Run(run) => run.seek_time(time),
            Self::Memory(tail) => {
                let tail = tail.read();
                let index = tail.times().partition_point(|(highest, _)| *highest < time);
                Ok(tail.times().get(index).map(|(_, position)| *position))
            }
        }
    }
}

impl Layers {
    /// Returns the indexes of the layers in the order in which a walk in this direction meets them.
    pub(crate) fn order(&self, direction: Direction) -> impl Iterator<Item = usize> + use<> {
        let n = self.layers.len();
        (0..n).map(move |index| match direction {
            Direction::Forwards => index,
            Direction::Backwards => n - 1 - index,
        })
    }

    /// Returns what is known of a term in all layers together.
    pub(crate) fn summary(&self, kind: TermKind, name: &str) -> Result<Option<TermSummary>> {
        TermLookup::new(self, kind, name).summary()
    }

    /// Returns the last ordinal and position of a stream in the runs.
    pub(crate) fn end_in_runs(&self, stream: &str) -> Result<Option<(u64, u64)>> {
        for run in self.runs().rev() {
            if let Some(term) = run.term(TermKind::Stream, stream)? {
                let TermSummary {
                    last_ordinal,
                    last_position,
                    ..
                } = term.summary;
                return Ok(Some((last_ordinal, last_position)));
            }
        }
        Ok(None)
    }

    /// Returns the first position of a stretch of events of which the first one at or after `time`
    /// is one.
    pub(crate) fn seek_time(&self, time: Timestamp) -> Result<Option<u64>> {
        for layer in &self.layers {
            if let Some(position) = layer.seek_time(time)? {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// Returns the positions of events whose ids have this hash, of many the first ones.
    pub(crate) fn positions_of_id(&self, hash: u64) -> Result<Vec<u64>> {
        let mut positions = Vec::new();
        for layer in &self.layers {
            match layer {
                Layer::Run(run) => run.positions_of_id(hash, &mut positions)?,
                Layer::Memory(tail) => {
                    positions.extend_from_slice(tail.read().positions_of_id(hash));
                }
            }
        }
        Ok(positions)
    }

    /// Returns the runs among the layers.
    pub(crate) fn runs(&self) -> impl DoubleEndedIterator<Item = &Arc<Run>> {
        self.layers.iter().filter_map(|layer| match layer {
            Layer::Run(run) => Some(run),
            Layer::Memory(_) => None,
        })
    }
}
