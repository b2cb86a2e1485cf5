//! The storages that this process has open. Two of one generation would get in the way of each other in
//! the directory where they keep files, so the next one waits for the last one.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use trefoil::home::Incarnation;

use crate::storage::KvStorage;

/// How often is looked whether the last one is gone.
const PAUSE: Duration = Duration::from_millis(5);
/// After so many looks it is no longer waited for: somebody reads from it for long, and no more than its
/// files may be fetched again.
const LOOKS_MAX: usize = 1000;

/// The last storage of each generation.
#[derive(Debug, Default)]
pub(super) struct Storages(Mutex<HashMap<(Incarnation, u64), Weak<KvStorage>>>);

impl Storages {
    /// Notes that a storage was opened.
    pub(super) fn note(&self, incarnation: Incarnation, generation: u64, storage: &Arc<KvStorage>) {
        let mut storages = self.0.lock();
        storages.retain(|_, storage| storage.strong_count() > 0);
        storages.insert((incarnation, generation), Arc::downgrade(storage));
    }

    /// Waits until the last storage of a generation is gone, which was closed.
    pub(super) fn wait_for_last(&self, incarnation: Incarnation, generation: u64) {
        let is_there = || {
            let storages = self.0.lock();
            let storage = storages.get(&(incarnation, generation));
            storage.is_some_and(|storage| storage.strong_count() > 0)
        };
        for _ in 0..LOOKS_MAX {
            if !is_there() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}
