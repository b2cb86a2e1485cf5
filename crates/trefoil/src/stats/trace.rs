//! How long the stages of one request took, for the few of which somebody wants to know.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::histogram::nanos;

/// What a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestStage {
    /// It arrives.
    Receive = 0,
    /// Its namespace is opened.
    Open = 1,
    /// The query conditions of a commit are looked into.
    Conditions = 2,
    /// A thread for long reads has time for it.
    Wait = 3,
    /// It is decided how to find events.
    Plan = 4,
    /// Their positions are found in the index.
    Index = 5,
    /// The events are read from the log.
    Log = 6,
    /// The writer has time for it.
    Queue = 7,
    /// Its group is decided and encoded.
    Staging = 8,
    /// The group is handed to the operating system.
    Write = 9,
    /// The group becomes durable.
    Sync = 10,
    /// The group becomes visible.
    Publish = 11,
    /// All the rest: what is read of the state, and the way from and to the client.
    Serve = 12,
}

const STAGES: [RequestStage; 13] = [
    RequestStage::Receive,
    RequestStage::Open,
    RequestStage::Conditions,
    RequestStage::Wait,
    RequestStage::Plan,
    RequestStage::Index,
    RequestStage::Log,
    RequestStage::Queue,
    RequestStage::Staging,
    RequestStage::Write,
    RequestStage::Sync,
    RequestStage::Publish,
    RequestStage::Serve,
];

impl RequestStage {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Open => "open",
            Self::Conditions => "conditions",
            Self::Wait => "wait",
            Self::Plan => "plan",
            Self::Index => "index",
            Self::Log => "log",
            Self::Queue => "queue",
            Self::Staging => "staging",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Publish => "publish",
            Self::Serve => "serve",
        }
    }
}

/// How long the stages of a request took so far. Databases that are given it, see
/// [`Database::traced`](crate::Database::traced), add to it.
#[derive(Debug, Default)]
pub struct Trace {
    nanos: [AtomicU64; STAGES.len()],
    /// Whether it has to do with the writer.
    is_write: AtomicBool,
}

impl Trace {
    /// Adds to a stage.
    pub fn add(&self, stage: RequestStage, time: Duration) {
        self.nanos[stage as usize].fetch_add(nanos(time), Ordering::Relaxed);
    }

    /// Begins anew, for the next request.
    pub fn clear(&self) {
        for nanos in &self.nanos {
            nanos.store(0, Ordering::Relaxed);
        }
        self.is_write.store(false, Ordering::Relaxed);
    }

    pub(crate) fn note_write(&self) {
        self.is_write.store(true, Ordering::Relaxed);
    }

    /// Returns whether something was handed to the writer.
    pub fn is_write(&self) -> bool {
        self.is_write.load(Ordering::Relaxed)
    }

    fn time(&self, stage: RequestStage) -> Duration {
        let nanos = self.nanos[stage as usize].load(Ordering::Relaxed);
        Duration::from_nanos(nanos)
    }

    /// Returns how long all stages took together.
    pub(crate) fn known(&self) -> Duration {
        STAGES.into_iter().map(|stage| self.time(stage)).sum()
    }

    /// Returns the stage that took longest of a request that took so long, and how long.
    pub fn longest(&self, total: Duration) -> (RequestStage, Duration) {
        let rest = (RequestStage::Serve, total.saturating_sub(self.known()));
        let stages = STAGES.into_iter().map(|stage| (stage, self.time(stage)));
        { stages.chain([rest]) }
            .max_by_key(|(_, time)| *time)
            .unwrap_or(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_stage_accounts_for_was_serving() {
        let trace = Trace::default();
        let millis = Duration::from_millis;
        assert_eq!(trace.longest(millis(9)), (RequestStage::Serve, millis(9)));
        trace.add(RequestStage::Log, millis(2));
        trace.add(RequestStage::Log, millis(3));
        assert_eq!(trace.longest(millis(9)), (RequestStage::Log, millis(5)));
        assert_eq!(trace.longest(millis(20)), (RequestStage::Serve, millis(15)));
        trace.clear();
        assert_eq!(trace.longest(millis(1)).0, RequestStage::Serve);
    }
}
