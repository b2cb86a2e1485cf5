//! Archiving the entries of the registry: descriptions, settings and hashes of tokens, and which
//! namespaces there were when.

use std::collections::HashMap;

use trefoil::backup::content_hash;
use trefoil::{Error, Namespaces};

use super::shelf::{ArchiveShelf, EntryDocument};
use crate::backups::Repository;

/// Knows what was archived of the entries.
pub(super) struct EntryWatch<'a> {
    namespaces: &'a Namespaces,
    repository: &'a Repository,
    /// The hashes of those that were archived last; `None` of one that was deleted. Nothing is known
    /// before the first time.
    known: Option<HashMap<String, Option<String>>>,
}

impl<'a> EntryWatch<'a> {
    pub(super) fn new(namespaces: &'a Namespaces, repository: &'a Repository) -> Self {
        Self {
            namespaces,
            repository,
            known: None,
        }
    }

    /// Archives the entries that changed since the last time, and that namespaces were deleted, also those
    /// of `shipped` that it has never seen.
    pub(super) fn ship(&mut self, shipped: Vec<String>) -> anyhow::Result<()> {
        let mut known = match self.known.take() {
            Some(known) => known,
            None => self.archived()?,
        };
        for namespace in shipped {
            known.entry(namespace).or_insert(Some(String::new()));
        }
        let shipped = self.ship_changed(&mut known);
        self.known = Some(known);
        shipped
    }

    fn ship_changed(&self, known: &mut HashMap<String, Option<String>>) -> anyhow::Result<()> {
        for listed in self.namespaces.list()? {
            let namespace = listed.id.to_string();
            let entry = match self.namespaces.entry_text(&namespace) {
                Err(Error::NamespaceNotFound(_)) => continue,
                entry => entry?,
            };
            let hash = Some(content_hash(entry.as_bytes()));
            if known.get(&namespace) != Some(&hash) {
                self.add(&namespace, Some(entry))?;
                known.insert(namespace, hash);
            }
        }
        for (namespace, hash) in known {
            let is_gone = || {
                matches!(
                    self.namespaces.entry(namespace),
                    Err(Error::NamespaceNotFound(_))
                )
            };
            if hash.is_some() && is_gone() {
                self.add(namespace, None)?;
                *hash = None;
            }
        }
        Ok(())
    }

    fn add(&self, namespace: &str, entry: Option<String>) -> anyhow::Result<()> {
        let shelf = ArchiveShelf::of(self.repository, namespace);
        let namespace = namespace.to_owned();
        let now = self.namespaces.clock().now().millis();
        shelf.add_entry(now, &EntryDocument { namespace, entry })
    }

    /// Reads what was archived by the servers before this one.
    fn archived(&self) -> anyhow::Result<HashMap<String, Option<String>>> {
        let mut known = HashMap::new();
        for shelf in ArchiveShelf::all(self.repository)? {
            if let Some(last) = shelf.names()?.entries.last() {
                let EntryDocument { namespace, entry } = shelf.entry(*last)?;
                let hash = entry.map(|entry| content_hash(entry.as_bytes()));
                known.insert(namespace, hash);
            }
        }
        Ok(known)
    }
}
