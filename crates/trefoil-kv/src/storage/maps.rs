//! The maps of a generation: those that are written to, which lie in the store, and those that were
//! loaded, which are files.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use trefoil_core::{Direction, Error, Result};
use trefoil_storage::parts::{check_key, check_name};
use trefoil_storage::{Batch, Fill, LogEnd, Map, Scan};

use crate::contract::KvRead;

use super::cell::{Packing, Puts};
use super::entries::{self, Bucket, EntryPlace, EntryWalk};
use super::errors::failed;
use super::facts::{GarbageFact, MapFact};
use super::garbage::{GarbageQueue, removals, remove_all};
use super::keys::Tag;
use super::redo::apply_large;
use super::runs::{RunMap, Runs};
use super::store::{KeyChange, OpenStore, puts_to_changes};
use super::usage::UsageCount;

/// All maps.
#[derive(Debug)]
pub(super) struct KvMaps {
    store: Arc<OpenStore>,
    runs: Arc<Runs>,
    garbage: Arc<GarbageQueue>,
    usage: Arc<UsageCount>,
    maps: RwLock<BTreeMap<String, KnownMap>>,
    /// Held while maps are changed.
    changing: Mutex<()>,
}

#[derive(Debug, Clone)]
enum KnownMap {
    Written(Arc<EntryMap>),
    Loaded(Arc<RunMap>),
}

fn exists(name: &str) -> Error {
    Error::invalid(format!("map {name} exists already"))
}

impl KvMaps {
    pub(super) fn new(
        store: &Arc<OpenStore>,
        runs: Arc<Runs>,
        garbage: Arc<GarbageQueue>,
        usage: Arc<UsageCount>,
        facts: BTreeMap<String, MapFact>,
    ) -> Self {
        let known = |(name, fact)| {
            let map = match fact {
                MapFact::Written(number) => KnownMap::Written(EntryMap::new(store, number)),
                loaded => KnownMap::Loaded(Arc::new(RunMap::new(&runs, loaded))),
            };
            (name, map)
        };
        let maps = RwLock::new(facts.into_iter().map(known).collect());
        Self {
            store: Arc::clone(store),
            runs,
            garbage,
            usage,
            maps,
            changing: Mutex::new(()),
        }
    }

    fn known(&self, name: &str) -> Option<KnownMap> {
        self.maps.read().get(name).cloned()
    }

    pub(super) fn map(&self, name: &str) -> Result<Option<Arc<dyn Map>>> {
        self.store.check()?;
        Ok(match self.known(name) {
            None => None,
            Some(KnownMap::Written(map)) => Some(map),
            Some(KnownMap::Loaded(map)) => {
                map.open()?;
                Some(map)
            }
        })
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.maps.read().keys().cloned().collect()
    }

    /// Returns how many bytes the files of the maps take that were loaded.
    pub(super) fn loaded_bytes(&self) -> u64 {
        let maps = self.maps.read();
        let bytes = maps.values().map(|map| match map {
            KnownMap::Loaded(map) => map.n_bytes(),
            KnownMap::Written(_) => 0,
        });
        bytes.sum()
    }

    /// Returns how many bytes of memory cached blocks take.
    pub(super) fn held_bytes(&self) -> u64 {
        self.runs.loaded.held_bytes()
    }

    /// Applies a batch.
    pub(super) fn write(&self, batch: &Batch) -> Result<()> {
        for (name, key, _) in &batch.changes {
            check_name(name)?;
            check_key(key)?;
            if let Some(KnownMap::Loaded(_)) = self.known(name) {
                let text = format!("map {name} was loaded and never changes");
                return Err(Error::Invalid(text));
            }
        }
        if batch.changes.is_empty() {
            return Ok(());
        }
        let _changing = self.changing.lock();
        let (new_maps, mut changes) = self.new_maps(batch);
        let n_bytes = batch.n_bytes();
        let has_long_entries = self.change_entries(batch, &new_maps, &mut changes)?;
        changes.push(self.usage.count(&self.store, |usage| {
            usage.map_bytes += n_bytes;
            usage.has_long_entries |= has_long_entries;
        }));
        match self.store.fits(&changes) {
            true => self.store.commit(changes)?,
            false => apply_large(&self.store, &self.garbage, changes)?,
        }
        let known = new_maps.into_iter();
        let known = known.map(|(name, map)| (name, KnownMap::Written(map)));
        self.maps.write().extend(known);
        Ok(())
    }

