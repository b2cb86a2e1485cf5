//! How often numbers of about each size occurred.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Each power of two is split into this many buckets.
const BUCKETS_PER_DOUBLING: u32 = 4;
const BUCKETS: usize = 40 * BUCKETS_PER_DOUBLING as usize;

/// How often numbers of about each size occurred.
#[derive(Debug)]
pub struct Histogram {
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
    /// Records a number.
    pub fn record(&self, number: u64) {
        self.record_times(number, 1);
    }

    /// Records a number so many times.
    pub fn record_times(&self, number: u64, times: u64) {
        self.buckets[bucket(number)].fetch_add(times, Ordering::Relaxed);
        let sum = number.saturating_mul(times);
        self.sum.fetch_add(sum, Ordering::Relaxed);
    }

    /// Records how long something took, in nanoseconds.
    pub fn record_duration(&self, duration: Duration) {
        self.record(nanos(duration));
    }

    /// Returns a copy.
    pub fn snapshot(&self) -> HistogramSnapshot {
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
    /// Returns all of several histograms together.
    pub fn of_all(histograms: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for histogram in histograms {
            all.add(&histogram);
        }
        all
    }

    fn add(&mut self, other: &Self) {
        let n_buckets = self.buckets.len().max(other.buckets.len());
        self.buckets.resize(n_buckets, 0);
        for (count, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *count += more;
        }
        self.sum += other.sum;
    }

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

/// Returns a duration in nanoseconds.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
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
}
