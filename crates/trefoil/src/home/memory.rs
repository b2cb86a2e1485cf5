//! A home that lives and dies with the process.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use trefoil_core::{Error, NamespaceId, Result};
use trefoil_storage::local::missing;
use trefoil_storage::{BlockCache, MemoryStorage, ReadReach};

use super::{
    Claim, Erasure, FIRST_GENERATION, Facts, Home, Incarnation, OpenedGeneration, Stamp,
    StoredEntry,
};

/// Namespaces in memory.
#[derive(Debug, Default)]
pub struct MemoryHome {
    namespaces: Mutex<BTreeMap<NamespaceId, Kept>>,
    /// The newest records, the oldest first, and the number of the last one.
    audit: Mutex<(VecDeque<String>, u64)>,
    /// Counts the changes, for incarnations and versions.
    clock: Mutex<u64>,
}

/// How many records of the audit log are kept.
const AUDIT_KEPT: usize = 10_000;

/// One namespace.
#[derive(Debug)]
struct Kept {
    stamp: Stamp,
    bytes: Bytes,
    data: Arc<Mutex<Data>>,
}

#[derive(Debug)]
struct Data {
    generation: u64,
    generations: BTreeMap<u64, Arc<MemoryStorage>>,
    due: Option<u64>,
    is_claimed: bool,
}

impl Default for Data {
    fn default() -> Self {
        Self {
            generation: FIRST_GENERATION,
            generations: BTreeMap::new(),
            due: None,
            is_claimed: false,
        }
    }
}

impl MemoryHome {
    /// Returns a home without namespaces.
    pub fn new() -> Self {
        Self::default()
    }

    /// Claims a new namespace that belongs to no registry, and lives as long as its claim.
    pub fn claim_new() -> Result<Arc<dyn Claim>> {
        MemoryClaim::take("memory", Arc::default(), false)
    }

    fn tick(&self) -> u64 {
        let mut clock = self.clock.lock();
        *clock += 1;
        *clock
    }
}

impl Kept {
    fn entry(&self, id: &NamespaceId) -> StoredEntry {
        StoredEntry {
            stamp: self.stamp,
            bytes: self.bytes.clone(),
            place: PathBuf::from(id.as_str()),
        }
    }
}

impl Home for MemoryHome {
    fn entries(&self) -> Result<Vec<(String, Result<StoredEntry>)>> {
        let namespaces = self.namespaces.lock();
        let entry = |(id, kept): (&NamespaceId, &Kept)| (id.to_string(), Ok(kept.entry(id)));
        Ok(namespaces.iter().map(entry).collect())
    }

    fn entry(&self, id: &NamespaceId) -> Result<Option<StoredEntry>> {
        let namespaces = self.namespaces.lock();
        Ok(namespaces.get(id).map(|kept| kept.entry(id)))
    }

    fn create(&self, id: &NamespaceId, bytes: &[u8]) -> Result<Stamp> {
        let mut namespaces = self.namespaces.lock();
        if namespaces.contains_key(id) {
            return Err(Error::NamespaceExists(id.to_string()));
        }
        let version = self.tick();
        let stamp = Stamp {
            incarnation: Incarnation(version.into()),
            version,
        };
        let kept = Kept {
            stamp,
            bytes: Bytes::copy_from_slice(bytes),
            data: Arc::default(),
        };
        namespaces.insert(id.clone(), kept);
        Ok(stamp)
    }

    fn replace(&self, id: &NamespaceId, old: Stamp, bytes: &[u8]) -> Result<Option<Stamp>> {
        let mut namespaces = self.namespaces.lock();
        let Some(kept) = namespaces.get_mut(id).filter(|kept| kept.stamp == old) else {
            return Ok(None);
        };
        kept.stamp.version = self.tick();
        kept.bytes = Bytes::copy_from_slice(bytes);
        Ok(Some(kept.stamp))
    }

