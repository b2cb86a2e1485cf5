//! The registry's files: one per namespace, and a marker for each that is being deleted.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use trefoil_core::{Cause, Error, NamespaceId, Result};
use trefoil_storage::local::disk::RealDisk;
use trefoil_storage::local::files;

use super::{failed, read_if_there};

/// The directory of the registry. An id cannot begin with an underscore, so no namespace can have
/// this name, nor those of the two prefixes.
pub(super) const META: &str = "_meta";
const NEW_PREFIX: &str = "_new-";
const DELETED_PREFIX: &str = "_deleted-";
const SUFFIX: &str = ".json";

/// The files of a registry.
#[derive(Debug)]
pub(super) struct EntryFiles {
    meta: PathBuf,
}

impl EntryFiles {
    pub(super) fn new(data: &Path) -> Self {
        Self {
            meta: data.join(META),
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.meta
    }

    /// Returns where the entry of a namespace is.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.meta.join(format!("{name}{SUFFIX}"))
    }

    /// Returns the names of all entries.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let mut names = names_in(&self.meta)?;
        names.retain(|name| !name.starts_with(NEW_PREFIX) && !is_deleted(name));
        let entry = |name: String| name.strip_suffix(SUFFIX).map(str::to_owned);
        Ok(names.into_iter().filter_map(entry).collect())
    }

    pub(super) fn read(&self, name: &str) -> Result<Option<Bytes>> {
        read_if_there(&self.path(name))
    }

    /// Writes an entry: the old text stands or the new one, never a mixture.
    pub(super) fn write(&self, id: &NamespaceId, bytes: &[u8]) -> Result<()> {
        let temporary = self.meta.join(unique(NEW_PREFIX, id)?);
        files::write_unfinished(&RealDisk, &temporary, bytes)?;
        // If its removal fails too, the next start removes it.
        files::finish(&RealDisk, &temporary, &self.path(id.as_str()))
    }

    /// Makes an entry count no more, by renaming it to a name that is no id. Returns its new path.
    pub(super) fn mark_deleted(&self, id: &NamespaceId) -> Result<PathBuf> {
        let path = self.path(id.as_str());
        let marker = self.meta.join(name_of_deleted(id)?);
        fs::rename(&path, &marker).map_err(|error| failed("deleting", &path, &error))?;
        Ok(marker)
    }

    /// Returns the deletions that are not finished, by the markers that they left.
    pub(super) fn markers(&self) -> Result<Vec<(NamespaceId, PathBuf)>> {
        let marker = |name: String| {
            let (id, _) = name.strip_prefix(DELETED_PREFIX)?.rsplit_once('-')?;
            Some((NamespaceId::new(id).ok()?, self.meta.join(&name)))
        };
        let names = names_in(&self.meta)?;
        Ok(names.into_iter().filter_map(marker).collect())
    }

    /// Removes entries that were being written.
    pub(super) fn remove_unfinished(&self) -> Result<()> {
        let names = names_in(&self.meta)?.into_iter();
        let mut unfinished = names.filter(|name| name.starts_with(NEW_PREFIX));
        unfinished.try_for_each(|name| files::remove(&RealDisk, &self.meta.join(name)))
    }
}

/// Returns whether a file or directory of this name is what is left of a deleted namespace.
pub(super) fn is_deleted(name: &str) -> bool {
    name.starts_with(DELETED_PREFIX)
}

/// Returns a name for what is left of a namespace when it is deleted.
pub(super) fn name_of_deleted(id: &NamespaceId) -> Result<String> {
    unique(DELETED_PREFIX, id)
}

/// Returns a name that is no id and that nobody else uses.
fn unique(prefix: &str, id: &NamespaceId) -> Result<String> {
    let random = getrandom::u64()
        .map_err(|error| Error::failed("asking for random bytes", Cause::new(error)))?;
    Ok(format!("{prefix}{id}-{random:016x}"))
}

/// Returns the names in a directory. Those that are not UTF-8 are none of ours.
pub(super) fn names_in(directory: &Path) -> Result<Vec<String>> {
    let listing = |error: &std::io::Error| failed("listing", directory, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| listing(&error))? {
        let entry = entry.map_err(|error| listing(&error))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}
