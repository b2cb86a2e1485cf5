//! What is counted about RESP.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::service::Shared;

/// What stands for every command that there is not.
pub(super) const UNKNOWN_COMMAND: &str = "unknown";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CommandLabel {
    command: &'static str,
}

/// What is counted about RESP.
#[derive(Debug)]
pub(crate) struct RespMetrics {
    commands: Family<CommandLabel, Counter>,
    /// Replies that were errors.
    pub(super) errors: Counter,
    /// Requests that were carried out together.
    pub(super) batch: Histogram,
    pub(super) received: Counter,
    pub(super) sent: Counter,
    pub(crate) connections: Gauge,
}

impl RespMetrics {
    pub(crate) fn new() -> Self {
        Self {
            commands: Family::default(),
            errors: Counter::default(),
            batch: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
            received: Counter::default(),
            sent: Counter::default(),
            connections: Gauge::default(),
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("resp_commands", "RESP requests", self.commands.clone());
        let help = "RESP replies that were errors";
        registry.register("resp_errors", help, self.errors.clone());
        let help = "RESP requests of a client that were carried out together";
        registry.register("resp_batch_requests", help, self.batch.clone());
        let help = "Bytes read from RESP connections";
        registry.register("resp_received_bytes", help, self.received.clone());
        let help = "Bytes written to RESP connections";
        registry.register("resp_sent_bytes", help, self.sent.clone());
        let help = "Open RESP connections";
        registry.register("resp_connections", help, self.connections.clone());
    }
}

/// Requests of one kind in a row, counted together.
#[derive(Debug, Default)]
pub(super) struct Tally {
    command: &'static str,
    count: u64,
    /// Those of other kinds before them.
    before: Vec<(&'static str, u64)>,
}

impl Tally {
    /// Counts a request.
    pub(super) fn count(&mut self, command: &'static str) {
        if self.command != command {
            if self.count > 0 {
                self.before.push((self.command, self.count));
            }
            self.command = command;
            self.count = 0;
        }
        self.count += 1;
    }

    /// The last request.
    pub(super) fn last(&self) -> &'static str {
        self.command
    }

    /// Tells how many there were, and how long they took together.
    pub(super) fn flush(&mut self, shared: &Shared, time: Duration) {
        let last = (self.command, std::mem::take(&mut self.count));
        let total = last.1 + self.before.iter().map(|(_, count)| count).sum::<u64>();
        let runs = self.before.drain(..).chain([last]);
        for (command, count) in runs.filter(|(_, count)| *count > 0) {
            if let Some(counts) = shared.resp.usage.of(command) {
                let part = time.mul_f64(count as f64 / total as f64);
                let commands = &shared.metrics.resp.commands;
                counts.add(count, part, || {
                    commands.get_or_create_owned(&CommandLabel { command })
                });
            }
        }
    }
}
