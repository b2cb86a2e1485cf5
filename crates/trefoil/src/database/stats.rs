//! What a database counts about itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters of one database since it was opened, or of all databases of a process.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    groups: AtomicU64,
    commits: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
    group_commits: Histogram,
    group_bytes: Histogram,
    queue: Histogram,
    staging: Histogram,
    sync: Histogram,
    publishing: Histogram,
    /// What counts the same for all databases.
    total: Option<Arc<Stats>>,
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
    /// How long writing and syncing a group took, in nanoseconds.
    pub sync: HistogramSnapshot,
    /// How long it took to add a durable group to index and state, in nanoseconds.
    pub publishing: HistogramSnapshot,
}

/// What is counted about a group.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GroupFigures {
    pub(crate) n_commits: usize,
    pub(crate) n_events: usize,
    pub(crate) n_bytes: usize,
    pub(crate) queue: Duration,
    pub(crate) staging: Duration,
    pub(crate) sync: Duration,
    pub(crate) publishing: Duration,
}

impl Stats {
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
        self.sync.record_duration(group.sync);
        self.publishing.record_duration(group.publishing);
        if let Some(total) = &self.total {
            total.record_group(group);
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
            sync: self.sync.snapshot(),
            publishing: self.publishing.snapshot(),
        }
    }
}

/// Each power of two is split into this many buckets.
const BUCKETS_PER_DOUBLING: u32 = 4;
const BUCKETS: usize = 40 * BUCKETS_PER_DOUBLING as usize;

/// How often numbers of about each size occurred.
#[derive(Debug)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            sum: AtomicU64::new(0),
        }
    }
}

/// Returns the bucket of a number. It ends with that bucket if it is a power of two; 0 counts as 1.
fn bucket(number: u64) -> usize {
    let number = number.saturating_sub(1);
    if number < BUCKETS_PER_DOUBLING.into() {
        return number as usize;
    }
    let doubling = number.ilog2();
    let fraction = (number >> (doubling - 2)) as usize & 3;
    (doubling as usize * BUCKETS_PER_DOUBLING as usize + fraction).min(BUCKETS - 1)
}

/// Returns the largest number of a bucket.
fn bucket_end(index: usize) -> u64 {
    if index < BUCKETS_PER_DOUBLING as usize {
        return index as u64 + 1;
    }
    let (doubling, fraction) = (index as u32 / 4, index as u64 % 4);
    ((5 + fraction) << doubling) / 4
}

impl Histogram {
    fn record(&self, number: u64) {
        self.buckets[bucket(number)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(number, Ordering::Relaxed);
    }

    fn record_duration(&self, duration: Duration) {
        self.record(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    fn snapshot(&self) -> HistogramSnapshot {
        let buckets = self
            .buckets
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed))
            .collect();
        let sum = self.sum.load(Ordering::Relaxed);
        HistogramSnapshot { buckets, sum }
    }
}

/// A copy of a histogram.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HistogramSnapshot {
    buckets: Vec<u64>,
    sum: u64,
}

impl HistogramSnapshot {
    /// Returns how many numbers were recorded.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the sum of the numbers.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns how many of the numbers do not exceed `limit`, a power of two.
    pub fn count_up_to(&self, limit: u64) -> u64 {
        let counts = (0..).zip(&self.buckets);
        let counts = counts.take_while(|(index, _)| bucket_end(*index) <= limit);
        counts.map(|(_, count)| count).sum()
    }

    /// Returns a number that the given fraction (0 to 1) of the recorded ones do not exceed; exact
    /// to about a quarter.
    pub fn quantile(&self, fraction: f64) -> u64 {
        let wanted = (self.count() as f64 * fraction).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return bucket_end(index);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_quarter() {
        let histogram = Histogram::default();
        for number in 1..=1000 {
            histogram.record(number);
        }
        let snapshot = histogram.snapshot();
        assert_eq!((snapshot.count(), snapshot.sum()), (1000, 500_500));
        for (fraction, number) in [(0.001, 1), (0.002, 2), (0.5, 500), (0.99, 990), (1.0, 1000)] {
            let found = snapshot.quantile(fraction);
            assert!(
                found >= number && found * 4 <= number * 5,
                "{fraction}: {found}"
            );
        }
        assert_eq!(HistogramSnapshot::default().quantile(0.5), 0);
    }

    #[test]
    fn numbers_up_to_a_power_of_two_are_counted_exactly() {
        let histogram = Histogram::default();
        for number in 1..=100 {
            histogram.record(number);
        }
        let snapshot = histogram.snapshot();
        for limit in [1, 2, 4, 8, 16, 32, 64] {
            assert_eq!(snapshot.count_up_to(limit), limit);
        }
        assert_eq!(snapshot.count_up_to(128), 100);
    }

    #[test]
    fn what_a_database_counts_is_counted_for_all_of_them() {
        let total = Arc::new(Stats::default());
        let group = GroupFigures {
            n_commits: 3,
            n_bytes: 100,
            ..GroupFigures::default()
        };
        for stats in [Stats::within(&total), Stats::within(&total)] {
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