    fn delete(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<Erasure> {
        let mut namespaces = self.namespaces.lock();
        find(&namespaces, id, incarnation)?;
        let removed = namespaces.remove(id);
        Ok(Box::new(move || {
            drop(removed);
            Ok(())
        }))
    }

    fn claim(
        &self,
        id: &NamespaceId,
        incarnation: Incarnation,
        must_exist: bool,
    ) -> Result<Arc<dyn Claim>> {
        let data = find(&self.namespaces.lock(), id, incarnation)?;
        MemoryClaim::take(id.as_str(), data, must_exist)
    }

    fn has_storage(&self, id: &NamespaceId) -> Result<bool> {
        let namespaces = self.namespaces.lock();
        let kept = namespaces.get(id);
        Ok(kept.is_some_and(|kept| !kept.data.lock().generations.is_empty()))
    }

    fn due_times(&self) -> Result<Vec<(NamespaceId, u64)>> {
        let namespaces = self.namespaces.lock();
        let due = |(id, kept): (&NamespaceId, &Kept)| Some((id.clone(), kept.data.lock().due?));
        Ok(namespaces.iter().filter_map(due).collect())
    }

    fn append_audit(&self, record: &str) -> Result<u64> {
        let (records, last) = &mut *self.audit.lock();
        if records.len() == AUDIT_KEPT {
            records.pop_front();
        }
        records.push_back(record.to_owned());
        *last += 1;
        Ok(*last)
    }

    fn read_audit(&self, before: u64, limit: usize) -> Result<Vec<(u64, String)>> {
        let (records, last) = &*self.audit.lock();
        let numbered = (1..=*last).rev().zip(records.iter().rev());
        let wanted = numbered.filter(|(number, _)| *number < before);
        let owned = wanted.map(|(number, record)| (number, record.clone()));
        Ok(owned.take(limit).collect())
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}

fn find(
    namespaces: &BTreeMap<NamespaceId, Kept>,
    id: &NamespaceId,
    incarnation: Incarnation,
) -> Result<Arc<Mutex<Data>>> {
    let kept = namespaces.get(id);
    kept.filter(|kept| kept.stamp.incarnation == incarnation)
        .map(|kept| Arc::clone(&kept.data))
        .ok_or_else(|| Error::NamespaceNotFound(id.to_string()))
}

/// A namespace in memory that is in use.
#[derive(Debug)]
struct MemoryClaim {
    name: PathBuf,
    data: Arc<Mutex<Data>>,
    is_released: AtomicBool,
}

impl MemoryClaim {
    fn take(name: &str, data: Arc<Mutex<Data>>, must_exist: bool) -> Result<Arc<dyn Claim>> {
        let name = PathBuf::from(name);
        let mut claimed = data.lock();
        if must_exist && claimed.generations.is_empty() {
            return Err(missing(&name, "the namespace is missing"));
        }
        if std::mem::replace(&mut claimed.is_claimed, true) {
            return Err(Error::Locked { path: name });
        }
        drop(claimed);
        Ok(Arc::new(Self {
            name,
            data,
            is_released: AtomicBool::new(false),
        }))
    }

    fn check_held(&self) -> Result<()> {
        match self.is_released.load(Ordering::SeqCst) {
            true => Err(Error::Closed("the namespace was released".into())),
            false => Ok(()),
        }
    }
}

impl Drop for MemoryClaim {
    fn drop(&mut self) {
        self.release();
    }
}

impl Claim for MemoryClaim {
    fn facts(&self) -> Result<Facts> {
        self.check_held()?;
        let data = self.data.lock();
        Ok(Facts {
            generation: data.generation,
            due: data.due,
        })
    }

    fn open(
        &self,
        generation: u64,
        _cache: &Arc<BlockCache>,
        _reach: &ReadReach<'_>,
    ) -> Result<OpenedGeneration> {
        self.check_held()?;
        let mut data = self.data.lock();
        let storage = data.generations.entry(generation).or_default();
        Ok(OpenedGeneration {
            storage: Arc::clone(storage) as _,
            cut_bytes: 0,
            place: self.name.join(generation.to_string()),
        })
    }

    fn switch(&self, generation: u64) -> Result<()> {
        self.check_held()?;
        self.data.lock().generation = generation;
        Ok(())
    }

    fn remove_others(&self) -> Result<()> {
        self.check_held()?;
        let mut data = self.data.lock();
        let current = data.generation;
        data.generations.retain(|number, _| *number == current);
        Ok(())
    }

    fn set_due(&self, due: Option<u64>) -> Result<()> {
        self.check_held()?;
        self.data.lock().due = due;
        Ok(())
    }

    fn release(&self) {
        if !self.is_released.swap(true, Ordering::SeqCst) {
            self.data.lock().is_claimed = false;
        }
    }
}
