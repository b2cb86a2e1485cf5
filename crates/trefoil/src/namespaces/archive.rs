//! Namespaces as a continuous archive sees them.

use std::sync::Arc;

use trefoil_core::{NamespaceId, Result};

use super::Namespaces;
use super::backup::text_of;
use super::pool::LogState;
use super::registry::encode;
use crate::archive::ArchiveSource;

impl Namespaces {
    /// Returns where the logs of all namespaces end that are open, or were closed for lack of room since
    /// this was asked last. From the first call on, what is closed is remembered for the next one.
    pub fn logs(&self) -> Vec<(NamespaceId, LogState)> {
        self.inner.pool.logs().into_iter().collect()
    }

    /// Hands the log of a namespace to `work`, opened if it is not. It takes no place from those that
    /// others use. Returns `None` of a namespace that was never used. Blocks the thread.
    pub fn archive<T>(
        &self,
        id: &NamespaceId,
        work: impl FnOnce(&ArchiveSource) -> Result<T>,
    ) -> Result<Option<T>> {
        if self.inner.registry.is_unused(id)? {
            return Ok(None);
        }
        let created = self.entry(id.as_str())?.created;
        let mut done = None;
        let get = || self.database(id);
        self.inner.pool.look_after(get, |database| {
            let engine = database.engine()?;
            let source = ArchiveSource {
                storage: Arc::clone(&engine.storage),
                store: Arc::clone(&engine.store),
                clock: self.clock().clone(),
                created,
                generation: engine.generation,
            };
            done = Some(work(&source)?);
            // What was read counts only if the namespace is still this process'.
            database.ask(|_| Ok(()))
        })?;
        Ok(done)
    }

    /// Returns the entry of a namespace in the registry, as a backup has it.
    pub fn entry_text(&self, id: &str) -> Result<String> {
        text_of(encode(&self.inner.registry.get(id)?)?)
    }
}
