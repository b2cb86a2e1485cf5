//! A stopwatch that sees only the operations under measurement: time, CPU, latencies, events.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::latency::Latencies;
use crate::report::Row;
use crate::usage::own_cpu;

/// What was measured of one system in one cell.
#[derive(Debug)]
pub(crate) struct Timing {
    pub(crate) elapsed: Duration,
    cpu: Duration,
    pub(crate) events: u64,
    latencies: Latencies,
}

impl Timing {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            elapsed: Duration::ZERO,
            cpu: Duration::ZERO,
            events: 0,
            latencies: Latencies::new()?,
        })
    }

    /// Times one operation on this many events.
    pub(crate) fn time(
        &mut self,
        events: usize,
        operation: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let begin = Instant::now();
        operation()?;
        let elapsed = begin.elapsed();
        self.latencies.record(elapsed);
        self.elapsed += elapsed;
        self.events += events as u64;
        Ok(())
    }

    /// Does a stretch of work whose CPU time counts, that of background threads included.
    pub(crate) fn stretch(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let before = own_cpu();
        work(self)?;
        self.cpu += own_cpu() - before;
        Ok(())
    }

    /// Adds something that belongs to the work but is none of its operations.
    pub(crate) fn extra(&mut self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let begin = Instant::now();
        self.stretch(|_| work())?;
        self.elapsed += begin.elapsed();
        Ok(())
    }

    pub(crate) fn events_per_second(&self) -> f64 {
        self.events as f64 / self.elapsed.as_secs_f64()
    }

    pub(crate) fn micros_per_event(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e6 / self.events as f64
    }

    /// A row of events per second.
    pub(crate) fn row(&self, system: &str) -> Row {
        self.row_of(system, self.events_per_second())
    }

    /// A row of microseconds per event.
    pub(crate) fn cost_row(&self, system: &str) -> Row {
        self.row_of(system, self.micros_per_event())
    }

    fn row_of(&self, system: &str, figure: f64) -> Row {
        let mut row = Row::new(system, figure);
        row.latency = Some(self.latencies.percentiles());
        row.cpu = Some(self.cpu.as_secs_f64() * 1e6 / self.events as f64);
        row
    }
}
