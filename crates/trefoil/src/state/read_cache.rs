//! The read cache: entries of the map that were read recently.
//!
//! To find an entry in the map takes a search through several tables and their blocks, even if they
//! are in memory; to find it here takes one lookup. All databases of a process share the cache, so
//! that those that are read the most have the most of it.
//!
//! The map is read as it was at a moment, the last checkpoint. The cached entries are those of now.
//! Once a checkpoint changes them, a reader that began before what the checkpoint writes was set
//! aside does without the cache.

use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hashbrown::DefaultHashBuilder;
use parking_lot::RwLock;
use trefoil_core::Result;
use trefoil_storage::Map;

use super::tree::PackedEntry;
use crate::stats::Striped;
use crate::time::clock::Clock;
use crate::time::slowness::RecentSlowness;

/// About how much memory an entry takes besides its bytes.
const ENTRY_BYTES: u64 = 112;

/// If reads of the map take longer than this, some of them wait for the disk.
const SLOW_READ: Duration = Duration::from_micros(30);

/// A read counts as at most this long.
const COUNTED_READ_MAX: Duration = Duration::from_micros(200);

/// How long reads of a map took lately, of entries that were not in the cache.
#[derive(Debug)]
pub(super) struct MapSlowness(RecentSlowness);

impl Default for MapSlowness {
    fn default() -> Self {
        Self(RecentSlowness::new(SLOW_READ, COUNTED_READ_MAX))
    }
}

/// The entries that were read recently, of all databases, under hashes of their maps and names. Of
/// two that have the same hash, one is kept.
#[derive(Debug)]
pub(crate) struct ReadCache {
    entries: quick_cache::sync::Cache<u64, CachedEntry, EntryWeight>,
    hasher: DefaultHashBuilder,
    clock: Clock,
    /// How many maps there were so far.
    n_maps: AtomicU64,
    hits: Striped<AtomicU64>,
    misses: Striped<AtomicU64>,
}

/// An entry of one of the maps.
#[derive(Debug, Clone)]
struct CachedEntry {
    map: u64,
    entry: PackedEntry,
}

#[derive(Debug, Clone, Copy)]
struct EntryWeight;

impl quick_cache::Weighter<u64, CachedEntry> for EntryWeight {
    fn weight(&self, _: &u64, cached: &CachedEntry) -> u64 {
        ENTRY_BYTES + cached.entry.as_ref().len() as u64
    }
}

impl ReadCache {
    /// Returns a cache of this size in bytes.
    pub(crate) fn new(bytes: u64, clock: Clock) -> Self {
        let n_entries = (bytes / ENTRY_BYTES) as usize;
        Self {
            entries: quick_cache::sync::Cache::with_weighter(n_entries, bytes, EntryWeight),
            hasher: DefaultHashBuilder::default(),
            clock,
            n_maps: AtomicU64::new(0),
            hits: Striped::default(),
            misses: Striped::default(),
        }
    }

    /// Returns whether these reads wait for the disk now and then.
    pub(super) fn are_slow(&self, slowness: &MapSlowness) -> bool {
        slowness.0.is_expected(&self.clock)
    }

    /// Returns how many entries were looked for and found, and how many not.
    pub(crate) fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.get(), self.misses.get())
    }

    /// Returns how many bytes the entries take.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.entries.weight()
    }

    fn hash(&self, map: u64, name: &[u8]) -> u64 {
        self.hasher.hash_one((map, name))
    }

    fn get(&self, map: u64, name: &[u8]) -> Option<PackedEntry> {
        let cached = self.entries.get(&self.hash(map, name))?;
        cached.is(map, name).then_some(cached.entry)
    }

    fn insert(&self, map: u64, entry: PackedEntry) {
        let hash = self.hash(map, entry.name());
        self.entries.insert(hash, CachedEntry { map, entry });
    }

    /// Replaces an entry if it is here.
    fn replace(&self, map: u64, entry: &PackedEntry) {
        let hash = self.hash(map, entry.name());
        let cached = self.entries.peek(&hash);
        if cached.is_none_or(|cached| !cached.is(map, entry.name())) {
            return;
        }
        if entry.value().is_none() {
            self.entries.remove(&hash);
            return;
        }
        let entry = entry.clone();
        // It may have been dropped meanwhile.
        let _ = self.entries.replace(hash, CachedEntry { map, entry }, true);
    }
}

