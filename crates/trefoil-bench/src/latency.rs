//! A histogram of durations in buckets of constant relative width, and its percentiles.
//!
//! Each power of two of nanoseconds is split into 32 buckets, so a percentile is off by at most
//! about 3 % and a histogram is 15 KiB whatever it has seen.

use std::time::Duration;

/// Sub-buckets of one power of two, as a number of bits.
const PRECISION_BITS: u32 = 5;
const PRECISION: u64 = 1 << PRECISION_BITS;
const BUCKETS: usize = ((64 - PRECISION_BITS + 1) as usize) << PRECISION_BITS;

/// Counts of durations.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

/// What a histogram says, in the numbers people ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Percentiles {
    pub(crate) p50: Duration,
    pub(crate) p90: Duration,
    pub(crate) p99: Duration,
    pub(crate) p999: Duration,
    pub(crate) max: Duration,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            total: 0,
            max: 0,
        }
    }

    pub(crate) fn record(&mut self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanoseconds)] += 1;
        self.total += 1;
        self.max = self.max.max(nanoseconds);
    }

    /// Counts what another one has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// The duration that `fraction` of the recorded ones do not exceed; 0 if there is none.
    pub(crate) fn percentile(&self, fraction: f64) -> Duration {
        let rank = ((self.total as f64 * fraction).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(upper_bound(index).min(self.max));
            }
        }
        Duration::from_nanos(self.max)
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        Percentiles {
            p50: self.percentile(0.5),
            p90: self.percentile(0.9),
            p99: self.percentile(0.99),
            p999: self.percentile(0.999),
            max: Duration::from_nanos(self.max),
        }
    }
}

fn bucket(nanoseconds: u64) -> usize {
    if nanoseconds < PRECISION {
        return nanoseconds as usize;
    }
    let shift = 63 - nanoseconds.leading_zeros() - PRECISION_BITS;
    let mantissa = (nanoseconds >> shift) - PRECISION;
    (u64::from(shift + 1) * PRECISION + mantissa) as usize
}

/// The largest duration that falls into a bucket.
fn upper_bound(bucket: usize) -> u64 {
    let (exponent, mantissa) = (
        bucket as u64 >> PRECISION_BITS,
        bucket as u64 & (PRECISION - 1),
    );
    if exponent == 0 {
        return mantissa;
    }
    let next = u128::from(PRECISION + mantissa + 1) << (exponent - 1);
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_lies_within_its_bucket() {
        for exponent in 0..64 {
            for offset in [0, 1, 3] {
                let value = (1_u64 << exponent).saturating_add(offset);
                let index = bucket(value);
                assert!(value <= upper_bound(index), "{value}");
                assert!(index == 0 || value > upper_bound(index - 1), "{value}");
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_within_the_width_of_a_bucket() {
        let mut histogram = Histogram::new();
        for micros in 1..=10_000 {
            histogram.record(Duration::from_micros(micros));
        }
        for (fraction, exact) in [(0.5, 5_000.0), (0.9, 9_000.0), (0.999, 9_990.0)] {
            let found = histogram.percentile(fraction).as_secs_f64() * 1e6;
            assert!(
                (found / exact - 1.0).abs() < 0.04,
                "{fraction}: {found} is not {exact}"
            );
        }
        assert_eq!(histogram.percentiles().max, Duration::from_micros(10_000));
    }

    #[test]
    fn an_empty_histogram_answers_zero_and_one_value_answers_itself() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.percentile(0.99), Duration::ZERO);
        histogram.record(Duration::from_millis(7));
        assert_eq!(histogram.percentile(0.5), Duration::from_millis(7));
    }
}
