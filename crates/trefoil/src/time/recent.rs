//! How long something took lately.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// About over how many times the mean is taken.
const REMEMBERED: u64 = 8;

/// The mean of recent times, of which each counts a little less than the next.
#[derive(Debug, Default)]
pub(crate) struct RecentTime {
    nanos: AtomicU64,
}

impl RecentTime {
    pub(crate) fn note(&self, time: Duration) {
        let before = self.nanos.load(Ordering::Relaxed);
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let now = before - before / REMEMBERED + time / REMEMBERED;
        self.nanos.store(now, Ordering::Relaxed);
    }

    pub(crate) fn mean(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}
