//! How far a continuous archive is, as whoever ships says it and `/metrics` shows it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use trefoil::NamespaceId;

/// For how many namespaces `/metrics` says how far they are shipped: those that were shipped last.
const SHOWN_MAX: usize = 100;

/// How far a continuous archive is.
#[derive(Debug, Default)]
pub struct ArchiveProgress {
    state: Mutex<ProgressState>,
    bytes: AtomicU64,
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct ProgressState {
    /// When it was last looked for something to ship, in milliseconds since 1970.
    looked: Option<u64>,
    /// Namespaces of which something is to be shipped, and the time up to which they are.
    waiting: HashMap<NamespaceId, u64>,
    /// The last commits that were shipped, and a number that grows with each shipment.
    shipped: HashMap<NamespaceId, (u64, u64)>,
    n_shipments: u64,
}

impl ArchiveProgress {
    /// Something of a namespace is to be shipped. It was shipped up to the last look, or nobody knows,
    /// and then it counts from now on.
    pub fn expect(&self, id: &NamespaceId, now: u64) {
        let mut state = self.state.lock();
        let since = state.looked.unwrap_or(now);
        state.waiting.entry(id.clone()).or_insert(since);
    }

    /// All namespaces were looked at, at this time, and those that have something to ship are expected.
    pub fn looked(&self, now: u64) {
        self.state.lock().looked = Some(now);
    }

    /// A namespace was shipped up to this commit.
    pub fn shipped(&self, id: &NamespaceId, commit: u64, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.n_shipments += 1;
        let number = state.n_shipments;
        state.shipped.insert(id.clone(), (commit, number));
        if state.shipped.len() > SHOWN_MAX {
            let oldest = state.shipped.iter().min_by_key(|(_, shipped)| shipped.1);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                state.shipped.remove(&oldest);
            }
        }
    }

    /// It was found how far a namespace that waits was shipped before.
    pub fn found(&self, id: &NamespaceId, millis: u64) {
        if let Some(since) = self.state.lock().waiting.get_mut(id) {
            *since = (*since).min(millis);
        }
    }

    /// Nothing of a namespace is left to be shipped.
    pub fn done(&self, id: &NamespaceId) {
        self.state.lock().waiting.remove(id);
    }

    /// A namespace is no longer this server's.
    pub fn forget(&self, id: &NamespaceId) {
        let mut state = self.state.lock();
        state.waiting.remove(id);
        state.shipped.remove(id);
    }

    /// Shipping something failed; it is tried again.
    pub fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns for how many milliseconds at most something that was committed is not in the archive yet.
    pub fn lag_millis(&self, now: u64) -> u64 {
        let state = self.state.lock();
        let looked = state.looked.unwrap_or(now);
        let oldest = state.waiting.values().copied().min().unwrap_or(looked);
        now.saturating_sub(oldest.min(looked))
    }

    /// Returns how many namespaces have something to ship.
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Returns the last commits that were shipped, by namespace.
    pub(crate) fn commits(&self) -> BTreeMap<NamespaceId, u64> {
        let state = self.state.lock();
        let shipped = state.shipped.iter();
        shipped
            .map(|(id, (commit, _))| (id.clone(), *commit))
            .collect()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_is_that_of_the_oldest_thing_that_is_not_shipped() {
        let [a, b] = ["a", "b"].map(|name| NamespaceId::new(name).unwrap());
        let progress = ArchiveProgress::default();
        progress.looked(1_000);
        assert_eq!(progress.lag_millis(1_400), 400);
        // It was shipped up to the look before.
        progress.expect(&a, 2_000);
        progress.looked(2_000);
        assert_eq!(progress.lag_millis(2_300), 1_300);
        progress.expect(&a, 3_000);
        progress.expect(&b, 3_000);
        progress.looked(3_000);
        assert_eq!(progress.lag_millis(3_000), 2_000);
        progress.done(&a);
        assert_eq!(progress.lag_millis(3_000), 1_000);
        // It turned out that nothing of it had been shipped for long.
        progress.found(&b, 500);
        assert_eq!(progress.lag_millis(3_000), 2_500);
        progress.done(&b);
        assert_eq!(progress.lag_millis(3_000), 0);
    }

    #[test]
    fn those_that_were_shipped_last_are_shown() {
        let progress = ArchiveProgress::default();
        for number in 0..SHOWN_MAX as u64 + 10 {
            let id = NamespaceId::new(&format!("n{number}")).unwrap();
            progress.shipped(&id, number, 7);
        }
        let commits = progress.commits();
        assert_eq!(commits.len(), SHOWN_MAX);
        assert!(commits.values().all(|commit| *commit >= 10));
        assert_eq!(progress.bytes(), 7 * (SHOWN_MAX as u64 + 10));
    }
}
