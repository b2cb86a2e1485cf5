//! Which namespaces exist: a map in memory, and the entries of the home behind it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};
use trefoil_core::{Damage, Error, NamespaceId, Result, Timestamp};

use super::entry::{NamespaceEntry, RegistryRecord};
use super::grant::{Grant, TokenReview};
use super::quota::QuotaKeeper;
use super::token::{TokenHash, TokenRecord};
use crate::home::{Claim, Erasure, Home, Stamp, StoredEntry};

/// Is told when tokens of a namespace may have changed. It does not wait.
pub(super) type TokenListener = Box<dyn Fn(&TokenReview<'_>) + Send + Sync>;

pub(super) struct Registry {
    pub(super) home: Arc<dyn Home>,
    namespaces: RwLock<BTreeMap<String, Registered>>,
    /// The entries that cannot be read, by name. Their namespaces are not served, all others are.
    damaged: RwLock<BTreeMap<String, Error>>,
    /// What each token grants.
    by_token: RwLock<HashMap<TokenHash, Arc<Grant>>>,
    listener: OnceLock<TokenListener>,
    /// One change at a time; readers of the map do not wait for the home.
    change: Mutex<()>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Registry")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

/// A namespace that exists.
#[derive(Debug, Clone)]
struct Registered {
    record: RegistryRecord,
    stamp: Stamp,
    quota_keeper: Arc<QuotaKeeper>,
}

impl Registered {
    fn new(record: RegistryRecord, stamp: Stamp) -> Self {
        Self {
            record,
            stamp,
            quota_keeper: Arc::default(),
        }
    }

    fn read(name: &str, entry: &StoredEntry) -> Result<Self> {
        Ok(Self::new(read_entry(name, entry)?, entry.stamp))
    }
}

impl Registry {
    pub(super) fn open(home: Arc<dyn Home>) -> Result<Self> {
        let registry = Self {
            home,
            namespaces: RwLock::default(),
            damaged: RwLock::default(),
            by_token: RwLock::default(),
            listener: OnceLock::new(),
            change: Mutex::default(),
        };
        for (name, entry) in registry.home.entries()? {
            match entry.and_then(|entry| Registered::read(&name, &entry)) {
                Ok(registered) => registry.put(&name, registered),
                Err(error) => {
                    tracing::error!(namespace = %name, %error, "is not served");
                    registry.damaged.write().insert(name, error);
                }
            }
        }
        Ok(registry)
    }

    pub(super) fn get(&self, id: &str) -> Result<RegistryRecord> {
        self.registered(id).map(|registered| registered.record)
    }

    fn registered(&self, id: &str) -> Result<Registered> {
        let found = self.namespaces.read().get(id).cloned();
        found.ok_or_else(|| {
            let damaged = self.damaged.read().get(id).cloned();
            damaged.unwrap_or_else(|| Error::NamespaceNotFound(id.to_owned()))
        })
    }

    /// Returns the namespaces whose entries cannot be read, and why.
    pub(super) fn damaged(&self) -> Vec<(NamespaceId, Error)> {
        let damaged = self.damaged.read();
        let found = damaged.iter();
        found
            .filter_map(|(name, error)| Some((NamespaceId::new(name).ok()?, error.clone())))
            .collect()
    }

    /// Reads the entry of a namespace again, if it could not be read.
    pub(super) fn read_damaged(&self, id: &str) -> Result<()> {
        if !self.damaged.read().contains_key(id) {
            return Ok(());
        }
        let _change = self.change.lock();
        self.refresh(&NamespaceId::new(id)?)
    }

    /// Returns an error if another process should open a namespace.
    pub(super) fn check_here(&self, id: &NamespaceId) -> Result<()> {
        let incarnation = self.registered(id.as_str())?.stamp.incarnation;
        self.home.check_here(id, incarnation)
    }

    /// Claims a namespace.
    pub(super) fn claim(&self, id: &NamespaceId) -> Result<Arc<dyn Claim>> {
        let Registered { record, stamp, .. } = self.registered(id.as_str())?;
        self.home.claim(id, stamp.incarnation, record.is_made)
    }

    /// Returns what the token of this hash grants.
    pub(super) fn grant(&self, token: &TokenHash) -> Option<Arc<Grant>> {
        self.by_token.read().get(token).cloned()
    }

    /// Returns what is granted where no token is needed.
    pub(super) fn open_grant(&self, id: &NamespaceId) -> Arc<Grant> {
        let registered = self.registered(id.as_str()).ok();
        let incarnation = registered.map(|registered| registered.stamp.incarnation);
        Arc::new(Grant::open(id, incarnation))
    }

    /// Returns until when a grant of before counts; `None` if it does not any more.
    pub(super) fn still_granted(&self, grant: &Grant) -> Option<Timestamp> {
        let Some(hash) = &grant.hash else {
            let now = self.registered(grant.namespace().as_str()).ok();
            let now = now.map(|registered| registered.stamp.incarnation);
            let is_same = grant.incarnation.is_none() || grant.incarnation == now;
            return is_same.then(|| grant.until());
        };
        let now = self.grant(hash)?;
        let is_same = now.incarnation == grant.incarnation && now.token() == grant.token();
        is_same.then(|| now.until())
    }

    /// Has somebody told when tokens may have changed. Only the first call counts.
    pub(super) fn listen(&self, listener: TokenListener) {
        // The first one stays.
        let _ = self.listener.set(listener);
    }

    fn tell(&self, id: &str) {
        if let (Some(listener), Ok(namespace)) = (self.listener.get(), NamespaceId::new(id)) {
            listener(&TokenReview {
                namespace: &namespace,
                registry: self,
            });
        }
    }

    /// Returns what keeps a namespace to its quotas.
    pub(super) fn quota_keeper(&self, id: &NamespaceId) -> Option<Arc<QuotaKeeper>> {
        let namespaces = self.namespaces.read();
        let found = namespaces.get(id.as_str());
        found.map(|found| Arc::clone(&found.quota_keeper))
    }

    /// Returns those of which there is something to tell, by namespace.
    pub(super) fn quota_keepers(&self) -> Vec<(NamespaceId, Arc<QuotaKeeper>)> {
        let namespaces = self.namespaces.read();
        let found = namespaces
            .values()
            .filter(|found| found.quota_keeper.is_of_interest());
        let of = |found: &Registered| {
            let id = found.record.entry.id.clone();
            (id, Arc::clone(&found.quota_keeper))
        };
        found.map(of).collect()
    }

    /// Refuses a token that opens a namespace already.
    pub(super) fn check_unused(&self, token: &TokenHash, id: &NamespaceId) -> Result<()> {
        match self.grant(token) {
            Some(grant) if grant.namespace() == id => {
                Err(Error::invalid("the given token is in use already"))
            }
            Some(_) => {
                let text = "the given token is in use by another namespace";
                Err(Error::invalid(text))
            }
            None => Ok(()),
        }
    }

    pub(super) fn list(&self) -> Vec<NamespaceEntry> {
        let namespaces = self.namespaces.read();
        let entry = |registered: &Registered| registered.record.entry.clone();
        namespaces.values().map(entry).collect()
    }

    pub(super) fn insert(&self, record: RegistryRecord, count_max: usize) -> Result<()> {
        let _change = self.change.lock();
        let id = record.entry.id.clone();
        let count = self.namespaces.read().len();
        match self.registered(id.as_str()) {
            Ok(_) => return Err(Error::NamespaceExists(id.to_string())),
            Err(Error::NamespaceNotFound(_)) => {}
            Err(damaged) => return Err(damaged),
        }
        for hash in record.tokens.iter().flat_map(TokenRecord::hashes) {
            self.check_unused(&hash, &id)?;
        }
        if count >= count_max {
            let what = "number of namespaces";
            return Err(Error::over_limit(what, count + 1, count_max));
        }
        let created = self.home.create(&id, &encode(&record)?);
        let stamp = created.inspect_err(|_| self.look_again(&id))?;
        self.put(id.as_str(), Registered::new(record, stamp));
        Ok(())
    }

    /// Returns whether nothing has been made of the namespace but its entry.
    pub(super) fn is_unused(&self, id: &NamespaceId) -> Result<bool> {
        Ok(!self.get(id.as_str())?.is_made && !self.home.has_storage(id)?)
    }

    /// Remembers that the namespace's database has been made: from now on it must be there.
    pub(super) fn note_made(&self, id: &NamespaceId) -> Result<()> {
        if self.get(id.as_str())?.is_made {
            return Ok(());
        }
        self.change(id, |record| {
            record.is_made = true;
            Ok(())
        })
    }

    /// Changes what is known of a namespace; again, if somebody else has done so meanwhile.
    pub(super) fn change(
        &self,
        id: &NamespaceId,
        change: impl Fn(&mut RegistryRecord) -> Result<()>,
    ) -> Result<()> {
        let _change = self.change.lock();
        loop {
            let Registered {
                mut record, stamp, ..
            } = self.registered(id.as_str())?;
            change(&mut record)?;
            let replaced = self.home.replace(id, stamp, &encode(&record)?);
            match replaced.inspect_err(|_| self.look_again(id))? {
                Some(stamp) => {
                    self.put(id.as_str(), Registered::new(record, stamp));
                    return Ok(());
                }
                None => self.refresh(id)?,
            }
        }
    }

    pub(super) fn remove(&self, id: &NamespaceId) -> Result<Erasure> {
        let _change = self.change.lock();
        let incarnation = self.registered(id.as_str())?.stamp.incarnation;
        let deleted = self.home.delete(id, incarnation);
        let erase = deleted.inspect_err(|_| self.look_again(id))?;
        self.forget(id.as_str());
        Ok(erase)
    }

    /// Reads entries again that others have changed. Returns the namespaces of before that do not exist
    /// any more.
    pub(super) fn read_again(&self, ids: &[NamespaceId]) -> Result<Vec<NamespaceId>> {
        let mut gone = Vec::new();
        for id in ids {
            let _change = self.change.lock();
            let before = self.registered(id.as_str()).ok();
            self.refresh(id)?;
            let now = self.registered(id.as_str()).ok();
            let incarnation = |registered: Registered| registered.stamp.incarnation;
            if before.is_some() && before.map(incarnation) != now.map(incarnation) {
                gone.push(id.clone());
            }
        }
        Ok(gone)
    }

    /// The same for all that there are and were.
    pub(super) fn read_all_again(&self) -> Result<Vec<NamespaceId>> {
        let stored = self.home.entries()?.into_iter().map(|(name, _)| name);
        let known: Vec<String> = self.namespaces.read().keys().cloned().collect();
        let names: std::collections::BTreeSet<String> = stored.chain(known).collect();
        let ids: Result<Vec<NamespaceId>> =
            names.iter().map(|name| NamespaceId::new(name)).collect();
        self.read_again(&ids?)
    }

    /// Reads the entry of a namespace again, after an error that left it unknown what counts.
    fn look_again(&self, id: &NamespaceId) {
        if let Err(error) = self.refresh(id) {
            tracing::warn!(namespace = %id, %error, "cannot read the entry of the registry again");
        }
    }

    fn refresh(&self, id: &NamespaceId) -> Result<()> {
        match self.home.entry(id)? {
            Some(entry) => self.put(id.as_str(), Registered::read(id.as_str(), &entry)?),
            None => self.forget(id.as_str()),
        }
        Ok(())
    }

    fn put(&self, id: &str, mut registered: Registered) {
        if let Some(before) = self.namespaces.read().get(id) {
            registered.quota_keeper = Arc::clone(&before.quota_keeper);
        }
        let Registered { record, stamp, .. } = &registered;
        registered.quota_keeper.set(record.entry.settings.quotas);
        let namespace = &record.entry.id;
        let grants = record.tokens.iter().flat_map(|token| {
            let grant = |hash| {
                (
                    hash,
                    Grant::of_token(namespace, stamp.incarnation, token, hash),
                )
            };
            token.hashes().map(grant)
        });
        let grants: Vec<(TokenHash, Grant)> = grants.collect();
        let mut by_token = self.by_token.write();
        let is_of_it = |grant: &Grant| grant.namespace() == namespace;
        let before = self.namespaces.read().get(id).map(hashes);
        let mut used_before = Vec::new();
        for hash in before.unwrap_or_default() {
            if by_token.get(&hash).is_some_and(|grant| is_of_it(grant)) {
                used_before.extend(by_token.remove(&hash).map(|grant| (hash, grant)));
            }
        }
        for (hash, grant) in grants {
            if let Some((_, before)) = used_before.iter().find(|(before, _)| *before == hash) {
                grant.note_uses_of(before);
            }
            by_token.insert(hash, Arc::new(grant));
        }
        drop(by_token);
        self.namespaces.write().insert(id.to_owned(), registered);
        self.damaged.write().remove(id);
        self.tell(id);
    }

    fn forget(&self, id: &str) {
        let forgotten = self.namespaces.write().remove(id);
        let mut by_token = self.by_token.write();
        for hash in forgotten.as_ref().map(hashes).unwrap_or_default() {
            by_token.remove(&hash);
        }
        drop(by_token);
        self.damaged.write().remove(id);
        self.tell(id);
    }

    /// Returns what is granted by the tokens of a namespace.
    pub(super) fn grants(&self, record: &RegistryRecord) -> Vec<Arc<Grant>> {
        let hashes = record.tokens.iter().flat_map(TokenRecord::hashes);
        hashes.filter_map(|hash| self.grant(&hash)).collect()
    }
}

/// The hashes of all tokens of a namespace.
fn hashes(registered: &Registered) -> Vec<TokenHash> {
    let tokens = registered.record.tokens.iter();
    tokens.flat_map(TokenRecord::hashes).collect()
}

pub(super) fn encode(record: &RegistryRecord) -> Result<Vec<u8>> {
    record.encode().map_err(Error::invalid)
}

/// Reads the entry of the namespace `name`.
pub(super) fn read_entry(name: &str, entry: &StoredEntry) -> Result<RegistryRecord> {
    let record =
        RegistryRecord::decode(&entry.bytes).map_err(|what| damaged(&entry.place, &what))?;
    match record.entry.id.as_str() == name {
        true => Ok(record),
        false => {
            let what = format!("it holds namespace '{}'", record.entry.id);
            Err(damaged(&entry.place, &what))
        }
    }
}

/// Returns whether the entry of a namespace says that it has been used.
pub(crate) fn is_made(id: &NamespaceId, entry: &StoredEntry) -> Result<bool> {
    Ok(read_entry(id.as_str(), entry)?.is_made)
}

fn damaged(place: &Path, what: &str) -> Error {
    Error::Damaged(Box::new(Damage {
        file: place.to_owned(),
        offset: 0,
        position: 0,
        what: format!("namespace entry ({what})"),
        help: "restore this file from a backup, or move it away to do without the namespace".into(),
    }))
}
