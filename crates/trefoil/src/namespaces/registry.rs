//! Which namespaces exist: a map in memory and, unless it is a registry for tests, files behind it.

use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};
use trefoil_core::{Error, NamespaceId, Result};

use super::entry::{NamespaceEntry, Record, TokenHash};
use super::files::{Files, Records, Remains};

#[derive(Debug)]
pub(super) struct Registry {
    records: RwLock<Records>,
    /// The namespace of each token, for tokens that do not name it. Whether it still is the token of
    /// that namespace, its record says.
    by_token: RwLock<HashMap<TokenHash, String>>,
    /// One change at a time; readers of the map do not wait for the disk.
    change: Mutex<()>,
    files: Option<Files>,
}

impl Registry {
    pub(super) fn open(data: &Path) -> Result<Self> {
        let files = Files::open(data)?;
        let records = files.load()?;
        let by_token = { records.iter() }.map(|(id, record)| (record.token_hash, id.clone()));
        Ok(Self {
            by_token: RwLock::new(by_token.collect()),
            records: RwLock::new(records),
            change: Mutex::default(),
            files: Some(files),
        })
    }

    pub(super) fn in_memory() -> Self {
        Self {
            records: RwLock::default(),
            by_token: RwLock::default(),
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

    /// How many bytes may still be written; `None` in memory.
    pub(super) fn free_bytes(&self) -> Result<Option<u64>> {
        self.files.as_ref().map(Files::free_bytes).transpose()
    }

    /// Where the namespace's database lives; `None` in memory.
    pub(super) fn directory(&self, id: &NamespaceId) -> Option<PathBuf> {
        self.files.as_ref().map(|files| files.directory(id))
    }

    pub(super) fn get(&self, id: &str) -> Result<Record> {
        let record = self.records.read().get(id).cloned();
        record.ok_or_else(|| Error::NamespaceNotFound(id.to_owned()))
    }

    /// The namespace that has a token of this hash.
    pub(super) fn with_token(&self, token: &TokenHash) -> Option<Record> {
        let id = self.by_token.read().get(token).cloned()?;
        let record = self.get(&id).ok()?;
        record.token_hash.matches(token).then_some(record)
    }

    fn check_unused(&self, token: &TokenHash) -> Result<()> {
        match self.with_token(token) {
            Some(_) => {
                let text = "the given token is in use by another namespace";
                Err(Error::invalid(text))
            }
            None => Ok(()),
        }
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
        self.check_unused(&record.token_hash)?;
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
        self.by_token.write().insert(record.token_hash, id.clone());
        self.records.write().insert(id, record);
        Ok(())
    }

    /// Whether nothing has been made of the namespace but its registry file.
    pub(super) fn is_unused(&self, id: &NamespaceId) -> Result<bool> {
        let is_made = self.get(id.as_str())?.is_made;
        let directory = self.directory(id);
        Ok(!is_made && directory.is_some_and(|directory| !directory.exists()))
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
        if !record.token_hash.matches(&hash) {
            self.check_unused(&hash)?;
        }
        let old = std::mem::replace(&mut record.token_hash, hash);
        if let Some(files) = &self.files {
            files.replace(&record)?;
        }
        let mut by_token = self.by_token.write();
        by_token.remove(&old);
        by_token.insert(hash, id.to_string());
        drop(by_token);
        self.records.write().insert(id.to_string(), record);
        Ok(())
    }

    pub(super) fn remove(&self, id: &NamespaceId) -> Result<Remains> {
        let _change = self.change.lock();
        let token_hash = self.get(id.as_str())?.token_hash;
        self.by_token.write().remove(&token_hash);
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
