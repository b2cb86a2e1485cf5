//! What is counted about RESP.

use std::time::Duration;

use trefoil::{Histogram, Reply, Striped};

use super::clients::RespClients;
use crate::metrics::{Buckets, ErrorTable, Exposition, MetricKind, SharedCount};
use crate::service::Shared;

/// What stands for every command that there is not.
pub(super) const UNKNOWN_COMMAND: &str = "unknown";

/// What is counted about RESP, besides what is counted of each command.
#[derive(Debug, Default)]
pub(crate) struct RespMetrics {
    /// Replies that were errors.
    pub(super) errors: ErrorTable,
    /// Requests that were carried out together.
    batch: Striped<Histogram>,
    /// How long each of them took.
    seconds: Striped<Histogram>,
    pub(super) received: SharedCount,
    pub(super) sent: SharedCount,
}

impl RespMetrics {
    /// Counts requests that were carried out together in this time.
    fn count_turn(&self, n_requests: u64, time: Duration) {
        self.batch.record(n_requests);
        self.seconds.record_duration_times(time, n_requests);
    }

    /// Counts a reply if it is an error.
    pub(super) fn count_error(&self, reply: &Reply) {
        if let Reply::Error(text) = reply {
            let code = text.split_once(' ').map_or(text.as_ref(), |(code, _)| code);
            self.errors.count(code);
        }
    }

    pub(crate) fn put(&self, out: &mut Exposition, clients: &RespClients) {
        let help = "RESP requests";
        let mut commands = out.family(MetricKind::Counter, "resp_commands", help);
        for (command, calls, _) in clients.usage.totals() {
            commands.put(&[("command", command)], calls);
        }
        let help = "Time that RESP requests took until their replies were there";
        let mut seconds = out.family(MetricKind::Counter, "resp_command_seconds", help);
        for (command, _, time) in clients.usage.totals() {
            seconds.put(&[("command", command)], time.as_secs_f64());
        }
        let help =
            "Time from the arrival of a RESP request to its reply, with those that it came with";
        let took = &self.seconds.snapshot();
        out.histogram("resp_request_seconds", help, took, Buckets::SECONDS);
        let help = "RESP replies that were errors";
        self.errors.put(out, "resp_errors", help);
        let help = "RESP requests of a client that were carried out together";
        let batch = &self.batch.snapshot();
        out.histogram("resp_batch_requests", help, batch, Buckets::NUMBERS);
        let help = "Bytes read from RESP connections";
        out.counter("resp_received_bytes", help, self.received.get());
        let help = "Bytes written to RESP connections";
        out.counter("resp_sent_bytes", help, self.sent.get());
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
        self.turn_to(command);
        self.count += 1;
    }

    /// What follows is about a request of this kind, which was counted before.
    pub(super) fn turn_to(&mut self, command: &'static str) {
        if self.command != command {
            if self.count > 0 {
                self.before.push((self.command, self.count));
            }
            self.command = command;
            self.count = 0;
        }
    }

    /// The last request.
    pub(super) fn last(&self) -> &'static str {
        self.command
    }

    /// Tells how many there were, and how long they took together.
    pub(super) fn flush(&mut self, shared: &Shared, time: Duration) {
        let last = (self.command, std::mem::take(&mut self.count));
        let total = last.1 + self.before.iter().map(|(_, count)| count).sum::<u64>();
        shared.metrics.resp.count_turn(total, time);
        let runs = self.before.drain(..).chain([last]);
        for (command, count) in runs.filter(|(_, count)| *count > 0) {
            if let Some(counts) = shared.resp.usage.of(command) {
                let part = time.mul_f64(count as f64 / total as f64);
                counts.add(count, part);
            }
        }
    }
}
