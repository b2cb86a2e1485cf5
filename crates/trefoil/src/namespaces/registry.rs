//! Which namespaces exist: a map in memory and, unless it is a registry for tests, files behind it.

use std::path::{Path, PathBuf};

use parking_lot::{Mutex, RwLock};
use trefoil_core::{Error, NamespaceId, Result};

use super::entry::{NamespaceEntry, Record, TokenHash};
use super::files::{Files, Records, Remains};

#[derive(Debug)]
pub(super) struct Registry {
    records: RwLock<Records>,
    /// One change at a time; readers of the map do not wait for the disk.
    change: Mutex<()>,
    files: Option<Files>,
}

impl Registry {
    pub(super) fn open(data: &Path) -> Result<Self> {
        let files = Files::open(data)?;
        let records = files.load()?;
        Ok(Self {
            records: RwLock::new(records),
            change: Mutex::default(),
            files: Some(files),
        })
    }

    pub(super) fn in_memory() -> Self {
        Self {
            records: RwLock::default(),
            change: Mutex::default(),
            files: None,
        }
    }

    pub(super) fn is_durable(&self) -> bool {
        self.files.is_some()
    }

    pub(super) fn unlock(&self) -> Result<()> {
        self.files.as_ref().map_or(Ok(()), Files::unlock)
    }

    /// Where the namespace's database lives; `None` in memory.
    pub(super) fn directory(&self, id: &NamespaceId) -> Option<PathBuf> {
        self.files.as_ref().map(|files| files.directory(id))
    }

    pub(super) fn get(&self, id: &str) -> Result<Record> {
        let record = self.records.read().get(id).cloned();
        record.ok_or_else(|| Error::NamespaceNotFound(id.to_owned()))
    }

    pub(super) fn list(&self) -> Vec<NamespaceEntry> {
        let records = self.records.read();
        records
            .values()
            .map(|record| record.entry.clone())
            .collect()
    }

    /// The shares of all namespaces beyond the one that each of them has.
    pub(super) fn extra_shares(&self) -> u64 {
        let records = self.records.read();
        records
            .values()
            .map(|record| u64::from(record.entry.settings.cache_share) - 1)
            .sum()
    }

    pub(super) fn insert(&self, record: Record, count_max: usize) -> Result<()> {
        let _change = self.change.lock();
        let id = record.entry.id.to_string();
        let count = self.records.read().len();
        if self.records.read().contains_key(&id) {
            return Err(Error::NamespaceExists(id));
        }
        if count >= count_max {
            return Err(Error::over_limit(
                "number of namespaces",
                count + 1,
                count_max,
            ));
        }
        if let Some(files) = &self.files {
            files.create(&record)?;
        }
        self.records.write().insert(id, record);
        Ok(())
    }

    /// Remembers that the namespace's database has been made: from now on it must be there.
    pub(super) fn note_made(&self, id: &NamespaceId) -> Result<()> {
        let _change = self.change.lock();
        let mut record = self.get(id.as_str())?;
        let Some(files) = self.files.as_ref().filter(|_| !record.is_made) else {
            return Ok(());
        };
        record.is_made = true;
        files.replace(&record)?;
        self.records.write().insert(id.to_string(), record);
        Ok(())
    }

    /// Makes `hash` the one of the namespace's token.
    pub(super) fn replace_token(&self, id: &NamespaceId, hash: TokenHash) -> Result<()> {
        let _change = self.change.lock();
        let mut record = self.get(id.as_str())?;
        record.token_hash = hash;
        if let Some(files) = &self.files {
            files.replace(&record)?;
        }
        self.records.write().insert(id.to_string(), record);
        Ok(())
    }

    pub(super) fn remove(&self, id: &NamespaceId) -> Result<Remains> {
        let _change = self.change.lock();
        self.get(id.as_str())?;
        let Some(files) = &self.files else {
            self.records.write().remove(id.as_str());
            return Ok(Remains::default());
        };
        let remains = files.begin_deletion(id)?;
        // From here on it is deleted, whatever else fails.
        self.records.write().remove(id.as_str());
        files.move_away(id, remains)
    }
}
