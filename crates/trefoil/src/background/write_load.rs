//! How much is being written: work that can wait looks here before it begins.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::Clock;

/// More bytes or more groups per second than this are a load beside which nothing should run that can
/// wait. Each group is a sync, so the writer is busy for much of the time then.
const HIGH_BYTES_PER_SECOND: f64 = 8.0 * 1024.0 * 1024.0;
const HIGH_GROUPS_PER_SECOND: f64 = 500.0;
/// The load is measured over at least this long.
const PERIOD: Duration = Duration::from_millis(250);

/// How much is being written.
#[derive(Debug)]
pub(crate) struct WriteLoad {
    clock: Clock,
    bytes: AtomicU64,
    groups: AtomicU64,
    last: Mutex<MeasuredLoad>,
}

/// What was measured last.
#[derive(Debug)]
struct MeasuredLoad {
    /// When, by the steady clock.
    at: Duration,
    /// How many bytes and groups had been written by then.
    bytes: u64,
    groups: u64,
    is_high: bool,
}

impl WriteLoad {
    pub(crate) fn new(clock: Clock) -> Self {
        let last = MeasuredLoad {
            at: clock.steady(),
            bytes: 0,
            groups: 0,
            is_high: false,
        };
        Self {
            clock,
            bytes: AtomicU64::new(0),
            groups: AtomicU64::new(0),
            last: Mutex::new(last),
        }
    }

    /// Notes that a group of so many bytes was written.
    pub(crate) fn note(&self, bytes: usize) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns whether so much is written that nothing should run beside it that can wait. What is too
    /// much for a whole period is so at once.
    pub(crate) fn is_high(&self) -> bool {
        let mut last = self.last.lock();
        let now = self.clock.steady();
        let elapsed = now.saturating_sub(last.at);
        let bytes = self.bytes.load(Ordering::Relaxed);
        let groups = self.groups.load(Ordering::Relaxed);
        let rate = |n: u64| n as f64 / elapsed.max(PERIOD).as_secs_f64();
        let is_high = rate(bytes - last.bytes) > HIGH_BYTES_PER_SECOND
            || rate(groups - last.groups) > HIGH_GROUPS_PER_SECOND;
        if is_high || elapsed >= PERIOD {
            *last = MeasuredLoad {
                at: now,
                bytes,
                groups,
                is_high,
            };
        }
        last.is_high
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ManualTime, Timestamp};

    #[test]
    fn the_load_is_what_was_written_in_the_last_period() {
        let time = ManualTime::new(Timestamp(0));
        let load = WriteLoad::new(Clock::new(time.clone()));
        load.note(1024 * 1024);
        assert!(!load.is_high(), "nothing is measured yet");
        load.note(2 * 1024 * 1024);
        assert!(load.is_high(), "it is as much as for a whole period");
        time.advance(PERIOD / 2);
        assert!(load.is_high(), "too early to measure again");
        time.advance(PERIOD / 2);
        assert!(!load.is_high());
        (0..125).for_each(|_| load.note(1));
        time.advance(PERIOD);
        assert!(!load.is_high(), "500 groups in a second");
        (0..126).for_each(|_| load.note(1));
        time.advance(PERIOD);
        assert!(load.is_high());
    }
}
