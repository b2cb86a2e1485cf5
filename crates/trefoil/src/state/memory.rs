//! How much memory the entries take that are not in the map yet, counted against what all databases
//! of the process may take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::index::is_crowded;

/// The memory of one database's entries.
#[derive(Debug, Default)]
pub(super) struct Memory {
    live: usize,
    frozen: usize,
    /// What all databases have not written yet takes this much.
    shared: Arc<AtomicUsize>,
}

impl Memory {
    pub(super) fn new(shared: Arc<AtomicUsize>) -> Self {
        Self {
            live: 0,
            frozen: 0,
            shared,
        }
    }

    /// Returns what the entries take that changed since the last checkpoint began.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Returns whether all databases together take more than they should.
    pub(super) fn is_short(&self) -> bool {
        is_crowded(&self.shared)
    }

    pub(super) fn change(&mut self, added: usize, removed: usize) {
        self.live = self.live + added - removed;
        self.shared.fetch_add(added, Ordering::Relaxed);
        self.shared.fetch_sub(removed, Ordering::Relaxed);
    }

    /// What changed is set aside.
    pub(super) fn freeze(&mut self) {
        self.frozen += std::mem::take(&mut self.live);
    }

    /// What was set aside is dropped.
    pub(super) fn thaw(&mut self) {
        let frozen = std::mem::take(&mut self.frozen);
        self.shared.fetch_sub(frozen, Ordering::Relaxed);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let all = self.live + self.frozen;
        self.shared.fetch_sub(all, Ordering::Relaxed);
    }
}