    /// Returns the maps that a batch creates, and the changes that do so.
    fn new_maps(&self, batch: &Batch) -> (BTreeMap<String, Arc<EntryMap>>, Vec<KeyChange>) {
        let (mut new, mut changes) = (BTreeMap::new(), Vec::new());
        for (name, _, _) in &batch.changes {
            if new.contains_key(name) || self.known(name).is_some() {
                continue;
            }
            let number = self.store.new_number();
            let key = self.store.keys.named(Tag::Map, name.as_bytes());
            let fact = MapFact::Written(number).encode();
            let value = self.store.cells.short(&key, &fact);
            changes.push((key, Some(value)));
            new.insert(name.clone(), EntryMap::new(&self.store, number));
        }
        (new, changes)
    }

    /// Adds the changes of the store that a batch is. Returns whether one of them is of a long value.
    fn change_entries(
        &self,
        batch: &Batch,
        new: &BTreeMap<String, Arc<EntryMap>>,
        changes: &mut Vec<KeyChange>,
    ) -> Result<bool> {
        let (mut alone, mut buckets) = (BTreeMap::new(), BTreeMap::<_, BTreeMap<_, _>>::new());
        let mut last: Option<(&str, u64)> = None;
        for (name, key, value) in &batch.changes {
            // Most changes are of the same map as the one before.
            let number = match last.filter(|(last, _)| last == name) {
                Some((_, number)) => number,
                None => self.number(name, new)?,
            };
            last = Some((name, number));
            match entries::place(&self.store, number, key) {
                EntryPlace::Alone(key) => drop(alone.insert(key, value.as_deref())),
                EntryPlace::InBucket(key, rest) => {
                    let value = value.as_deref();
                    buckets.entry(key).or_default().insert(rest, value);
                }
            }
        }
        if self.usage.get().has_long_entries {
            self.remove_long(alone.keys().chain(buckets.keys()), changes)?;
        }
        let mut puts = Puts::new();
        let n_entries = alone.len() + buckets.len();
        let mut removed = Vec::new();
        let mut put = |key: Bytes, content: Option<&[u8]>| match content {
            None => {
                removed.push((key, None));
                Ok(())
            }
            Some(content) => {
                let number = || self.store.new_number();
                let cells = &self.store.cells;
                cells.put(&mut puts, key, content, Packing::Plain, number)
            }
        };
        for (key, value) in alone {
            put(key, value)?;
        }
        for (key, edits) in buckets {
            let bucket = self.edited_bucket(&key, edits)?;
            put(
                key,
                bucket
                    .map(|bucket| entries::encode_bucket(&bucket))
                    .as_deref(),
            )?;
        }
        let has_long = puts.len() + removed.len() > n_entries;
        changes.extend(puts_to_changes(puts));
        changes.extend(removed);
        Ok(has_long)
    }

    fn number(&self, name: &str, new: &BTreeMap<String, Arc<EntryMap>>) -> Result<u64> {
        if let Some(map) = new.get(name) {
            return Ok(map.number);
        }
        match self.known(name) {
            Some(KnownMap::Written(map)) => Ok(map.number),
            _ => Err(Error::Closed(format!("map {name} was dropped"))),
        }
    }

    /// Returns a bucket with changes; `None` if nothing is left in it.
    fn edited_bucket(
        &self,
        key: &Bytes,
        edits: BTreeMap<Bytes, Option<&[u8]>>,
    ) -> Result<Option<Bucket>> {
        let found = entries::read_bucket(&self.store, &*self.store.kv, key)?;
        let mut bucket = found.unwrap_or_default();
        for (rest, value) in edits {
            match value {
                Some(value) => bucket.insert(rest, Bytes::copy_from_slice(value)),
                None => bucket.remove(&rest),
            };
        }
        Ok((!bucket.is_empty()).then_some(bucket))
    }

