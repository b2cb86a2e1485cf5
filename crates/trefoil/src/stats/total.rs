//! What all databases of a process count together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use trefoil_core::{Error, Result};

use super::{GroupStats, Histogram, HistogramSnapshot, StatsSnapshot, Striped};
use crate::database::Recovery;
use crate::time::clock::Clock;

/// Work behind the scenes that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundWork {
    /// The newest part of the index and the changed state are written to disk.
    Checkpoint = 0,
    /// Runs of the index become one.
    Merge = 1,
    /// The state is written beside the log.
    Snapshot = 2,
    /// An old part of the log is compressed.
    Compression = 3,
}

impl BackgroundWork {
    /// All kinds.
    pub const EVERY: [Self; 4] = [
        Self::Checkpoint,
        Self::Merge,
        Self::Snapshot,
        Self::Compression,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Merge => "merge",
            Self::Snapshot => "snapshot",
            Self::Compression => "compression",
        }
    }
}

/// Counters of all databases of a process.
#[derive(Debug, Default)]
pub(crate) struct SharedStats {
    pub(crate) groups: Arc<GroupStats>,
    pub(crate) conditions: Striped<Histogram>,
    pub(crate) reads: ReadStats,
    work: [WorkCounters; BackgroundWork::EVERY.len()],
    recoveries: Histogram,
    replayed_events: AtomicU64,
    cut_bytes: AtomicU64,
    removed_events: AtomicU64,
    /// Redacted events that are still in logs after it was tried to remove them.
    pub(crate) overdue_redactions: AtomicU64,
}

/// What is counted about reads of events.
#[derive(Debug, Default)]
pub(crate) struct ReadStats {
    plan: Striped<Histogram>,
    index: Striped<Histogram>,
    log: Striped<Histogram>,
    events: Striped<AtomicU64>,
}

/// How long the stages of a read took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadFigures {
    pub(crate) plan: Duration,
    pub(crate) index: Duration,
    pub(crate) log: Duration,
    pub(crate) n_events: usize,
}

impl ReadStats {
    pub(crate) fn record(&self, read: &ReadFigures) {
        self.plan.record_duration(read.plan);
        self.index.record_duration(read.index);
        self.log.record_duration(read.log);
        self.events.add(read.n_events as u64);
    }
}

/// What one database adds to a number of all.
#[derive(Debug, Default)]
pub(crate) struct CountedPart(AtomicU64);

