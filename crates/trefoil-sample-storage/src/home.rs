//! Where the namespaces live.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use trefoil::home::{
    Claim, Erasure, FIRST_GENERATION, Facts, Home, Incarnation, OpenedGeneration, Stamp,
    StoredEntry,
};
use trefoil::{Error, NamespaceId, Result};
use trefoil_storage::local::missing;
use trefoil_storage::{BlockCache, ReadReach};

use crate::VecStorage;
use crate::storage::Data;

/// Namespaces in a `Vec`.
#[derive(Debug, Default)]
pub struct VecHome {
    /// In the order of their ids.
    kept: Mutex<Vec<Kept>>,
    /// The records of the audit log.
    audit: Mutex<Vec<String>>,
}

/// One namespace.
#[derive(Debug, Clone)]
struct Kept {
    id: NamespaceId,
    entry: StoredEntry,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    generation: Option<u64>,
    generations: BTreeMap<u64, Arc<RwLock<Data>>>,
    due: Option<u64>,
    /// The claim that is held.
    claim: Option<u64>,
}

impl State {
    fn generation(&self) -> u64 {
        self.generation.unwrap_or(FIRST_GENERATION)
    }
}

/// Returns a number that was never returned before.
fn unique() -> u64 {
    static LAST: Mutex<u64> = Mutex::new(0);
    let mut last = LAST.lock();
    *last += 1;
    *last
}

impl VecHome {
    fn find(&self, id: &NamespaceId) -> Option<Kept> {
        self.kept.lock().iter().find(|kept| kept.id == *id).cloned()
    }

    fn require(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<Kept> {
        let found = self.find(id);
        found
            .filter(|kept| kept.entry.stamp.incarnation == incarnation)
            .ok_or_else(|| Error::NamespaceNotFound(id.to_string()))
    }
}

impl Home for VecHome {
    fn entries(&self) -> Result<Vec<(String, Result<StoredEntry>)>> {
        let entry = |kept: &Kept| (kept.id.to_string(), Ok(kept.entry.clone()));
        Ok(self.kept.lock().iter().map(entry).collect())
    }

    fn entry(&self, id: &NamespaceId) -> Result<Option<StoredEntry>> {
        Ok(self.find(id).map(|kept| kept.entry))
    }

    fn create(&self, id: &NamespaceId, bytes: &[u8]) -> Result<Stamp> {
        let mut kept = self.kept.lock();
        if kept.iter().any(|kept| kept.id == *id) {
            return Err(Error::NamespaceExists(id.to_string()));
        }
        let version = unique();
        let incarnation = Incarnation(version.into());
        let stamp = Stamp {
            incarnation,
            version,
        };
        let (bytes, place) = (Bytes::copy_from_slice(bytes), id.as_str().into());
        let entry = StoredEntry {
            stamp,
            bytes,
            place,
        };
        let (id, state) = (id.clone(), Arc::default());
        let place = kept.partition_point(|kept| kept.id < id);
        kept.insert(place, Kept { id, entry, state });
        Ok(stamp)
    }

    fn replace(&self, id: &NamespaceId, old: Stamp, bytes: &[u8]) -> Result<Option<Stamp>> {
        let mut kept = self.kept.lock();
        let found = kept
            .iter_mut()
            .find(|kept| kept.id == *id && kept.entry.stamp == old);
        Ok(found.map(|kept| {
            kept.entry.stamp.version = unique();
            kept.entry.bytes = Bytes::copy_from_slice(bytes);
            kept.entry.stamp
        }))
    }

    fn delete(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<Erasure> {
        self.require(id, incarnation)?;
        self.kept.lock().retain(|kept| kept.id != *id);
        Ok(Box::new(|| Ok(())))
    }

    fn claim(
        &self,
        id: &NamespaceId,
        incarnation: Incarnation,
        must_exist: bool,
    ) -> Result<Arc<dyn Claim>> {
        let kept = self.require(id, incarnation)?;
        let place = kept.entry.place.clone();
        let mut state = kept.state.lock();
        if must_exist && state.generations.is_empty() {
            return Err(missing(&place, "the namespace is missing"));
        }
        if state.claim.is_some() {
            return Err(Error::Locked { path: place });
        }
        let number = unique();
        state.claim = Some(number);
        drop(state);
        Ok(Arc::new(VecClaim { kept, number }))
    }

    fn has_storage(&self, id: &NamespaceId) -> Result<bool> {
        let has_some = |kept: Kept| !kept.state.lock().generations.is_empty();
        Ok(self.find(id).is_some_and(has_some))
    }

    fn due_times(&self) -> Result<Vec<(NamespaceId, u64)>> {
        let due = |kept: &Kept| Some((kept.id.clone(), kept.state.lock().due?));
        Ok(self.kept.lock().iter().filter_map(due).collect())
    }

    fn append_audit(&self, record: &str) -> Result<u64> {
        let mut audit = self.audit.lock();
        audit.push(record.to_owned());
        Ok(audit.len() as u64)
    }

    fn read_audit(&self, before: u64, limit: usize) -> Result<Vec<(u64, String)>> {
        let audit = self.audit.lock();
        let numbered = (1..).zip(audit.iter().cloned());
        let mut wanted: Vec<_> = numbered
            .take_while(|(number, _)| *number < before)
            .collect();
        wanted.reverse();
        wanted.truncate(limit);
        Ok(wanted)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}

/// A namespace that is in use.
#[derive(Debug)]
struct VecClaim {
    kept: Kept,
    number: u64,
}

impl VecClaim {
    /// Does something with the namespace, unless the claim was released.
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> Result<T> {
        let mut state = self.kept.state.lock();
        match state.claim == Some(self.number) {
            true => Ok(work(&mut state)),
            false => Err(Error::Closed("the namespace was released".into())),
        }
    }
}

impl Drop for VecClaim {
    fn drop(&mut self) {
        self.release();
    }
}

impl Claim for VecClaim {
    fn facts(&self) -> Result<Facts> {
        self.with(|state| Facts {
            generation: state.generation(),
            due: state.due,
        })
    }

    fn open(
        &self,
        number: u64,
        _: &Arc<BlockCache>,
        _: &ReadReach<'_>,
    ) -> Result<OpenedGeneration> {
        let data = self.with(|state| Arc::clone(state.generations.entry(number).or_default()))?;
        Ok(OpenedGeneration {
            storage: Arc::new(VecStorage::open(data)),
            cut_bytes: 0,
            place: self.kept.entry.place.clone(),
        })
    }

    fn switch(&self, generation: u64) -> Result<()> {
        self.with(|state| state.generation = Some(generation))
    }

    fn remove_others(&self) -> Result<()> {
        self.with(|state| {
            let current = state.generation();
            state.generations.retain(|number, _| *number == current);
        })
    }

    fn set_due(&self, due: Option<u64>) -> Result<()> {
        self.with(|state| state.due = due)
    }

    fn release(&self) {
        // One that was released already is not released again.
        let _ = self.with(|state| state.claim = None);
    }
}
