//! What a database counts about the groups of commits that it writes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::histogram::{Histogram, HistogramSnapshot};
use super::trace::{RequestStage, Trace};

/// Counters of one database since it was opened, or of all databases of a process.
#[derive(Debug, Default)]
pub(crate) struct GroupStats {
    groups: AtomicU64,
    commits: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
    group_commits: Histogram,
    group_bytes: Histogram,
    queue: Histogram,
    staging: Histogram,
    write: Histogram,
    sync: Histogram,
    index: Histogram,
    publishing: Histogram,
    answer: Histogram,
    wakes: AtomicU64,
    /// The last groups that took long.
    slow: Mutex<VecDeque<GroupFigures>>,
    /// What counts the same for all databases.
    total: Option<Arc<GroupStats>>,
}

/// A copy of the counters at one moment.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StatsSnapshot {
    /// Groups written, each with one sync.
    pub groups: u64,
    /// Requests that were in those groups.
    pub commits: u64,
    /// Events written.
    pub events: u64,
    /// Bytes of events and of changes of state written.
    pub bytes: u64,
    /// Requests of a group.
    pub group_commits: HistogramSnapshot,
    /// Bytes of a group.
    pub group_bytes: HistogramSnapshot,
    /// How long the request of a group that came first waited before the group was begun, in
    /// nanoseconds.
    pub queue: HistogramSnapshot,
    /// How long a group took to be decided and encoded, and waited for room in the index, in
    /// nanoseconds.
    pub staging: HistogramSnapshot,
    /// How long it took to hand a group to the operating system, in nanoseconds; 0 if the storage does
    /// not tell.
    pub write: HistogramSnapshot,
    /// How long it took to make a group durable, in nanoseconds.
    pub sync: HistogramSnapshot,
    /// How long it took to add a durable group to the index, in nanoseconds: a part of `publishing`.
    pub index: HistogramSnapshot,
    /// How long it took to make a durable group visible, in nanoseconds.
    pub publishing: HistogramSnapshot,
    /// How long it took to answer all requests of a group, in nanoseconds.
    pub answer: HistogramSnapshot,
    /// How often a subscription that waited was woken, because a group had an event for it.
    pub wakes: u64,
}

/// What is counted about a group.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GroupFigures {
    pub(crate) n_commits: usize,
    pub(crate) n_events: usize,
    pub(crate) n_bytes: usize,
    /// When the leader began with it, by the steady clock.
    pub(crate) began: Duration,
    pub(crate) queue: Duration,
    pub(crate) staging: Duration,
    pub(crate) write: Duration,
    pub(crate) sync: Duration,
    pub(crate) index: Duration,
    pub(crate) publishing: Duration,
}

/// A group takes long if it takes this long.
const SLOW_GROUP: Duration = Duration::from_millis(5);

/// How many of those are remembered.
const SLOW_GROUPS: usize = 64;

impl GroupFigures {
    /// Returns how long it took since it was begun.
    fn elapsed(&self) -> Duration {
        self.staging + self.write + self.sync + self.publishing
    }
}

impl GroupStats {
    /// Counters that are counted in `total` as well.
    pub(crate) fn within(total: &Arc<Self>) -> Self {
        Self {
            total: Some(Arc::clone(total)),
            ..Self::default()
        }
    }

    pub(crate) fn record_group(&self, group: &GroupFigures) {
        let add = |counter: &AtomicU64, number: usize| {
            counter.fetch_add(number as u64, Ordering::Relaxed);
        };
        add(&self.groups, 1);
        add(&self.commits, group.n_commits);
        add(&self.events, group.n_events);
        add(&self.bytes, group.n_bytes);
        self.group_commits.record(group.n_commits as u64);
        self.group_bytes.record(group.n_bytes as u64);
        self.queue.record_duration(group.queue);
        self.staging.record_duration(group.staging);
        self.write.record_duration(group.write);
        self.sync.record_duration(group.sync);
        self.index.record_duration(group.index);
        self.publishing.record_duration(group.publishing);
        if let Some(total) = &self.total {
            if group.elapsed() >= SLOW_GROUP {
                self.remember(group);
            }
            total.record_group(group);
        }
    }

