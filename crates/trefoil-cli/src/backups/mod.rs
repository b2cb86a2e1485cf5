//! Repositories of backups: a place with parts, which say by their names what they hold, and with
//! documents, which say what a backup is made of.
//!
//! | name | what it is |
//! |---|---|
//! | `repository` | that this is one, of which format, and whether it is encrypted |
//! | `parts/ab/ab12…` | a part of a namespace, or the list of a namespace's parts, named by its hash |
//! | `backups/20261116T142600.5Z` | a backup: when it was made, and the lists of its namespaces |
//! | `unfinished/tenant-a` | how far the backup of a namespace has come |
//! | `archive/tenant-a/…` | the continuous archive of a namespace, see `archive/` |
//!
//! With a key everything but `repository` is encrypted, and what is a hash or a namespace in a name is a
//! keyed hash of that.
//!
//! Nothing is ever changed. A backup exists when its document does, and that is written last.

mod choice;
mod document;
mod sealing;
mod store;

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use trefoil::backup::{NamespaceBackup, PartReference, content_hash};

pub(crate) use choice::Candidates;
pub(crate) use document::{BackedUpNamespace, BackupDocument};
pub(crate) use store::{BackupStore, DirectoryStore, Use};

use crate::exit::NotFound;
use crate::places::HomePlace;
use sealing::Sealing;
use store::NOT_ITS_OWN;

const REPOSITORY: &str = "repository";
const PARTS: &str = "parts/";
const BACKUPS: &str = "backups/";
const UNFINISHED: &str = "unfinished/";
const FORMAT: u32 = 1;

/// What says that a place is a repository.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RepositoryFormat {
    format: u32,
    /// Which key it is encrypted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

/// A place with backups.
pub(crate) struct Repository {
    store: Box<dyn BackupStore>,
    place: String,
    sealing: Sealing,
}

impl Repository {
    /// Opens a repository for this use. It is made, if that is to add a backup and nothing is there.
    /// With the key in a file it is encrypted.
    pub(crate) fn open(
        place: &HomePlace,
        usage: Use,
        key_file: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let sealing = match key_file {
            Some(file) => Sealing::with_key_file(file)?,
            None => Sealing::default(),
        };
        let store: Box<dyn BackupStore> = match place {
            HomePlace::Directory(directory) => Box::new(DirectoryStore::open(directory, usage)?),
            HomePlace::Storage(place) => place.objects()?,
        };
        let repository = Self {
            store,
            place: place.to_string(),
            sealing,
        };
        repository.check_format(usage)?;
        Ok(repository)
    }

    fn check_format(&self, usage: Use) -> anyhow::Result<()> {
        let place = &self.place;
        let Some(found) = self.store.get(REPOSITORY)? else {
            if !usage.adds() {
                let text = format!("{place} is no repository of backups");
                return Err(NotFound(text).into());
            }
            if !self.store.list("")?.is_empty() {
                bail!("{place} {NOT_ITS_OWN}");
            }
            let format = RepositoryFormat {
                format: FORMAT,
                key: self.sealing.check(),
            };
            return self.store.create(REPOSITORY, &serde_json::to_vec(&format)?);
        };
        let format: RepositoryFormat = serde_json::from_slice(&found)
            .with_context(|| format!("{REPOSITORY} in {place} is damaged"))?;
        if format.format != FORMAT {
            let other = format.format;
            bail!("{place} has format {other}, this program knows {FORMAT}");
        }
        match (format.key, self.sealing.check()) {
            (found, given) if found == given => Ok(()),
            (None, _) => bail!("{place} is not encrypted: leave out --key-file"),
            (Some(_), None) => bail!("{place} is encrypted: name its key with --key-file"),
            (Some(_), Some(_)) => bail!("{place} is encrypted with another key"),
        }
    }

    /// Returns the names of all parts.
    pub(crate) fn parts(&self) -> anyhow::Result<HashSet<String>> {
        Ok(self.store.list(PARTS)?.into_iter().collect())
    }

    /// Returns the name of the part that has this hash.
    pub(crate) fn name_of(&self, hash: &str) -> String {
        let name = self.sealing.name(hash);
        let folder = name.get(..2).unwrap_or_default();
        format!("{PARTS}{folder}/{name}")
    }

    /// Adds a part. Returns how many bytes were written.
    pub(crate) fn add_part(&self, hash: &str, content: &[u8]) -> anyhow::Result<u64> {
        self.create(&self.name_of(hash), content)
    }

    /// Returns the content of a part, or names what is wrong with it.
    pub(crate) fn part(&self, hash: &str) -> anyhow::Result<Vec<u8>> {
        let name = self.name_of(hash);
        let Some(sealed) = self.store.get(&name)? else {
            bail!("{name} is missing in {}", self.place);
        };
        let content = self.sealing.open(&name, &sealed);
        match content.filter(|content| content_hash(content) == hash) {
            Some(content) => Ok(content),
            None => bail!("{name} in {} is damaged", self.place),
        }
    }

    /// Returns the content of a part, for the library.
    pub(crate) fn fetch(&self, part: &PartReference) -> trefoil::Result<Vec<u8>> {
        let content = self.part(&part.hash);
        content.map_err(|error| trefoil::Error::invalid(format!("{error:#}")))
    }

    pub(crate) fn remove_part(&self, name: &str) -> anyhow::Result<()> {
        self.store.delete(name)
    }

    /// Adds the list of a namespace's parts, which is a part itself, and returns its hash.
    pub(crate) fn add_list(&self, list: &NamespaceBackup) -> anyhow::Result<(String, u64)> {
        let content = serde_json::to_vec(list)?;
        let hash = content_hash(&content);
        let written = self.add_part(&hash, &content)?;
        Ok((hash, written))
    }

