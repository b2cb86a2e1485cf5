//! What a transaction sees and changes: staged entries over durable ones, with savepoints.
//!
//! A view serves a whole group of commits: each sees what those before it in the group changed, and
//! leaves nothing behind if it fails. A view that changes nothing is a consistent read.

use bytes::Bytes;
use trefoil_core::{Direction, Result};

use super::change::Changes;
use super::store::{Entries, Reader, Scan, Store};

/// Durable entries and what is to change of them.
#[derive(Debug)]
pub(crate) struct View<'a> {
    reader: Reader<'a>,
    staged: Entries,
    /// What the staged entries were before each change, for going back.
    undo: Vec<(Bytes, Option<Option<Bytes>>)>,
    /// The changes of the commit that is being staged.
    changes: Changes,
}

/// A moment to which a view can go back.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Savepoint {
    n_undo: usize,
    n_bytes: usize,
}

impl<'a> View<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self {
            reader: store.read(),
            staged: Entries::new(),
            undo: Vec::new(),
            changes: Changes::default(),
        }
    }

    /// The value of an entry.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.staged.get(key) {
            Some(value) => Ok(value.clone()),
            None => self.reader.get(key),
        }
    }

    /// Sets an entry.
    pub(crate) fn put(&mut self, key: Bytes, value: Bytes) -> Result<()> {
        self.set(key, Some(value))
    }

    fn set(&mut self, key: Bytes, value: Option<Bytes>) -> Result<()> {
        let before = self.get(&key)?;
        if before.is_none() && value.is_none() {
            return Ok(());
        }
        self.changes.put(&key, before.as_ref(), value.as_ref());
        let staged = self.staged.insert(key.clone(), value);
        self.undo.push((key, staged));
        Ok(())
    }

    /// The entries with `from <= key < to`, in either direction.
    pub(crate) fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> Scan<'_> {
        self.reader.scan(from, to, direction, &self.staged)
    }

    /// Remembers this moment.
    pub(crate) fn savepoint(&self) -> Savepoint {
        Savepoint {
            n_undo: self.undo.len(),
            n_bytes: self.changes.bytes.len(),
        }
    }

    /// Takes back all that was changed since a moment of the same commit.
    pub(crate) fn rollback(&mut self, to: Savepoint) {
        for (key, staged) in self.undo.drain(to.n_undo..).rev() {
            match staged {
                Some(value) => self.staged.insert(key, value),
                None => self.staged.remove(&key),
            };
        }
        self.changes.bytes.truncate(to.n_bytes);
    }

    /// Ends a commit: its changes can no longer be taken back. Answers them.
    pub(crate) fn commit(&mut self) -> Changes {
        self.undo.clear();
        std::mem::take(&mut self.changes)
    }

    /// The entries that the commits changed.
    pub(crate) fn into_staged(self) -> Entries {
        self.staged
    }
}
