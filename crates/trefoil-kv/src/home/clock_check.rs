//! How far the clock of this node is off that of the store, as far as one can tell.
//!
//! Deadlines are set by one owner of a namespace and judged by the next, so their clocks must agree. The
//! store says when it wrote a sign of life. What the clock of the node said before and after must be near
//! that.

use std::sync::atomic::{AtomicI64, Ordering};

use trefoil_core::Timestamp;

/// By how much a clock may be off, in milliseconds.
const OFF_MAX: i64 = 1000;

const SECOND: i64 = 1000;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// What is known of the clock.
#[derive(Debug, Default)]
pub(super) struct ClockCheck {
    /// By how many milliseconds it is ahead at least; less than 0 if it is behind.
    ahead: AtomicI64,
}

impl ClockCheck {
    /// Notes when the store wrote what was sent between these times, in milliseconds since 1970.
    pub(super) fn note(&self, began: u64, ended: u64, written: Timestamp) {
        let before = self.is_off();
        self.ahead
            .store(ahead(began, ended, written), Ordering::SeqCst);
        match (before, self.is_off()) {
            (false, true) => tracing::error!("{}: this node owns nothing more", self.explain()),
            (true, false) => {
                tracing::info!("the clock of this node agrees with the storage's again");
            }
            _ => {}
        }
    }

    /// Returns by how many milliseconds the clock is ahead at least; less than 0 if it is behind.
    pub(super) fn ahead_millis(&self) -> i64 {
        self.ahead.load(Ordering::SeqCst)
    }

    /// Returns whether the clock is off by too much.
    pub(super) fn is_off(&self) -> bool {
        self.ahead_millis().abs() > OFF_MAX
    }

    /// Says how the clock is.
    pub(super) fn explain(&self) -> String {
        let ahead = self.ahead_millis();
        let direction = if ahead < 0 { "behind" } else { "ahead of" };
        let seconds = ahead.abs() as f64 / 1000.0;
        format!("the clock of this node is {seconds} s {direction} that of the storage")
    }
}

fn ahead(began: u64, ended: u64, written: Timestamp) -> i64 {
    let millis = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let first = millis(written.millis());
    // Many stores say it to a second.
    let last = match written.0 % NANOS_PER_SECOND {
        0 => first + SECOND,
        _ => first,
    };
    let (began, ended) = (millis(began), millis(ended));
    if began > last {
        began - last
    } else if ended < first {
        ended - first
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_off_only_if_that_is_certain() {
        let at = |millis: i64| Timestamp(millis * 1_000_000);
        // Written in this second, whenever.
        assert_eq!(ahead(10_900, 10_950, at(10_000)), 0);
        assert_eq!(ahead(12_100, 12_200, at(10_000)), 1100);
        assert_eq!(ahead(8_000, 8_900, at(10_000)), -1100);
        assert_eq!(ahead(8_000, 10_000, at(10_000)), 0);
        // To the millisecond.
        assert_eq!(ahead(10_600, 10_700, at(10_500)), 100);
        let clock = ClockCheck::default();
        for (began, is_off) in [
            (12_000, false),
            (12_001, true),
            (8_999, true),
            (9_000, false),
        ] {
            clock.note(began, began, at(10_000));
            assert_eq!(clock.is_off(), is_off, "{began}");
        }
        clock.note(7_500, 7_500, at(10_000));
        let expected = "the clock of this node is 2.5 s behind that of the storage";
        assert_eq!(clock.explain(), expected);
    }
}
