//! What a database counts about itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters of one database since it was opened.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    groups: AtomicU64,
    commits: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
    sync_nanos: AtomicU64,
    sync: Histogram,
    waits: Histogram,
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
    /// Bytes of events written.
    pub bytes: u64,
    /// Time spent in writing and syncing the log.
    pub sync_total: Duration,
    /// Durations of writing and syncing a group.
    pub sync: HistogramSnapshot,
    /// What a group took besides writing and syncing: staging, indexing, and waiting for room in
    /// the index.
    pub waits: HistogramSnapshot,
}

impl Stats {
    pub(crate) fn record_group(
        &self,
        commits: usize,
        events: usize,
        bytes: usize,
        sync: Duration,
        waited: Duration,
    ) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.commits.fetch_add(commits as u64, Ordering::Relaxed);
        self.events.fetch_add(events as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.sync_nanos
            .fetch_add(sync.as_nanos() as u64, Ordering::Relaxed);
        self.sync.record(sync);
        self.waits.record(waited);
    }

    pub(crate) fn snapshot(&self) -> StatsSnapshot {
        StatsSnapshot {
            groups: self.groups.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            events: self.events.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            sync_total: Duration::from_nanos(self.sync_nanos.load(Ordering::Relaxed)),
            sync: self.sync.snapshot(),
            waits: self.waits.snapshot(),
        }
    }
}

/// Each power of two of nanoseconds is split into this many buckets.
const BUCKETS_PER_DOUBLING: u32 = 4;
const BUCKETS: usize = 40 * BUCKETS_PER_DOUBLING as usize;

/// How often durations of about each size occurred.
#[derive(Debug)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

fn bucket(duration: Duration) -> usize {
    let nanos = (duration.as_nanos() as u64).max(BUCKETS_PER_DOUBLING.into());
    let doubling = nanos.ilog2();
    let fraction = (nanos >> (doubling - 2)) as usize & 3;
    (doubling as usize * BUCKETS_PER_DOUBLING as usize + fraction).min(BUCKETS - 1)
}

/// Returns the longest duration that falls into a bucket.
fn bucket_end(index: usize) -> Duration {
    let (doubling, fraction) = (index as u32 / 4, index as u64 % 4);
    Duration::from_nanos(((5 + fraction) << doubling) / 4)
}

impl Histogram {
    fn record(&self, duration: Duration) {
        self.buckets[bucket(duration)].fetch_add(1, Ordering::Relaxed);
    }

    fn snapshot(&self) -> HistogramSnapshot {
        let buckets = self
            .buckets
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed))
            .collect();
        HistogramSnapshot { buckets }
    }
}

/// A copy of a histogram of durations.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HistogramSnapshot {
    buckets: Vec<u64>,
}

impl HistogramSnapshot {
    /// Returns how many durations were recorded.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns a duration that the given fraction (0 to 1) of the recorded ones do not exceed;
    /// exact to about a quarter.
    pub fn quantile(&self, fraction: f64) -> Duration {
        let wanted = (self.count() as f64 * fraction).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return bucket_end(index);
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_quarter() {
        let histogram = Histogram::default();
        for micros in 1..=1000 {
            histogram.record(Duration::from_micros(micros));
        }
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.count(), 1000);
        for (fraction, micros) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = snapshot.quantile(fraction).as_secs_f64() * 1e6;
            assert!(
                found >= micros && found <= micros * 1.26,
                "{fraction}: {found}"
            );
        }
        assert_eq!(HistogramSnapshot::default().quantile(0.5), Duration::ZERO);
    }
}
