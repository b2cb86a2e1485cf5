//! One store: its entries, and who may write them.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::contract::{KvBatch, KvError, KvResult};

use super::handle::StoreWriter;
use super::versions::VersionedMap;

/// A store, as all connections see it.
#[derive(Debug, Default)]
pub(super) struct MemoryStore {
    pub(super) map: Mutex<VersionedMap>,
    state: Mutex<StoreOwner>,
}

/// Who has a store.
#[derive(Debug, Default)]
struct StoreOwner {
    /// The highest epoch with which it was opened.
    epoch: Option<u64>,
    /// Whether it was removed.
    is_ended: bool,
    /// Every handle that is still there.
    handles: Vec<Weak<StoreWriter>>,
    /// Batches that were held back until their handles were gone, and the epochs of those.
    left_behind: Vec<(u64, KvBatch)>,
}

impl MemoryStore {
    /// Gives the store to whoever has this epoch, and fences those before.
    pub(super) fn take_over(self: &Arc<Self>, epoch: u64) -> KvResult<()> {
        let mut owner = self.state.lock();
        if owner.is_ended || owner.epoch.is_some_and(|last| last >= epoch) {
            return Err(KvError::Fenced);
        }
        owner.epoch = Some(epoch);
        let handles = std::mem::take(&mut owner.handles);
        drop(owner);
        for handle in handles.iter().filter_map(Weak::upgrade) {
            handle.fence();
        }
        // Those that were fenced may still have batches that were held back.
        self.state.lock().handles.extend(handles);
        Ok(())
    }

    /// Takes the store from everybody.
    pub(super) fn end(&self) {
        let handles = self.handles();
        self.state.lock().is_ended = true;
        for handle in handles {
            handle.fence();
        }
    }

    pub(super) fn add(&self, handle: &Arc<StoreWriter>) {
        let mut owner = self.state.lock();
        owner.handles.retain(|handle| handle.strong_count() > 0);
        owner.handles.push(Arc::downgrade(handle));
    }

    /// Returns the handles to the store, those first that were opened first.
    pub(super) fn handles(&self) -> Vec<Arc<StoreWriter>> {
        let owner = self.state.lock();
        owner.handles.iter().filter_map(Weak::upgrade).collect()
    }

    /// Keeps a batch on its way that nobody waits for any more.
    pub(super) fn leave_behind(&self, epoch: u64, batch: KvBatch) {
        self.state.lock().left_behind.push((epoch, batch));
    }

    /// Lets all batches go that are held back.
    pub(super) fn let_go(&self) {
        let left_behind = std::mem::take(&mut self.state.lock().left_behind);
        for (epoch, batch) in left_behind {
            // If it is too late for it, nobody is there to be told.
            self.apply(epoch, batch).ok();
        }
        for handle in self.handles() {
            handle.let_go();
        }
    }

    /// Applies a batch for the writer with this epoch, unless there is another one by now.
    pub(super) fn apply(&self, epoch: u64, batch: KvBatch) -> KvResult<()> {
        let owner = self.state.lock();
        if owner.is_ended || owner.epoch != Some(epoch) {
            return Err(KvError::Fenced);
        }
        self.map.lock().apply(batch);
        Ok(())
    }
}