    /// Returns the list of a namespace's parts.
    pub(crate) fn list_of(&self, named: &BackedUpNamespace) -> anyhow::Result<NamespaceBackup> {
        let content = self.part(&named.list)?;
        let list: NamespaceBackup = serde_json::from_slice(&content)
            .with_context(|| format!("{} is no list of parts", self.name_of(&named.list)))?;
        Ok(list)
    }

    /// Returns all backups, oldest first.
    pub(crate) fn backups(&self) -> anyhow::Result<Vec<BackupDocument>> {
        let mut names = self.store.list(BACKUPS)?;
        names.sort();
        names.iter().map(|name| self.document(name)).collect()
    }

    /// Returns the backup of this id, or the newest one.
    pub(crate) fn backup(&self, id: Option<&str>) -> anyhow::Result<BackupDocument> {
        let mut names = self.store.list(BACKUPS)?;
        names.sort();
        let wanted = id.map(|id| format!("{BACKUPS}{id}"));
        let found = match &wanted {
            Some(wanted) => names.iter().find(|name| *name == wanted),
            None => names.last(),
        };
        match (found, id) {
            (Some(name), _) => self.document(name),
            (None, Some(id)) => {
                Err(NotFound(format!("{} has no backup '{id}'", self.place)).into())
            }
            (None, None) => Err(NotFound(format!("{} has no backup", self.place)).into()),
        }
    }

    /// Adds a backup: from now on it exists.
    pub(crate) fn add_backup(&self, document: &BackupDocument) -> anyhow::Result<()> {
        self.add_document(&format!("{BACKUPS}{}", document.id), document)
    }

    pub(crate) fn remove_backup(&self, id: &str) -> anyhow::Result<()> {
        self.store.delete(&format!("{BACKUPS}{id}"))
    }

    /// Returns a document.
    pub(crate) fn document<T: DeserializeOwned>(&self, name: &str) -> anyhow::Result<T> {
        let content = self.named(name)?;
        let document = serde_json::from_slice(&content);
        document.with_context(|| format!("{name} in {} is damaged", self.place))
    }

    /// Adds a document.
    pub(crate) fn add_document(&self, name: &str, document: &impl Serialize) -> anyhow::Result<()> {
        self.add_named(name, &serde_json::to_vec(document)?)
            .map(drop)
    }

    /// Returns what is kept under a name, or says what is wrong with it.
    pub(crate) fn named(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        let Some(sealed) = self.store.get(name)? else {
            bail!("{name} is missing in {}", self.place);
        };
        let checked = self.sealing.open(name, &sealed);
        let content = checked.and_then(unchecked);
        content.with_context(|| format!("{name} in {} is damaged", self.place))
    }

    /// Keeps something under a name, with its hash. Returns how many bytes that takes.
    pub(crate) fn add_named(&self, name: &str, content: &[u8]) -> anyhow::Result<u64> {
        self.create(name, &checked(content))
    }

    pub(crate) fn remove_named(&self, name: &str) -> anyhow::Result<()> {
        self.store.delete(name)
    }

    /// Removes what was not written to its end, below `prefix`, which ends with a `/`.
    pub(crate) fn remove_partial(&self, prefix: &str) -> anyhow::Result<()> {
        self.store.remove_partial(prefix)
    }

    /// Returns the names that begin with `prefix`, which ends with a `/`.
    pub(crate) fn names(&self, prefix: &str) -> anyhow::Result<Vec<String>> {
        self.store.list(prefix)
    }

    /// Returns what stands for the name of a namespace in the names of pieces.
    pub(crate) fn shown_name(&self, namespace: &str) -> String {
        self.sealing.name(namespace)
    }

    /// Returns how far the backup of a namespace had come that was cut off. What cannot be read is no
    /// reason to fail: it only says what need not be done again.
    pub(crate) fn unfinished(&self, namespace: &str) -> Option<NamespaceBackup> {
        self.document(&self.note_of(namespace)).ok()
    }

    /// Returns the same for all namespaces.
    pub(crate) fn all_unfinished(&self) -> anyhow::Result<Vec<NamespaceBackup>> {
        let names = self.store.list(UNFINISHED)?;
        Ok(names
            .iter()
            .filter_map(|name| self.document(name).ok())
            .collect())
    }

    pub(crate) fn note_unfinished(&self, list: &NamespaceBackup) -> anyhow::Result<()> {
        self.forget_unfinished(&list.namespace)?;
        self.add_document(&self.note_of(&list.namespace), list)
    }

    pub(crate) fn forget_unfinished(&self, namespace: &str) -> anyhow::Result<()> {
        self.store.delete(&self.note_of(namespace))
    }

    fn note_of(&self, namespace: &str) -> String {
        format!("{UNFINISHED}{}", self.shown_name(namespace))
    }

    /// Creates a piece. Returns how many bytes it takes.
    fn create(&self, name: &str, content: &[u8]) -> anyhow::Result<u64> {
        let sealed = self.sealing.seal(name, content)?;
        self.store.create(name, &sealed)?;
        Ok(sealed.len() as u64)
    }
}

impl std::fmt::Display for Repository {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.place)
    }
}

/// Something with its hash before it.
fn checked(content: &[u8]) -> Vec<u8> {
    [content_hash(content).as_bytes(), b"\n", content].concat()
}

/// What follows the hash, if it is what that says.
fn unchecked(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let content = bytes.split_off(end + 1);
    (content_hash(&content).as_bytes() == &bytes[..end]).then_some(content)
}
