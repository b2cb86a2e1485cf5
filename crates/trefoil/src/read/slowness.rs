//! Whether looking something up in the index waits for the disk.
//!
//! An index cannot say what it has in memory. But if it had to wait for what it was asked lately, it
//! will probably have to wait again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::time::clock::Clock;
use crate::time::recent::RecentTime;

/// If looking something up takes longer than this, the disk is waited for, or there is so much to do that it
/// should not be done on a thread that serves others.
const SLOW_LOOKUP: Duration = Duration::from_micros(200);

/// A lookup counts as at most this long: one that took long by chance does not make all of them slow.
const COUNTED_LOOKUP_MAX: Duration = Duration::from_micros(500);

/// For so long after a slow lookup, others are expected to be slow.
const SLOW_FOR: Duration = Duration::from_secs(10);

/// How long lookups in the index took lately.
#[derive(Debug, Default)]
pub(crate) struct IndexReads {
    time: RecentTime,
    /// Until when they are expected to be slow, in nanoseconds by the steady clock; 0 if they are not.
    slow_until: AtomicU64,
}

impl IndexReads {
    /// Notes how long the lookups of a read took.
    pub(super) fn note(&self, took: Duration, clock: &Clock) {
        self.time.note(took.min(COUNTED_LOOKUP_MAX));
        let slow_until = match self.time.mean() > SLOW_LOOKUP {
            true => u64::try_from((clock.steady() + SLOW_FOR).as_nanos()).unwrap_or(u64::MAX),
            false => 0,
        };
        self.slow_until.store(slow_until, Ordering::Relaxed);
    }

    /// Returns whether they are expected to be slow.
    pub(crate) fn are_slow(&self, clock: &Clock) -> bool {
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
    fn they_are_slow_while_most_of_them_are_and_for_a_while_after() {
        let time = ManualTime::new(Timestamp(0));
        let clock = Clock::new(time.clone());
        let reads = IndexReads::default();
        reads.note(Duration::from_secs(1), &clock);
        assert!(!reads.are_slow(&clock), "one is a chance");
        for _ in 0..10 {
            reads.note(Duration::from_millis(1), &clock);
        }
        assert!(reads.are_slow(&clock));
        time.advance(SLOW_FOR);
        assert!(!reads.are_slow(&clock), "it is tried again");
        for _ in 0..20 {
            reads.note(Duration::from_micros(20), &clock);
        }
        assert!(!reads.are_slow(&clock));
    }
}
