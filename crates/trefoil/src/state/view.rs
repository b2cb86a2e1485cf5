//! What a transaction sees and changes: staged entries over durable ones, with savepoints.
//!
//! A view serves a whole group of commits: each sees what those before it in the group changed, and
//! leaves nothing behind if it fails. A view that changes nothing is a consistent read.

use bytes::Bytes;
use hashbrown::HashSet;
use trefoil_core::limits::STATE_BYTES_PER_COMMIT_MAX;
use trefoil_core::{Direction, Error, Result};
use trefoil_state::{Scan, Space};

use super::change::Changes;
use super::lately::Lately;
use super::store::{Entries, Reader, Store};
use crate::alarm::NEVER;

/// Durable entries and what is to change of them.
#[derive(Debug)]
pub(crate) struct View {
    reader: Reader,
    lately: Lately,
    staged: Entries,
    /// What the staged entries were before each change, for going back.
    undo: Vec<(Bytes, Option<Option<Bytes>>)>,
    /// The changes of the commit that is being staged.
    changes: Changes,
    /// The keys that it touches.
    touched: Touched,
    /// The keys that the commits before it touched.
    touched_before: Touched,
    /// When something is to be cleaned.
    due: u64,
}

/// Keys under which something was changed.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    keys: Vec<Bytes>,
    /// Those of the keys that were looked for among them, up to an index.
    found: HashSet<Bytes>,
    n_found: usize,
    /// Whether everything was removed.
    pub(crate) is_all: bool,
}

impl Touched {
    /// The keys, some of them more than once.
    pub(crate) fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    /// Whether a key is among them.
    pub(crate) fn contains(&mut self, key: &Bytes) -> bool {
        self.found.extend(self.keys[self.n_found..].iter().cloned());
        self.n_found = self.keys.len();
        self.found.contains(key)
    }
}

/// A moment to which a view can go back.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Savepoint {
    n_undo: usize,
    n_bytes: usize,
    n_touched: usize,
    is_all_touched: bool,
}

impl View {
    pub(crate) fn new(store: &Store) -> Self {
        Self {
            reader: store.read(),
            lately: Lately::default(),
            staged: Entries::new(),
            undo: Vec::new(),
            changes: Changes::default(),
            touched: Touched::default(),
            touched_before: Touched::default(),
            due: NEVER,
        }
    }

    /// Whether the commit that is being staged changes something.
    pub(crate) fn has_changes(&self) -> bool {
        !self.changes.bytes.is_empty()
    }

    /// The keys that all commits touched.
    pub(crate) fn take_touched(&mut self) -> Touched {
        std::mem::take(&mut self.touched_before)
    }

    /// The keys that the commits before this one touched.
    pub(crate) fn touched_before(&mut self) -> &mut Touched {
        &mut self.touched_before
    }

    /// The value of an entry.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.staged.get(key) {
            Some(value) => Ok(value.clone()),
            None => self.lately.get(key, || self.reader.get(key)),
        }
    }

    /// Sets an entry.
    pub(crate) fn put(&mut self, key: Bytes, value: Bytes) -> Result<()> {
        self.set(key, Some(value))
    }

    /// Gives an entry a value, or removes it.
    pub(crate) fn set(&mut self, key: Bytes, value: Option<Bytes>) -> Result<()> {
        let before = self.get(&key)?;
        if before == value {
            return Ok(());
        }
        self.changes.put(&key, before.as_ref(), value.as_ref());
        let n_bytes = self.changes.bytes.len();
        if n_bytes > STATE_BYTES_PER_COMMIT_MAX {
            let what = "bytes of state that one commit changes";
            return Err(Error::over_limit(what, n_bytes, STATE_BYTES_PER_COMMIT_MAX));
        }
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
            n_touched: self.touched.keys.len(),
            is_all_touched: self.touched.is_all,
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
        self.touched.keys.truncate(to.n_touched);
        self.touched.is_all = to.is_all_touched;
    }

    /// Ends a commit: its changes can no longer be taken back. They are handed to `log`.
    pub(crate) fn commit(&mut self, log: impl FnOnce(&[u8])) {
        self.undo.clear();
        self.touch_only();
        log(&self.changes.bytes);
        self.changes.bytes.clear();
    }

    /// Ends what is no commit because it left everything as it was: watches see it all the same.
    pub(crate) fn touch_only(&mut self) {
        self.touched_before.keys.append(&mut self.touched.keys);
        self.touched_before.is_all |= std::mem::take(&mut self.touched.is_all);
    }

    /// When something of what the commits changed is to be cleaned.
    pub(crate) fn next_due(&self) -> u64 {
        self.due
    }

    /// The entries that the commits changed.
    pub(crate) fn into_staged(self) -> Entries {
        self.staged
    }
}

impl Space for View {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        View::get(self, key)
    }

    fn set(&mut self, key: Bytes, value: Option<Bytes>) -> Result<()> {
        View::set(self, key, value)
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> Scan<'_> {
        View::scan(self, from, to, direction)
    }

    fn touch(&mut self, key: &Bytes) {
        self.touched.keys.push(key.clone());
    }

    fn touch_all(&mut self) {
        self.touched.is_all = true;
    }

    fn due(&mut self, time: u64) {
        self.due = self.due.min(time);
    }
}
