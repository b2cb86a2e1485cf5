//! The memory that the blocks of all logs share, whichever namespaces they belong to.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use trefoil_storage::BlockCache;

use super::recent::RecentBlocks;

/// Blocks of logs take this part of what the cache of blocks may take, besides.
const LOG_PART: u64 = 2;

/// Room for blocks of logs, in bytes. Once it is full, all who have some give up a block each in turn.
#[derive(Debug)]
pub struct LogRoom {
    bytes_max: usize,
    bytes: AtomicUsize,
    members: Mutex<VecDeque<Weak<RecentBlocks>>>,
}

impl LogRoom {
    /// Returns room for logs beside this cache.
    pub fn beside(cache: &BlockCache) -> Self {
        let bytes_max = cache.bytes_max() / LOG_PART;
        Self::new(usize::try_from(bytes_max).unwrap_or(usize::MAX))
    }

    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            bytes: AtomicUsize::new(0),
            members: Mutex::default(),
        }
    }

    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(super) fn join(&self, member: &Arc<RecentBlocks>) {
        let mut members = self.members.lock();
        members.retain(|member| member.strong_count() > 0);
        members.push_back(Arc::downgrade(member));
    }

    /// Notes that a member has so much more.
    pub(super) fn take(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that a member has so much less.
    pub(super) fn give(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Has members give up blocks until there is room. The caller holds no lock of a member.
    pub(super) fn shrink(&self) {
        while self.bytes.load(Ordering::Relaxed) > self.bytes_max {
            let mut members = self.members.lock();
            let Some(member) = members.pop_front() else {
                return;
            };
            let Some(member) = member.upgrade() else {
                continue;
            };
            members.push_back(Arc::downgrade(&member));
            // Dropped without the lock: it may be the last handle.
            drop(members);
            member.give_up();
        }
    }
}
