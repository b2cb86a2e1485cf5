//! What a read reads from, and how long its stages take.

use std::sync::Arc;
use std::time::Duration;

use super::LogReader;
use crate::Database;
use crate::database::engine::Engine;
use crate::index::Layers;
use crate::removal::HiddenEvents;
use crate::stats::{ReadFigures, RequestStage, Trace};
use crate::time::clock::Clock;

/// The log and the index as they are when a read begins.
pub(crate) struct LogMoment<'a> {
    pub(super) reader: LogReader<'a>,
    pub(super) layers: Arc<Layers>,
    /// Where the log ends.
    pub(super) head: u64,
    /// What was removed of it.
    pub(super) hidden: HiddenEvents<'a>,
    engine: &'a Engine,
    trace: Option<&'a Trace>,
}

impl<'a> LogMoment<'a> {
    pub(crate) fn new(engine: &'a Engine) -> Self {
        // Every event up to the head is in the layers that are taken after it.
        let head = engine.writer.head();
        Self {
            reader: engine.storage.as_ref().into(),
            layers: engine.index.layers(),
            head,
            hidden: HiddenEvents::new(&engine.store),
            engine,
            trace: None,
        }
    }

    /// Adds its stages to the trace of a handle, and waits for the disk if that does.
    pub(crate) fn read_by(self, database: &'a Database) -> Self {
        Self {
            reader: LogReader::new(self.engine.storage.as_ref(), database.shortage()),
            trace: database.trace(),
            ..self
        }
    }
}

/// Measures the stages of a read, one after the other.
pub(super) struct ReadStages<'a> {
    engine: &'a Engine,
    clock: &'a Clock,
    trace: Option<&'a Trace>,
    figures: ReadFigures,
    /// When the last stage ended, by the steady clock.
    ended: Duration,
}

impl<'a> ReadStages<'a> {
    pub(super) fn begin(log: &LogMoment<'a>) -> Self {
        Self {
            engine: log.engine,
            clock: log.engine.clock(),
            trace: log.trace,
            figures: ReadFigures::default(),
            ended: log.engine.clock().steady(),
        }
    }

    /// A stage has ended; it may have several parts.
    pub(super) fn end(&mut self, stage: impl FnOnce(&mut ReadFigures) -> &mut Duration) {
        let now = self.clock.steady();
        *stage(&mut self.figures) += now.saturating_sub(self.ended);
        self.ended = now;
    }

    /// What is in the index has been looked up, whether or not the events could be read.
    pub(super) fn note_lookups(&self) {
        let took = self.figures.plan + self.figures.index;
        self.engine.index_slowness.note(took, self.clock);
    }

    /// The read has ended, with so many events.
    pub(super) fn finish(mut self, n_events: usize) {
        self.figures.n_events = n_events;
        self.engine.background.stats.reads.record(&self.figures);
        if let Some(trace) = self.trace {
            trace.add(RequestStage::Plan, self.figures.plan);
            trace.add(RequestStage::Index, self.figures.index);
            trace.add(RequestStage::Log, self.figures.log);
        }
    }
}
