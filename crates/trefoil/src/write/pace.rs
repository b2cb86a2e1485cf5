//! How long groups take, and how many requests are worth one.

use std::time::Duration;

use crate::stats::GroupFigures;
use crate::time::recent::RecentTime;

/// A group may always have so many requests: then a sync costs each of them little.
const REQUESTS_MIN: usize = 128;

/// How long recent groups took.
#[derive(Debug, Default)]
pub(crate) struct GroupPace {
    /// About how long a group took to be written and synced.
    sync: RecentTime,
    /// About how long a request took to be staged.
    staging: RecentTime,
}

impl GroupPace {
    /// Takes note of a group.
    pub(super) fn note(&self, figures: &GroupFigures) {
        let staging = figures.staging / (figures.n_commits as u32).max(1);
        self.sync.note(figures.write + figures.sync);
        self.staging.note(staging);
    }

    /// About how long a group took to be written and synced.
    pub(crate) fn sync(&self) -> Duration {
        self.sync.mean()
    }

    /// Returns how many requests the next group may have, of those that wait. One that takes longer to
    /// stage than to sync gains little by being larger: its callers wait, and nobody works for those who
    /// are answered. A quarter of very many is enough for that.
    pub(super) fn requests_max(&self, n_waiting: usize) -> usize {
        let staging = self.staging.mean().as_nanos().max(1);
        let n_requests = self.sync.mean().as_nanos() / (2 * staging);
        let n_requests = usize::try_from(n_requests).unwrap_or(usize::MAX);
        n_requests.max(REQUESTS_MIN).max(n_waiting / 4)
    }
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
