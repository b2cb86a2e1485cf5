//! The entries of the registry: an object each, which is replaced only in the state that it was read
//! in. A deleted one leaves a tombstone, because an object cannot be removed on a condition, and the
//! next namespace of that name takes its place.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trefoil::home::{Incarnation, Stamp, StoredEntry};
use trefoil_core::{Error, NamespaceId, Result};

use super::objects::{failed, list_all};
use super::{names, small};
use crate::contract::{KvObjects, ObjectVersion};

/// How many threads read entries at the start.
const READERS: usize = 16;

/// What an entry says of itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct EntryHead {
    #[serde(with = "super::hex")]
    incarnation: u128,
    version: u64,
    #[serde(default)]
    is_deleted: bool,
}

impl EntryHead {
    fn stamp(self) -> Stamp {
        Stamp {
            incarnation: Incarnation(self.incarnation),
            version: self.version,
        }
    }
}

/// An entry or a tombstone.
struct FoundEntry {
    head: EntryHead,
    bytes: Bytes,
    version: ObjectVersion,
}

/// The entries in an engine.
#[derive(Clone, Copy)]
pub(super) struct RegistryEntries<'a>(pub(super) &'a dyn KvObjects);

impl RegistryEntries<'_> {
    fn find(self, name: &str) -> Result<Option<FoundEntry>> {
        let found = self.0.get(name).map_err(failed("reading an entry"))?;
        let Some((bytes, version)) = found else {
            return Ok(None);
        };
        let (head, bytes) = small::decode(name, &bytes)?;
        Ok(Some(FoundEntry {
            head,
            bytes,
            version,
        }))
    }

    fn living(self, name: &str) -> Result<Option<FoundEntry>> {
        let found = self.find(name)?;
        Ok(found.filter(|found| !found.head.is_deleted))
    }

    /// Returns an entry, unless there is none or it was deleted.
    pub(super) fn read(self, name: &str) -> Result<Option<StoredEntry>> {
        let found = self.living(name)?;
        Ok(found.map(|found| StoredEntry {
            stamp: found.head.stamp(),
            bytes: found.bytes,
            place: name.into(),
        }))
    }

    /// Returns all entries by the names of their namespaces.
    pub(super) fn read_all(self) -> Result<Vec<(String, Result<StoredEntry>)>> {
        let listed = list_all(self.0, names::REGISTRY)?;
        let share = listed.len().div_ceil(READERS).max(1);
        let read = |share: &[String]| -> Vec<(String, Result<Option<StoredEntry>>)> {
            let read = |name: &String| (name.clone(), self.read(name));
            share.iter().map(read).collect()
        };
        let read = std::thread::scope(|scope| {
            let readers = listed
                .chunks(share)
                .map(|share| scope.spawn(|| read(share)));
            let readers: Vec<_> = readers.collect();
            let joined = readers.into_iter().map(|reader| reader.join());
            joined.collect::<Result<Vec<_>, _>>()
        });
        let read = read.map_err(|_| Error::Internal("reading entries panicked".to_owned()))?;
        let living = |(name, entry): (String, Result<Option<StoredEntry>>)| {
            let id = name.strip_prefix(names::REGISTRY)?.to_owned();
            Some((id, entry.transpose()?))
        };
        Ok(read.into_iter().flatten().filter_map(living).collect())
    }

    /// Makes the entry of a new namespace.
    pub(super) fn create(
        self,
        id: &NamespaceId,
        incarnation: Incarnation,
        bytes: &[u8],
    ) -> Result<Stamp> {
        let name = names::entry(id);
        let before = self.find(&name)?;
        let head = EntryHead {
            incarnation: incarnation.0,
            version: before.as_ref().map_or(1, |found| found.head.version + 1),
            is_deleted: false,
        };
        let bytes = small::encode(&head, bytes)?;
        let created = match before {
            None => self.0.create(&name, bytes),
            Some(found) if found.head.is_deleted => self.0.replace(&name, &found.version, bytes),
            Some(_) => Ok(None),
        };
        let created = created.map_err(failed("creating an entry"))?;
        created.ok_or_else(|| Error::NamespaceExists(id.to_string()))?;
        Ok(head.stamp())
    }

    /// Replaces an entry in this state.
    pub(super) fn replace(
        self,
        id: &NamespaceId,
        old: Stamp,
        bytes: &[u8],
    ) -> Result<Option<Stamp>> {
        let name = names::entry(id);
        let found = self.living(&name)?;
        let Some(found) = found.filter(|found| found.head.stamp() == old) else {
            return Ok(None);
        };
        let head = EntryHead {
            version: old.version + 1,
            ..found.head
        };
        let replaced = self
            .0
            .replace(&name, &found.version, small::encode(&head, bytes)?);
        let replaced = replaced.map_err(failed("replacing an entry"))?;
        Ok(replaced.map(|_| head.stamp()))
    }

    /// Puts a tombstone in the place of an entry.
    pub(super) fn bury(self, id: &NamespaceId, incarnation: Incarnation) -> Result<()> {
        let name = names::entry(id);
        loop {
            let found = self.living(&name)?;
            let is_it = |found: &FoundEntry| found.head.incarnation == incarnation.0;
            let Some(found) = found.filter(is_it) else {
                return Err(Error::NamespaceNotFound(id.to_string()));
            };
            let head = EntryHead {
                version: found.head.version + 1,
                is_deleted: true,
                ..found.head
            };
            let tombstone = small::encode(&head, b"")?;
            let buried = self.0.replace(&name, &found.version, tombstone);
            // If its description was changed meanwhile, it is deleted all the same.
            if buried.map_err(failed("deleting an entry"))?.is_some() {
                return Ok(());
            }
        }
    }

    /// Checks that a namespace is still the one that is meant.
    pub(super) fn check(self, id: &NamespaceId, incarnation: Incarnation) -> Result<()> {
        let found = self.living(&names::entry(id))?;
        match found.is_some_and(|found| found.head.incarnation == incarnation.0) {
            true => Ok(()),
            false => Err(Error::NamespaceNotFound(id.to_string())),
        }
    }
}