impl CachedEntry {
    fn is(&self, map: u64, name: &[u8]) -> bool {
        self.map == map && self.entry.name() == name
    }
}

/// The time in which the entries in memory are those that a reader must find.
#[derive(Debug, Default)]
pub(super) struct Period {
    is_over: AtomicBool,
    /// Held while an entry is put into memory.
    gate: RwLock<()>,
}

impl Period {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Does something if the period is not over, and before it is.
    fn during(&self, work: impl FnOnce()) {
        let _gate = self.gate.read();
        if !self.is_over() {
            work();
        }
    }

    /// Ends the period: entries in memory are about to change.
    pub(super) fn end(&self) {
        let _gate = self.gate.write();
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// The map of one database at a moment.
#[derive(Debug)]
pub(super) struct CachedMap {
    pub(super) map: Arc<dyn Map>,
    number: u64,
    cache: Arc<ReadCache>,
    period: Arc<Period>,
    slowness: Arc<MapSlowness>,
}

impl CachedMap {
    pub(super) fn new(
        map: Arc<dyn Map>,
        cache: &Arc<ReadCache>,
        period: &Arc<Period>,
        slowness: &Arc<MapSlowness>,
    ) -> Self {
        Self {
            map,
            number: cache.n_maps.fetch_add(1, Ordering::Relaxed),
            cache: Arc::clone(cache),
            period: Arc::clone(period),
            slowness: Arc::clone(slowness),
        }
    }

    /// Returns the same map, at the same moment or at another, for readers that begin in a period.
    pub(super) fn later(&self, map: &Arc<dyn Map>, period: &Arc<Period>) -> Arc<Self> {
        Arc::new(Self {
            map: Arc::clone(map),
            number: self.number,
            cache: Arc::clone(&self.cache),
            period: Arc::clone(period),
            slowness: Arc::clone(&self.slowness),
        })
    }

    /// Returns the value of an entry.
    pub(super) fn get(&self, name: &[u8]) -> Result<Option<Bytes>> {
        match self.cached(name) {
            Some(entry) => Ok(entry.into_value()),
            None => self.read(name),
        }
    }

    /// Returns an entry if it is in the cache.
    pub(super) fn cached(&self, name: &[u8]) -> Option<PackedEntry> {
        if self.period.is_over() {
            return None;
        }
        let entry = self.cache.get(self.number, name)?;
        // It may have ended just now. What was found before it did is what it was.
        if self.period.is_over() {
            return None;
        }
        self.cache.hits.add(1);
        Some(entry)
    }

    /// Reads an entry from the map.
    fn read(&self, name: &[u8]) -> Result<Option<Bytes>> {
        self.cache.misses.add(1);
        let began = self.cache.clock.steady();
        let found = self.map.get(name)?;
        let clock = &self.cache.clock;
        self.slowness.0.note(clock.since(began), clock);
        if let Some(value) = &found {
            // The value may be a part of a block, which must not be kept for its sake.
            let entry = PackedEntry::new(name, Some(value));
            self.period.during(|| self.cache.insert(self.number, entry));
        }
        Ok(found)
    }

    /// An entry is about to change. Until it has, no reader whose period is not over reads it here,
    /// because what it changes to is in memory meanwhile.
    pub(super) fn changes(&self, entry: &PackedEntry) {
        self.cache.replace(self.number, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trefoil_storage::{Batch, MemoryStorage, Storage};

    fn room() -> Arc<ReadCache> {
        Arc::new(ReadCache::new(64 * 1024, Clock::default()))
    }

    fn cached(map: Arc<dyn Map>, cache: &Arc<ReadCache>) -> CachedMap {
        CachedMap::new(map, cache, &Arc::default(), &Arc::default())
    }

    /// Returns a map with these entries.
    fn map(storage: &MemoryStorage, entries: &[(&str, &str)]) -> Arc<dyn Map> {
        let mut batch = Batch::default();
        for (key, value) in entries {
            batch.put("map", key.as_bytes().to_vec(), value.as_bytes().to_vec());
        }
        storage.write(&batch).unwrap();
        storage.map("map").unwrap().unwrap()
    }

    #[test]
    fn an_entry_is_read_from_the_map_once() {
        let (storage, cache) = (MemoryStorage::default(), room());
        let cached = cached(map(&storage, &[("a", "1"), ("b", "2")]), &cache);
        assert_eq!(cached.get(b"a").unwrap(), Some(Bytes::from("1")));
        map(&storage, &[("a", "other"), ("b", "other"), ("c", "3")]);
        assert_eq!(cached.get(b"a").unwrap(), Some(Bytes::from("1")));
        assert_eq!(cached.get(b"b").unwrap(), Some(Bytes::from("other")));
        assert_eq!(cached.get(b"c").unwrap(), Some(Bytes::from("3")));
    }

    #[test]
    fn an_entry_that_changes_is_no_longer_what_it_was() {
        let (storage, cache) = (MemoryStorage::default(), room());
        let cached = cached(map(&storage, &[("a", "1"), ("b", "2")]), &cache);
        assert!(cached.get(b"a").unwrap().is_some() && cached.get(b"b").unwrap().is_some());
        cached.changes(&PackedEntry::new(b"a", Some(b"3")));
        cached.changes(&PackedEntry::new(b"b", None));
        cached.changes(&PackedEntry::new(b"c", Some(b"unread")));
        assert_eq!(cached.get(b"a").unwrap(), Some(Bytes::from("3")));
        assert_eq!(
            cached.get(b"b").unwrap(),
            Some(Bytes::from("2")),
            "from the map"
        );
        assert_eq!(cached.get(b"c").unwrap(), None, "from the map");
    }

    #[test]
    fn a_reader_that_began_before_a_change_finds_what_was() {
        let (storage, cache, period) = (MemoryStorage::default(), room(), Arc::default());
        let live = map(&storage, &[("a", "1"), ("b", "2")]);
        let before = CachedMap::new(
            live.clone().moment().unwrap(),
            &cache,
            &period,
            &Arc::default(),
        );
        assert!(before.get(b"a").unwrap().is_some());
        let next = Arc::default();
        let meanwhile = before.later(&before.map, &next);
        // A checkpoint changes both, of which one was read before.
        period.end();
        for key in ["a", "b"] {
            before.changes(&PackedEntry::new(key.as_bytes(), Some(b"new")));
        }
        map(&storage, &[("a", "new"), ("b", "new"), ("c", "new")]);
        let after = before.later(&live.moment().unwrap(), &next);
        assert_eq!(before.get(b"a").unwrap(), Some(Bytes::from("1")));
        assert_eq!(before.get(b"b").unwrap(), Some(Bytes::from("2")));
        assert_eq!(before.get(b"c").unwrap(), None);
        assert_eq!(meanwhile.get(b"c").unwrap(), None);
        for key in [b"a", b"b", b"c"] {
            assert_eq!(after.get(key).unwrap(), Some(Bytes::from("new")));
        }
    }

    #[test]
    fn databases_do_not_see_one_another() {
        let cache = room();
        let storages = [MemoryStorage::default(), MemoryStorage::default()];
        let one = cached(map(&storages[0], &[("a", "1")]), &cache);
        let other = cached(map(&storages[1], &[("a", "2")]), &cache);
        assert_eq!(one.get(b"a").unwrap(), Some(Bytes::from("1")));
        assert_eq!(other.get(b"a").unwrap(), Some(Bytes::from("2")));
    }

    #[test]
    fn an_entry_of_the_same_hash_is_another_one() {
        let cache = room();
        let entry = PackedEntry::new(b"a", Some(b"1"));
        let cached = CachedEntry { map: 1, entry };
        for (map, name) in [(1, b"b"), (2, b"a")] {
            let hash = cache.hash(map, name);
            cache.entries.insert(hash, cached.clone());
            assert!(cache.get(map, name).is_none(), "map {map}");
            cache.replace(map, &PackedEntry::new(name, None));
            assert!(cache.entries.peek(&hash).is_some(), "map {map}");
        }
    }

    #[test]
    fn the_room_is_bounded() {
        let (storage, cache) = (MemoryStorage::default(), room());
        let keys: Vec<String> = (0..2000).map(|number| format!("key {number}")).collect();
        let entries: Vec<_> = keys.iter().map(|key| (key.as_str(), "value")).collect();
        let cached = cached(map(&storage, &entries), &cache);
        for key in &keys {
            assert_eq!(
                cached.get(key.as_bytes()).unwrap(),
                Some(Bytes::from("value"))
            );
        }
        assert!(
            (200..800).contains(&cache.entries.len()),
            "{}",
            cache.entries.len()
        );
    }
}
