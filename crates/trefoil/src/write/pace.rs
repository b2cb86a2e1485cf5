//! How long groups take, and how many requests are worth one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::stats::GroupFigures;

/// About over how many groups it is measured how long they take.
const GROUPS_REMEMBERED: u64 = 8;

/// A group may always have so many requests: then a sync costs each of them little.
const REQUESTS_MIN: usize = 128;

/// How long recent groups took.
#[derive(Debug, Default)]
pub(crate) struct GroupPace {
    /// About how many nanoseconds a group took to be written and synced.
    sync: AtomicU64,
    /// About how many nanoseconds a request took to be staged.
    staging: AtomicU64,
}

impl GroupPace {
    /// Takes note of a group.
    pub(super) fn note(&self, figures: &GroupFigures) {
        let staging = figures.staging / (figures.n_commits as u32).max(1);
        remember(&self.sync, figures.write + figures.sync);
        remember(&self.staging, staging);
    }

    /// About how long a group took to be written and synced.
    pub(crate) fn sync(&self) -> Duration {
        Duration::from_nanos(self.sync.load(Ordering::Relaxed))
    }

    /// Returns how many requests the next group may have, of those that wait. One that takes longer to
    /// stage than to sync gains little by being larger: its callers wait, and nobody works for those who
    /// are answered. A quarter of very many is enough for that.
    pub(super) fn requests_max(&self, n_waiting: usize) -> usize {
        let staging = self.staging.load(Ordering::Relaxed).max(1);
        let n_requests = self.sync.load(Ordering::Relaxed) / (2 * staging);
        let n_requests = usize::try_from(n_requests).unwrap_or(usize::MAX);
        n_requests.max(REQUESTS_MIN).max(n_waiting / 4)
    }
}

/// Of the times before it, each counts a little less than the next.
fn remember(recent: &AtomicU64, time: Duration) {
    let before = recent.load(Ordering::Relaxed);
    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let now = before - before / GROUPS_REMEMBERED + time / GROUPS_REMEMBERED;
    recent.store(now, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(n_commits: usize, staging: Duration, sync: Duration) -> GroupFigures {
        GroupFigures {
            n_commits,
            staging,
            sync,
            ..GroupFigures::default()
        }
    }

    #[test]
    fn a_group_is_as_large_as_a_sync_is_slow() {
        let pace = GroupPace::default();
        assert_eq!(pace.requests_max(200), 128, "nothing is known yet");
        assert_eq!(pace.requests_max(1000), 250);
        let note = |micros| {
            let sync = Duration::from_micros(micros);
            let staging = Duration::from_micros(100);
            (0..200).for_each(|_| pace.note(&figures(100, staging, sync)));
            (pace.sync().as_micros(), pace.requests_max(1))
        };
        let (sync, n_requests) = note(10_000);
        assert!((9_900..=10_000).contains(&sync), "{sync}");
        assert!((4_900..=5_100).contains(&n_requests), "{n_requests}");
        assert_eq!(note(100).1, 128);
    }
}