    fn remember(&self, group: &GroupFigures) {
        let mut slow = self.slow.lock();
        if slow.len() == SLOW_GROUPS {
            slow.pop_front();
        }
        slow.push_back(*group);
    }

    /// Adds to a trace what the writer did for a request that began and ended then, if it was part of
    /// a group that took long. Each request is part of the first group that begins after it came.
    pub(crate) fn trace(&self, trace: &Trace, began: Duration, ended: Duration) {
        let slow = self.slow.lock();
        let is_its =
            |group: &&GroupFigures| group.began >= began && group.began + group.elapsed() <= ended;
        let Some(group) = slow.iter().find(is_its) else {
            return;
        };
        let waited = group.began.saturating_sub(began + trace.known());
        trace.add(RequestStage::Queue, waited);
        trace.add(RequestStage::Staging, group.staging);
        trace.add(RequestStage::Write, group.write);
        trace.add(RequestStage::Sync, group.sync);
        trace.add(RequestStage::Publish, group.publishing);
    }

    /// Records how long it took to answer the requests of a group.
    pub(crate) fn record_answer(&self, answer: Duration) {
        self.answer.record_duration(answer);
        if let Some(total) = &self.total {
            total.record_answer(answer);
        }
    }

    /// Counts subscriptions that were woken because of a group.
    pub(crate) fn record_wakes(&self, n_wakes: u64) {
        self.wakes.fetch_add(n_wakes, Ordering::Relaxed);
        if let Some(total) = &self.total {
            total.record_wakes(n_wakes);
        }
    }

    pub(crate) fn snapshot(&self) -> StatsSnapshot {
        StatsSnapshot {
            groups: self.groups.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            events: self.events.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            group_commits: self.group_commits.snapshot(),
            group_bytes: self.group_bytes.snapshot(),
            queue: self.queue.snapshot(),
            staging: self.staging.snapshot(),
            write: self.write.snapshot(),
            sync: self.sync.snapshot(),
            index: self.index.snapshot(),
            publishing: self.publishing.snapshot(),
            answer: self.answer.snapshot(),
            wakes: self.wakes.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stage_of_a_slow_group_is_that_of_its_requests() {
        let stats = GroupStats::within(&Arc::default());
        let millis = Duration::from_millis;
        let fast = GroupFigures {
            began: millis(10),
            sync: millis(2),
            ..GroupFigures::default()
        };
        let slow = GroupFigures {
            began: millis(20),
            sync: millis(400),
            write: millis(10),
            ..GroupFigures::default()
        };
        stats.record_group(&fast);
        stats.record_group(&slow);
        let longest = |began, ended| {
            let trace = Trace::default();
            stats.trace(&trace, began, ended);
            trace.longest(ended.saturating_sub(began)).0
        };
        assert_eq!(longest(millis(15), millis(440)), RequestStage::Sync);
        assert_eq!(longest(millis(0), millis(14)), RequestStage::Serve);
        assert_eq!(longest(millis(25), millis(500)), RequestStage::Serve);
        // The writer was busy with others.
        let later = GroupFigures {
            began: millis(2000),
            sync: millis(30),
            ..GroupFigures::default()
        };
        stats.record_group(&later);
        assert_eq!(longest(millis(450), millis(2100)), RequestStage::Queue);
    }

    #[test]
    fn what_a_database_counts_is_counted_for_all_of_them() {
        let total = Arc::new(GroupStats::default());
        let group = GroupFigures {
            n_commits: 3,
            n_bytes: 100,
            ..GroupFigures::default()
        };
        for stats in [GroupStats::within(&total), GroupStats::within(&total)] {
            stats.record_group(&group);
            assert_eq!(stats.snapshot().commits, 3);
        }
        let total = total.snapshot();
        assert_eq!((total.groups, total.commits, total.bytes), (2, 6, 200));
        assert_eq!(
            (total.group_commits.sum(), total.group_bytes.sum()),
            (6, 200)
        );
    }
}
