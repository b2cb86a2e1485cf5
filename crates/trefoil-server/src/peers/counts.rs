//! What is counted of requests that are sent on to other nodes.

use crate::connections::Protocol;
use crate::metrics::{Exposition, MetricKind, SharedCount};

/// What has come of sending a request to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForwardOutcome {
    /// The peer has answered.
    Answered,
    /// The peer was not there, or did not have the namespace: the owner is looked for again.
    NotExecuted,
    /// The connection was lost, and nobody knows whether it was executed.
    Lost,
}

impl ForwardOutcome {
    const EVERY: [(Self, &str); 3] = [
        (Self::Answered, "answered"),
        (Self::NotExecuted, "not_executed"),
        (Self::Lost, "lost"),
    ];
}

/// Requests that were sent on, by protocol and outcome.
#[derive(Debug, Default)]
pub(crate) struct ForwardCounts([[SharedCount; 3]; Protocol::EVERY.len()]);

impl ForwardCounts {
    /// Counts a request that was sent to a peer.
    pub(crate) fn count(&self, protocol: Protocol, outcome: ForwardOutcome) {
        self.0[protocol as usize][outcome as usize].add(1);
    }

    pub(crate) fn put(&self, out: &mut Exposition) {
        let help = "Requests that were sent to the node that has their namespace";
        let mut family = out.family(MetricKind::Counter, "forwarded_requests", help);
        for protocol in Protocol::EVERY {
            for (outcome, name) in ForwardOutcome::EVERY {
                let labels = [("protocol", protocol.name()), ("outcome", name)];
                let count = self.0[protocol as usize][outcome as usize].get();
                family.put(&labels, count);
            }
        }
    }
}