impl CountedPart {
    /// Changes it, and the number of all with it.
    pub(crate) fn set(&self, part: u64, all: &AtomicU64) {
        let before = self.0.swap(part, Ordering::Relaxed);
        all.fetch_add(part.wrapping_sub(before), Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct WorkCounters {
    seconds: Histogram,
    bytes: AtomicU64,
    failures: AtomicU64,
}

impl SharedStats {
    /// Does work, which returns how many bytes it wrote or read, and `None` if there was nothing to
    /// do.
    pub(crate) fn measure(
        &self,
        work: BackgroundWork,
        clock: &Clock,
        perform: impl FnOnce() -> Result<Option<u64>>,
    ) -> Result<bool> {
        let counters = &self.work[work as usize];
        let began = clock.steady();
        match perform() {
            Ok(Some(bytes)) => {
                counters.seconds.record_duration(clock.since(began));
                counters.bytes.fetch_add(bytes, Ordering::Relaxed);
                Ok(true)
            }
            Ok(None) => Ok(false),
            // It was given up, and has not failed.
            Err(error @ Error::Closed(_)) => Err(error),
            Err(error) => {
                counters.failures.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Counts what opening a database had to do.
    pub(crate) fn record_recovery(&self, recovery: &Recovery) {
        self.recoveries.record_duration(recovery.elapsed);
        let add = |counter: &AtomicU64, number| counter.fetch_add(number, Ordering::Relaxed);
        add(&self.replayed_events, recovery.replayed_events);
        add(&self.cut_bytes, recovery.cut_bytes);
    }

    /// Counts events that were removed.
    pub(crate) fn count_removed(&self, n_events: u64) {
        self.removed_events.fetch_add(n_events, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> TotalStats {
        let work = self.work.each_ref().map(|counters| WorkStats {
            nanos: counters.seconds.snapshot(),
            bytes: counters.bytes.load(Ordering::Relaxed),
            failures: counters.failures.load(Ordering::Relaxed),
        });
        TotalStats {
            groups: self.groups.snapshot(),
            conditions: self.conditions.snapshot(),
            read_plan: self.reads.plan.snapshot(),
            read_index: self.reads.index.snapshot(),
            read_log: self.reads.log.snapshot(),
            read_events: self.reads.events.get(),
            work: BackgroundWork::EVERY.into_iter().zip(work).collect(),
            recoveries: self.recoveries.snapshot(),
            replayed_events: self.replayed_events.load(Ordering::Relaxed),
            cut_bytes: self.cut_bytes.load(Ordering::Relaxed),
            removed_events: self.removed_events.load(Ordering::Relaxed),
            overdue_redactions: self.overdue_redactions.load(Ordering::Relaxed),
            ..TotalStats::default()
        }
    }
}

/// What all databases have counted since the process began. Durations are in nanoseconds.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TotalStats {
    /// The groups of commits.
    pub groups: StatsSnapshot,
    /// How long it took to look into the query conditions of a commit before it was queued.
    pub conditions: HistogramSnapshot,
    /// How long it took to decide how to find a page of events.
    pub read_plan: HistogramSnapshot,
    /// How long it took to find the positions of a page of events in the index.
    pub read_index: HistogramSnapshot,
    /// How long it took to read the events of a page from the log.
    pub read_log: HistogramSnapshot,
    /// How many events were read.
    pub read_events: u64,
    /// How many entries of the state were found among those that were read recently.
    pub cache_hits: u64,
    /// How many were looked for there and not found.
    pub cache_misses: u64,
    /// What was done behind the scenes.
    pub work: Vec<(BackgroundWork, WorkStats)>,
    /// How long it took to open a database.
    pub recoveries: HistogramSnapshot,
    /// How many events after the last checkpoint were read again for that.
    pub replayed_events: u64,
    /// Bytes of unfinished writes that were cut from the end of logs.
    pub cut_bytes: u64,
    /// How many events were removed: by truncations, deletions and policies.
    pub removed_events: u64,
    /// How many redacted events of open databases are still in the log after it was tried to remove
    /// them.
    pub overdue_redactions: u64,
    /// How many databases are open.
    pub open: u64,
    /// How many databases were closed because others had to be opened.
    pub closed_for_room: u64,
    /// Bytes of the logs on disk, room ahead included.
    pub log_bytes: u64,
    /// Bytes of the logs that hold events and snapshots.
    pub log_used_bytes: u64,
    /// Bytes of the indexes on disk.
    pub index_bytes: u64,
    /// Bytes of the state on disk, without snapshots.
    pub state_bytes: u64,
}

/// What is counted about one kind of work behind the scenes.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WorkStats {
    /// How long it took each time, with its rests while much is written, in nanoseconds.
    pub nanos: HistogramSnapshot,
    /// How many bytes it wrote; those it read, for compression.
    pub bytes: u64,
    /// How often it failed. It is tried again.
    pub failures: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_as_done_failed_or_neither() {
        let (stats, clock) = (SharedStats::default(), Clock::default());
        let done = |result| stats.measure(BackgroundWork::Merge, &clock, || result);
        assert!(done(Ok(Some(7))).unwrap());
        assert!(!done(Ok(None)).unwrap());
        done(Err(Error::Closed("x".into()))).unwrap_err();
        done(Err(Error::DiskFull("x".into()))).unwrap_err();
        let stats = stats.snapshot();
        let counts = stats.work.iter().map(|(kind, work)| {
            let name = kind.name();
            (name, work.nanos.count(), work.bytes, work.failures)
        });
        let expected = [
            ("checkpoint", 0, 0, 0),
            ("merge", 1, 7, 1),
            ("snapshot", 0, 0, 0),
            ("compression", 0, 0, 0),
        ];
        assert_eq!(counts.collect::<Vec<_>>(), expected);
    }
}
