//! Handles that tell how long things take.

use std::sync::Arc;
use std::time::Duration;

use super::Database;
use crate::stats::Trace;

impl Database {
    /// Returns a handle that adds to a trace how long what is done through it takes.
    #[must_use]
    pub fn traced(mut self, trace: &Arc<Trace>) -> Self {
        self.trace = Some(Arc::clone(trace));
        self
    }

    /// Adds to a trace what the writer did for a request that began and ended then, by the steady
    /// clock, if that took long.
    pub fn trace_writer(&self, trace: &Trace, began: Duration, ended: Duration) {
        if let (true, Ok(engine)) = (trace.is_write(), self.engine()) {
            engine.writer.stats.trace(trace, began, ended);
        }
    }

    pub(crate) fn trace(&self) -> Option<&Trace> {
        self.trace.as_deref()
    }
}
