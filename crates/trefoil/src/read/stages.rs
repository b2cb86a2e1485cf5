//! What a read reads from, and how long its stages take.

use std::sync::Arc;
use std::time::Duration;

use trefoil_storage::Storage;

use crate::database::engine::Engine;
use crate::index::Layers;
use crate::removal::HiddenEvents;
use crate::stats::{ReadFigures, ReadStats, RequestStage, Trace};
use crate::time::clock::Clock;

/// The log and the index as they are when a read begins.
pub(crate) struct LogMoment<'a> {
    pub(super) storage: &'a dyn Storage,
    pub(super) layers: Arc<Layers>,
    /// Where the log ends.
    pub(super) head: u64,
    /// What was removed of it.
    pub(super) hidden: HiddenEvents<'a>,
    clock: &'a Clock,
    stats: &'a ReadStats,
    trace: Option<&'a Trace>,
}

impl<'a> LogMoment<'a> {
    pub(crate) fn new(engine: &'a Engine) -> Self {
        // Every event up to the head is in the layers that are taken after it.
        let head = engine.writer.head();
        Self {
            storage: engine.storage.as_ref(),
            layers: engine.index.layers(),
            head,
            hidden: HiddenEvents::new(&engine.store),
            clock: engine.clock(),
            stats: &engine.background.stats.reads,
            trace: None,
        }
    }

    /// Adds its stages to a trace.
    pub(crate) fn traced(mut self, trace: Option<&'a Trace>) -> Self {
        self.trace = trace;
        self
    }
}

/// Measures the stages of a read, one after the other.
pub(super) struct ReadStages<'a> {
    clock: &'a Clock,
    stats: &'a ReadStats,
    trace: Option<&'a Trace>,
    figures: ReadFigures,
    /// When the last stage ended, by the steady clock.
    ended: Duration,
}

impl<'a> ReadStages<'a> {
    pub(super) fn begin(log: &LogMoment<'a>) -> Self {
        Self {
            clock: log.clock,
            stats: log.stats,
            trace: log.trace,
            figures: ReadFigures::default(),
            ended: log.clock.steady(),
        }
    }

    /// A stage has ended; it may have several parts.
    pub(super) fn end(&mut self, stage: impl FnOnce(&mut ReadFigures) -> &mut Duration) {
        let now = self.clock.steady();
        *stage(&mut self.figures) += now.saturating_sub(self.ended);
        self.ended = now;
    }

    /// The read has ended, with so many events.
    pub(super) fn finish(mut self, n_events: usize) {
        self.figures.n_events = n_events;
        self.stats.record(&self.figures);
        if let Some(trace) = self.trace {
            trace.add(RequestStage::Plan, self.figures.plan);
            trace.add(RequestStage::Index, self.figures.index);
            trace.add(RequestStage::Log, self.figures.log);
        }
    }
}
