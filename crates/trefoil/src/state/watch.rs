//! Keys that a transaction must find unchanged.
//!
//! A watch is marked when one of its keys is touched. A commit counts from when it is
//! durable on, so what is being made durable while a watch begins counts as a change after it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::Mutex;
use trefoil_core::Result;
use trefoil_state::{CommandMoment, Keyspace};

use super::{StateStore, TouchedKeys, View};

/// Who watches which keys of a namespace.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    inner: Mutex<WatchedKeys>,
}

#[derive(Debug, Default)]
struct WatchedKeys {
    by_key: HashMap<Bytes, Vec<Arc<Mark>>>,
    /// What the groups touched that are being made durable, in order.
    in_flight: VecDeque<TouchedKeys>,
}

/// What happened to the keys of a watch.
#[derive(Debug, Default)]
struct Mark {
    /// One of them was touched.
    is_changed: AtomicBool,
    /// Everything was removed, which changes those that were there.
    is_flushed: AtomicBool,
}

impl Watches {
    /// A group touched keys and left them as they were.
    pub(crate) fn mark(&self, touched: &TouchedKeys) {
        self.inner.lock().mark(touched);
    }

    /// A group is about to be made durable.
    pub(crate) fn begin(&self, touched: TouchedKeys) {
        let mut inner = self.inner.lock();
        if !inner.by_key.is_empty() {
            inner.mark(&touched);
        }
        inner.in_flight.push_back(touched);
    }

    /// The first of the groups is durable, or never will be.
    pub(crate) fn end(&self) {
        self.inner.lock().in_flight.pop_front();
    }
}

impl WatchedKeys {
    fn mark(&self, touched: &TouchedKeys) {
        if touched.is_all {
            for mark in self.by_key.values().flatten() {
                mark.is_flushed.store(true, Ordering::SeqCst);
            }
        }
        for mark in touched
            .keys()
            .iter()
            .filter_map(|key| self.by_key.get(key))
            .flatten()
        {
            mark.is_changed.store(true, Ordering::SeqCst);
        }
    }
}

/// Keys that somebody watches, from when they are watched until this is dropped.
#[derive(Debug)]
pub struct Watch {
    watches: Arc<Watches>,
    mark: Arc<Mark>,
    keys: Vec<WatchedKey>,
}

#[derive(Debug)]
struct WatchedKey {
    key: Bytes,
    /// Whether the key was there when the watch began.
    is_there: bool,
    /// When the key expires, if it had not when the watch began.
    expires: Option<u64>,
}

impl Watch {
    /// Watches nothing yet.
    pub(crate) fn new(watches: &Arc<Watches>) -> Self {
        Self {
            watches: Arc::clone(watches),
            mark: Arc::default(),
            keys: Vec::new(),
        }
    }

    /// Takes the watch out of its place and leaves one there whose keys have changed.
    pub(crate) fn take(&mut self) -> Self {
        let left = Self::new(&self.watches);
        left.mark.is_changed.store(true, Ordering::SeqCst);
        std::mem::replace(self, left)
    }

    /// Watches more keys.
    pub(crate) fn add(&mut self, store: &StateStore, now: u64, keys: &[Bytes]) -> Result<()> {
        for key in keys {
            if self.keys.iter().any(|watched| watched.key == *key) {
                continue;
            }
            self.register(key);
            let mut view = View::new(store);
            let moment = CommandMoment {
                now,
                ..CommandMoment::default()
            };
            let expiry = Keyspace::new(&mut view, moment)?.expiry_of(key)?;
            self.keys.push(WatchedKey {
                key: key.clone(),
                is_there: expiry.is_some(),
                expires: expiry.flatten(),
            });
        }
        Ok(())
    }

    fn register(&self, key: &Bytes) {
        let mut inner = self.watches.inner.lock();
        let marks = inner.by_key.entry(key.clone()).or_default();
        marks.push(Arc::clone(&self.mark));
        for touched in &mut inner.in_flight {
            let Mark {
                is_changed,
                is_flushed,
            } = &*self.mark;
            is_changed.fetch_or(touched.contains(key), Ordering::SeqCst);
            is_flushed.fetch_or(touched.is_all, Ordering::SeqCst);
        }
    }

    /// Returns whether a key was changed or has expired. `staged` is what commits touch that come
    /// before.
    pub(crate) fn is_changed(
        &self,
        watches: &Arc<Watches>,
        now: u64,
        staged: &mut TouchedKeys,
    ) -> bool {
        let has_expired =
            |watched: &WatchedKey| watched.expires.is_some_and(|expires| expires <= now);
        let is_flushed = staged.is_all || self.mark.is_flushed.load(Ordering::SeqCst);
        self.mark.is_changed.load(Ordering::SeqCst)
            || is_flushed && self.keys.iter().any(|watched| watched.is_there)
            || !Arc::ptr_eq(&self.watches, watches)
            || self.keys.iter().any(has_expired)
            || self
                .keys
                .iter()
                .any(|watched| staged.contains(&watched.key))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut inner = self.watches.inner.lock();
        for watched in &self.keys {
            if let Some(marks) = inner.by_key.get_mut(&watched.key) {
                marks.retain(|mark| !Arc::ptr_eq(mark, &self.mark));
                if marks.is_empty() {
                    inner.by_key.remove(&watched.key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use trefoil_state::Space as _;
    use trefoil_storage::MemoryStorage;

    use super::*;
    use crate::state::ReadCache;

    /// What a group touches that sets this key.
    fn touched(store: &StateStore, key: &'static [u8]) -> TouchedKeys {
        let mut view = View::new(store);
        view.touch(&Bytes::from_static(key));
        view.commit(|_| {});
        view.take_touched()
    }

    #[test]
    fn a_watch_that_begins_sees_all_groups_that_are_on_their_way() {
        let read_cache = Arc::new(ReadCache::new(0, crate::Clock::default()));
        let storage = Arc::new(MemoryStorage::new());
        let store = StateStore::open(storage, Arc::new(AtomicUsize::new(0)), read_cache).unwrap();
        let is_changed = |key: &'static [u8]| {
            let mut watch = Watch::new(&store.watches);
            watch.add(&store, 0, &[Bytes::from_static(key)]).unwrap();
            watch.is_changed(&store.watches, 0, &mut TouchedKeys::default())
        };
        let changed = || [is_changed(b"a"), is_changed(b"b")];
        assert_eq!(changed(), [false, false]);
        store.watches.begin(touched(&store, b"a"));
        store.watches.begin(touched(&store, b"b"));
        assert_eq!(changed(), [true, true]);
        store.watches.end();
        assert_eq!(changed(), [false, true]);
        store.watches.end();
        assert_eq!(changed(), [false, false]);
    }
}
