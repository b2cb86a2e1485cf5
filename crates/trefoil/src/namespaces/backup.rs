//! Backups of namespaces that are open, and the entries of those that are restored.

use trefoil_core::{Error, NamespaceId, Result, Token};

use super::entry::RegistryRecord;
use super::registry::{encode, read_entry};
use super::token::TokenRecord;
use super::{Namespaces, random_token};
use crate::backup::{BackupBase, ReadBackup, TakeStep, unused};
use crate::home::StoredEntry;
use crate::removal::log_edits;

impl Namespaces {
    /// Returns whether nothing has been made of a namespace but its entry in the registry.
    pub fn is_unused(&self, id: &str) -> Result<bool> {
        let id = self.entry(id)?.id;
        self.inner.registry.is_unused(&id)
    }

    /// Makes a backup of a namespace as of its last commit, which goes to `take` step by step. Nobody
    /// waits for it: not those who write, nor those who read. Blocks the thread.
    pub fn backup(&self, id: &str, base: &BackupBase, take: &mut TakeStep<'_>) -> Result<()> {
        let record = self.inner.registry.get(id)?;
        let id = record.entry.id.clone();
        let entry = text_of(encode(&record)?)?;
        if self.inner.registry.is_unused(&id)? {
            return take(unused(entry));
        }
        let database = self.database(&id)?;
        let engine = database.engine()?;
        let edits = log_edits(&engine.store.read())?;
        let storage = std::sync::Arc::clone(&engine.storage);
        // Nobody waits for the backup, as they would for a reader of the engine.
        drop(engine);
        let read = ReadBackup {
            storage: storage.as_ref(),
            entry: &entry,
            edits,
        };
        read.run(base, &|| database.ask(|_| Ok(())), take)
    }
}

/// Returns the entry of a namespace as text, if it is sound.
pub(crate) fn entry_text(id: &NamespaceId, entry: &StoredEntry) -> Result<String> {
    text_of(encode(&read_entry(id.as_str(), entry)?)?)
}

pub(super) fn text_of(entry: Vec<u8>) -> Result<String> {
    String::from_utf8(entry).map_err(|error| Error::invalid(format!("entry: {error}")))
}

/// Says what is wrong with an entry from a backup.
pub(crate) fn check_entry(entry: &[u8]) -> Result<()> {
    decode(entry).map(drop)
}

fn decode(entry: &[u8]) -> Result<RegistryRecord> {
    let wrong = |what| Error::invalid(format!("the entry of the namespace: {what}"));
    RegistryRecord::decode(entry).map_err(wrong)
}

/// Returns the entry with which a namespace is restored under the name `id`, and its token if it gets
/// another one instead of all that it had: a token made here names its namespace, so it is of no use
/// under another name.
pub(crate) fn restored_entry(
    id: &NamespaceId,
    entry: &[u8],
    with_new_token: bool,
) -> Result<(Vec<u8>, Option<Token>)> {
    let mut record = decode(entry)?;
    let token = match with_new_token || record.entry.id != *id {
        true => Some(random_token(id)?),
        false => None,
    };
    record.entry.id = id.clone();
    record.is_made = true;
    if let Some(token) = &token {
        record.tokens = vec![TokenRecord::main(token, record.entry.created)];
    }
    Ok((encode(&record)?, token))
}
