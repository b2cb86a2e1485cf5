//! Whether something waited for the disk lately, and so will probably have to wait again.
//!
//! Nothing tells beforehand what is in memory, so it is measured how long reads take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::clock::Clock;
use super::recent::RecentTime;

/// For so long after a slow read, others are expected to be slow.
const SLOW_FOR: Duration = Duration::from_secs(10);

/// How long reads of one kind took lately.
#[derive(Debug)]
pub(crate) struct RecentSlowness {
    /// If reads take longer than this in the mean, they are slow.
    slow: Duration,
    /// A read counts as at most this long: one that took long by chance does not make all of them slow.
    counted_max: Duration,
    time: RecentTime,
    /// Until when they are expected to be slow, in nanoseconds by the steady clock; 0 if they are not.
    slow_until: AtomicU64,
}

impl RecentSlowness {
    pub(crate) fn new(slow: Duration, counted_max: Duration) -> Self {
        Self {
            slow,
            counted_max,
            time: RecentTime::default(),
            slow_until: AtomicU64::new(0),
        }
    }

    /// Notes how long a read took that has just ended.
    pub(crate) fn note(&self, took: Duration, clock: &Clock) {
        self.time.note(took.min(self.counted_max));
        let slow_until = match self.time.mean() > self.slow {
            true => u64::try_from((clock.steady() + SLOW_FOR).as_nanos()).unwrap_or(u64::MAX),
            false => 0,
        };
        self.slow_until.store(slow_until, Ordering::Relaxed);
    }

    /// Returns whether reads are expected to be slow.
    pub(crate) fn is_expected(&self, clock: &Clock) -> bool {
        match self.slow_until.load(Ordering::Relaxed) {
            0 => false,
            until => clock.steady() < Duration::from_nanos(until),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ManualTime, Timestamp};

    #[test]
    fn reads_are_slow_for_a_while_if_some_were() {
        let time = ManualTime::new(Timestamp(0));
        let clock = Clock::new(time.clone());
        let slowness = RecentSlowness::new(Duration::from_micros(30), Duration::from_micros(200));
        let note = |micros| {
            slowness.note(Duration::from_micros(micros), &clock);
            slowness.is_expected(&clock)
        };
        assert!(!note(1_000_000), "one may take long by chance");
        assert!(note(100));
        time.advance(SLOW_FOR - Duration::from_millis(1));
        assert!(slowness.is_expected(&clock));
        time.advance(Duration::from_millis(1));
        assert!(!slowness.is_expected(&clock), "nothing is known any more");
        assert!(note(100));
        let quick = (0..20).take_while(|_| note(5)).count();
        assert!((1..10).contains(&quick), "{quick}");
    }
}
