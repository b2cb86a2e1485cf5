//! How much room is taken, counted along with the changes that take it or free it.

use parking_lot::Mutex;
use trefoil_core::Result;

use super::facts::UsageFact;
use super::keys::Tag;
use super::store::{KeyChange, OpenStore};

/// Counts bytes.
#[derive(Debug)]
pub(super) struct UsageCount(Mutex<UsageFact>);

impl UsageCount {
    pub(super) fn new(fact: UsageFact) -> Self {
        Self(Mutex::new(fact))
    }

    pub(super) fn get(&self) -> UsageFact {
        *self.0.lock()
    }

    /// Counts something. Returns the change that stores the count, to be committed at once: if it is
    /// not, what was counted meanwhile counts with the next one.
    pub(super) fn count(&self, store: &OpenStore, count: impl FnOnce(&mut UsageFact)) -> KeyChange {
        let mut usage = self.0.lock();
        count(&mut usage);
        store.fact(Tag::Usage, &usage.encode())
    }

    /// Commits changes together with what they change about the count, and waits.
    pub(super) fn commit(
        &self,
        store: &OpenStore,
        mut changes: Vec<KeyChange>,
        count: impl FnOnce(&mut UsageFact),
    ) -> Result<()> {
        changes.push(self.count(store, count));
        store.commit(changes)
    }
}