    /// Adds the removal of the parts of long values that are replaced.
    fn remove_long<'a>(
        &self,
        keys: impl Iterator<Item = &'a Bytes>,
        changes: &mut Vec<KeyChange>,
    ) -> Result<()> {
        let keys: Vec<&[u8]> = keys.map(|key| &key[..]).collect();
        let found = self.store.kv.get(&keys).map_err(failed("reading a map"))?;
        for (key, value) in keys.into_iter().zip(found) {
            if let Some(value) = value {
                let mut removed = removals(&self.store, Bytes::copy_from_slice(key), &value);
                // The key itself is replaced.
                removed.pop();
                changes.extend(removed);
            }
        }
        Ok(())
    }

    /// Creates a map whose entries never change.
    pub(super) fn load(&self, name: &str, fill: &mut Fill<'_>) -> Result<()> {
        check_name(name)?;
        self.store.check()?;
        if self.known(name).is_some() {
            return Err(exists(name));
        }
        let loading = self.runs.build(fill)?;
        let (declared, garbage) = (loading.declared, GarbageFact::Objects(loading.run));
        let loaded = loading.upload(&self.runs).and_then(|fact| {
            let _changing = self.changing.lock();
            if self.known(name).is_some() {
                return Err(exists(name));
            }
            let key = self.store.keys.named(Tag::Map, name.as_bytes());
            let mut puts = Puts::new();
            let (cells, content) = (&self.store.cells, fact.encode());
            let number = || self.store.new_number();
            cells.put(&mut puts, key, &content, Packing::Plain, number)?;
            let mut changes: Vec<KeyChange> = puts_to_changes(puts).collect();
            changes.push(self.store.retraction(declared));
            self.store.commit(changes)?;
            let map = Arc::new(loading.finish(&self.runs, fact));
            self.maps
                .write()
                .insert(name.to_owned(), KnownMap::Loaded(map));
            Ok(())
        });
        loaded.inspect_err(|_| {
            loading.give_up();
            self.garbage.push(declared, garbage);
        })
    }

    /// Removes a map.
    pub(super) fn drop_map(&self, name: &str) -> Result<()> {
        self.store.check()?;
        let _changing = self.changing.lock();
        let Some(map) = self.known(name) else {
            return Ok(());
        };
        let garbage = match &map {
            KnownMap::Written(map) => {
                map.freeze()?;
                GarbageFact::Entries(map.number)
            }
            KnownMap::Loaded(map) => map.garbage(),
        };
        let key = self.store.keys.named(Tag::Map, name.as_bytes());
        let found = self
            .store
            .kv
            .get(&[&key])
            .map_err(failed("reading a map"))?;
        let value = found.into_iter().flatten().next().unwrap_or_default();
        let (declared, declaration) = self.store.declare(&garbage);
        let mut changes = removals(&self.store, key, &value);
        changes.push(declaration);
        self.store.commit(changes)?;
        self.maps.write().remove(name);
        if let KnownMap::Loaded(map) = map {
            map.drop_files();
            // What cannot be removed now is removed later.
            if remove_all(&self.store, declared, &garbage, LogEnd::default()).is_ok() {
                return Ok(());
            }
        }
        self.garbage.push(declared, garbage);
        Ok(())
    }
}

/// A map that is written to.
#[derive(Debug)]
struct EntryMap {
    store: Arc<OpenStore>,
    number: u64,
    /// What is read, if it is not the store as it is: a moment of it, or the last one before the map
    /// was dropped.
    moment: OnceLock<Arc<dyn KvRead>>,
}

impl EntryMap {
    fn new(store: &Arc<OpenStore>, number: u64) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(store),
            number,
            moment: OnceLock::new(),
        })
    }

    /// Stays what it is now.
    fn freeze(&self) -> Result<()> {
        let moment = self.store.maps_moment()?;
        self.moment.get_or_init(|| moment);
        Ok(())
    }
}

impl Map for EntryMap {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        if check_key(key).is_err() {
            return Ok(None);
        }
        self.store.check()?;
        if let Some(moment) = self.moment.get() {
            return entries::get(&self.store, &**moment, self.number, key);
        }
        let view = self.store.maps_view();
        entries::get(&self.store, &**view, self.number, key)
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> Scan<'_> {
        let moment = self.store.check().and_then(|()| match self.moment.get() {
            Some(moment) => Ok(Arc::clone(moment)),
            None => self.store.maps_moment(),
        });
        match moment {
            Ok(moment) => {
                let range = (from, to);
                let walk = EntryWalk::new(&self.store, moment, self.number, range, direction);
                Box::new(walk)
            }
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn moment(self: Arc<Self>) -> Result<Arc<dyn Map>> {
        if self.moment.get().is_some() {
            return Ok(self);
        }
        let moment = Self::new(&self.store, self.number);
        moment.freeze()?;
        Ok(moment)
    }
}
