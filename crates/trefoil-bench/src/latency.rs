//! Durations and their percentiles.

use std::time::Duration;

use hdrhistogram::Histogram;

/// A percentile is exact to this many decimal digits.
const SIGNIFICANT_DIGITS: u8 = 2;

/// The longest duration, an hour: what takes longer counts as that.
const NANOSECONDS_MAX: u64 = 3_600_000_000_000;

/// Counts of durations, in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Latencies(Histogram<u64>);

/// What the durations say, in the numbers people ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Percentiles {
    pub(crate) p50: Duration,
    pub(crate) p90: Duration,
    pub(crate) p99: Duration,
    pub(crate) p999: Duration,
    pub(crate) max: Duration,
}

impl Latencies {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let max = NANOSECONDS_MAX;
        Ok(Self(Histogram::new_with_max(max, SIGNIFICANT_DIGITS)?))
    }

    pub(crate) fn record(&mut self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(nanoseconds);
    }

    /// Counts what another one has counted.
    pub(crate) fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        Ok(self.0.add(&other.0)?)
    }

    /// Returns the duration that `fraction` of the recorded ones do not exceed; 0 if there is none.
    pub(crate) fn percentile(&self, fraction: f64) -> Duration {
        // A bucket ends a little above the longest one that it has.
        Duration::from_nanos(self.0.value_at_quantile(fraction).min(self.0.max()))
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        Percentiles {
            p50: self.percentile(0.5),
            p90: self.percentile(0.9),
            p99: self.percentile(0.99),
            p999: self.percentile(0.999),
            max: Duration::from_nanos(self.0.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact_to_a_hundredth_and_the_longest_is_known() {
        let (mut latencies, mut other) = (Latencies::new().unwrap(), Latencies::new().unwrap());
        assert_eq!(latencies.percentile(0.99), Duration::ZERO);
        for micros in 1..=10_000 {
            let half = if micros % 2 == 0 {
                &mut latencies
            } else {
                &mut other
            };
            half.record(Duration::from_micros(micros));
        }
        latencies.add(&other).unwrap();
        for (fraction, exact) in [(0.5, 5_000.0), (0.9, 9_000.0), (0.999, 9_990.0)] {
            let found = latencies.percentile(fraction).as_secs_f64() * 1e6;
            let difference = (found / exact - 1.0).abs();
            assert!(difference < 0.01, "{fraction}: {found} is not {exact}");
        }
        let longest = latencies.percentiles().max.as_secs_f64();
        assert!((longest / 0.01 - 1.0).abs() < 0.01, "{longest}");
        latencies.record(Duration::from_secs(86_400));
        assert_eq!(latencies.percentiles().max.as_secs() / 60, 60);
    }
}
