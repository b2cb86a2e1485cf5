//! A home in a directory of this machine.
//!
//! ```text
//! data/_meta/LOCK         held while a process has the directory open
//! data/_meta/<id>.json    the registry: one small file per namespace
//! data/_meta/audit-*.log  the audit log
//! data/<id>/              a namespace: see `claim`
//! ```
//!
//! A namespace exists if and only if its registry file does: renaming that file into place creates
//! it, renaming it away deletes it.

mod audit;
mod claim;
mod due;
mod entries;
mod generations;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use trefoil_core::{Error, NamespaceId, Result};
use trefoil_storage::LocalOptions;
use trefoil_storage::local::disk::RealDisk;
use trefoil_storage::local::{DirectoryLock, files, private};
use xxhash_rust::xxh3::xxh3_64;

use super::{Claim, Erasure, Home, Incarnation, Stamp, StoredEntry};
use audit::AuditFiles;
use claim::LocalClaim;
use entries::EntryFiles;

/// A locked data directory.
#[derive(Debug)]
pub struct LocalHome {
    data: PathBuf,
    entries: EntryFiles,
    audit: AuditFiles,
    /// How storages are opened, but for the memory for their caches.
    options: LocalOptions,
    lock: Mutex<Option<DirectoryLock>>,
    /// Held while the registry is changed.
    incarnations: Mutex<Incarnations>,
}

/// The incarnations of the namespaces that there are. Only one process has the directory, so they
/// need not outlive it.
#[derive(Debug, Default)]
struct Incarnations {
    by_name: HashMap<String, Incarnation>,
    last: u128,
}

impl Incarnations {
    /// Returns the incarnation of a namespace that exists.
    fn of(&mut self, name: &str) -> Incarnation {
        if let Some(incarnation) = self.by_name.get(name) {
            return *incarnation;
        }
        self.last += 1;
        let incarnation = Incarnation(self.last);
        self.by_name.insert(name.to_owned(), incarnation);
        incarnation
    }

    fn check(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<()> {
        match self.by_name.get(id.as_str()) {
            Some(current) if *current == incarnation => Ok(()),
            _ => Err(Error::NamespaceNotFound(id.to_string())),
        }
    }
}

impl LocalHome {
    /// Opens a data directory, creating it if it is not there, and locks it: a second process gets
    /// [`Error::Locked`]. Finishes what an interrupted process began.
    pub fn open(directory: impl AsRef<Path>, options: LocalOptions) -> Result<Self> {
        let data = directory.as_ref();
        let meta = data.join(entries::META);
        private::create_dir(&meta).map_err(|error| failed("creating", &meta, &error))?;
        warn_if_open(data);
        files::sync_dir(&RealDisk, data)?;
        let home = Self::lock(data, options)?;
        home.finish_deletions()?;
        Ok(home)
    }

    /// Locks a data directory and changes nothing in it; `None` if it is not one.
    pub fn open_existing(directory: impl AsRef<Path>) -> Result<Option<Self>> {
        let data = directory.as_ref();
        match data.join(entries::META).is_dir() {
            true => Self::lock(data, LocalOptions::default()).map(Some),
            false => Ok(None),
        }
    }

    /// Claims the namespace in `directory`, which belongs to no registry, and makes the directory if
    /// it is not there.
    pub fn claim_directory(
        directory: impl AsRef<Path>,
        options: LocalOptions,
    ) -> Result<Arc<dyn Claim>> {
        LocalClaim::take(directory.as_ref().to_owned(), options, false)
    }

    /// Claims the namespace in `directory`, whose server is stopped. It must be there.
    pub fn claim_existing(directory: impl AsRef<Path>) -> Result<Arc<dyn Claim>> {
        let directory = directory.as_ref();
        if !generations::has_current(directory) {
            let shown = directory.display();
            return Err(Error::invalid(format!("{shown} is not a database")));
        }
        Self::claim_directory(directory, LocalOptions::default())
    }

    /// Returns the directories of the namespaces in `directory`, by name: of one namespace, or all
    /// of a data directory. `None` if it is neither.
    pub fn find_namespaces(directory: impl AsRef<Path>) -> Result<Option<Vec<PathBuf>>> {
        let directory = directory.as_ref();
        if generations::has_current(directory) {
            return Ok(Some(vec![directory.to_owned()]));
        }
        let names = entries::names_in(directory)?;
        let is_data = names.iter().any(|name| name == entries::META);
        let mut found: Vec<PathBuf> = names.iter().map(|name| directory.join(name)).collect();
        found.retain(|path| generations::has_current(path));
        found.sort();
        Ok((is_data || !found.is_empty()).then_some(found))
    }

    /// Returns the directory of the registry.
    pub fn registry(&self) -> &Path {
        self.entries.directory()
    }

    fn lock(data: &Path, options: LocalOptions) -> Result<Self> {
        let entries = EntryFiles::new(data);
        let lock = DirectoryLock::take(entries.directory()).map_err(|error| match error {
            Error::Locked { .. } => Error::Locked {
                path: data.to_owned(),
            },
            other => other,
        })?;
        Ok(Self {
            data: data.to_owned(),
            audit: AuditFiles::new(entries.directory()),
            entries,
            options,
            lock: Mutex::new(Some(lock)),
            incarnations: Mutex::default(),
        })
    }

    fn directory(&self, id: &NamespaceId) -> PathBuf {
        self.data.join(id.as_str())
    }

    /// Removes what is left of deleted namespaces; leaves alone what it does not know.
    fn finish_deletions(&self) -> Result<()> {
        self.entries.remove_unfinished()?;
        let names = self.entries.names()?;
        for (id, marker) in self.entries.markers()? {
            tracing::info!(namespace = %id, "removing the rest of a deleted namespace");
            // With a registry file, the namespace was created anew, which is possible only after its
            // old data had gone.
            if !names.iter().any(|name| name == id.as_str()) {
                remove_directory(&self.directory(&id))?;
            }
            files::remove(&RealDisk, &marker)?;
        }
        for name in entries::names_in(&self.data)? {
            let path = self.data.join(&name);
            if entries::is_deleted(&name) {
                remove_directory(&path)?;
            } else if name != entries::META && !names.contains(&name) {
                tracing::warn!(path = %path.display(), "is no namespace of the registry, left alone");
            }
        }
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<StoredEntry>> {
        let mut incarnations = self.incarnations.lock();
        let bytes = self.entries.read(name)?;
        Ok(bytes.map(|bytes| StoredEntry {
            stamp: stamp(incarnations.of(name), &bytes),
            place: self.entries.path(name),
            bytes,
        }))
    }
}

impl Home for LocalHome {
    fn entries(&self) -> Result<Vec<(String, Result<StoredEntry>)>> {
        let mut names = self.entries.names()?;
        names.sort();
        let read = |name: String| {
            let entry = self.read(&name).transpose()?;
            Some((name, entry))
        };
        Ok(names.into_iter().filter_map(read).collect())
    }

    fn entry(&self, id: &NamespaceId) -> Result<Option<StoredEntry>> {
        self.read(id.as_str())
    }

    fn create(&self, id: &NamespaceId, bytes: &[u8]) -> Result<Stamp> {
        let mut incarnations = self.incarnations.lock();
        // Two ids may be one file name where case does not count.
        if self.entries.path(id.as_str()).exists() {
            return Err(Error::NamespaceExists(id.to_string()));
        }
        let directory = self.directory(id);
        if directory.exists() {
            return Err(Error::invalid(format!(
                "{} exists but is no namespace of the registry: move it away first",
                directory.display()
            )));
        }
        self.entries.write(id, bytes)?;
        incarnations.by_name.remove(id.as_str());
        Ok(stamp(incarnations.of(id.as_str()), bytes))
    }

    fn replace(&self, id: &NamespaceId, old: Stamp, bytes: &[u8]) -> Result<Option<Stamp>> {
        let mut incarnations = self.incarnations.lock();
        let incarnation = incarnations.of(id.as_str());
        let found = self.entries.read(id.as_str())?;
        if found.is_none_or(|found| stamp(incarnation, &found) != old) {
            return Ok(None);
        }
        self.entries.write(id, bytes)?;
        Ok(Some(stamp(incarnation, bytes)))
    }

    fn delete(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<Erasure> {
        let mut incarnations = self.incarnations.lock();
        incarnations.check(id, incarnation)?;
        let marker = self.entries.mark_deleted(id)?;
        // From here on it is deleted, whatever else fails.
        incarnations.by_name.remove(id.as_str());
        files::sync_dir(&RealDisk, self.entries.directory())?;
        let directory = self.directory(id);
        let away = self.data.join(entries::name_of_deleted(id)?);
        if directory.exists() {
            fs::rename(&directory, &away)
                .map_err(|error| failed("deleting", &directory, &error))?;
            files::sync_dir(&RealDisk, &self.data)?;
        }
        Ok(Box::new(move || {
            remove_directory(&away)?;
            // The marker goes last, so that an interrupted removal is taken up at the next start.
            files::remove(&RealDisk, &marker)
        }))
    }

    fn claim(
        &self,
        id: &NamespaceId,
        incarnation: Incarnation,
        must_exist: bool,
    ) -> Result<Arc<dyn Claim>> {
        self.incarnations.lock().check(id, incarnation)?;
        LocalClaim::take(self.directory(id), self.options.clone(), must_exist)
    }

    fn has_storage(&self, id: &NamespaceId) -> Result<bool> {
        generations::exist(&self.directory(id))
    }

    fn due_times(&self) -> Result<Vec<(NamespaceId, u64)>> {
        let names = self.entries.names()?;
        let due = |name: String| {
            let id = NamespaceId::new(&name).ok()?;
            let due = due::read(&self.directory(&id))?;
            Some((id, due))
        };
        Ok(names.into_iter().filter_map(due).collect())
    }

    fn append_audit(&self, record: &str) -> Result<u64> {
        self.audit.append(record)
    }

    fn read_audit(&self, before: u64, limit: usize) -> Result<Vec<(u64, String)>> {
        self.audit.read(before, limit)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        let free = private::free_bytes(&self.data);
        free.map(Some)
            .map_err(|error| failed("measuring", &self.data, &error))
    }

    fn close(&self) -> Result<()> {
        self.lock.lock().take();
        Ok(())
    }
}

fn stamp(incarnation: Incarnation, bytes: &[u8]) -> Stamp {
    Stamp {
        incarnation,
        version: xxh3_64(bytes),
    }
}

/// Directories from before were open to others, and stay so until their modes are changed.
fn warn_if_open(data: &Path) {
    if private::is_open_to_others(data) {
        let data = data.display();
        tracing::warn!(
            "other users can read the data directory; to prevent that, run: chmod -R go-rwx {data}"
        );
    }
}

fn remove_directory(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(failed("removing", path, &error))
        }
        _ => Ok(()),
    }
}

fn failed(verb: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("{verb} {}", path.display()), error)
}

/// Reads a file; `None` if it is not there.
fn read_if_there(path: &Path) -> Result<Option<Bytes>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes.into())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("reading", path, &error)),
    }
}
