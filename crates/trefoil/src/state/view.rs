//! What a transaction sees and changes: staged entries over durable ones, with savepoints.
//!
//! A view serves a whole group of commits: each sees what those before it in the group changed, and
//! leaves nothing behind if it fails. The same goes for each command of a commit. What is kept for
//! going back is what each changed entry was when the commit began, and when the command began that
//! is running: however often a transaction changes an entry, it takes the memory of one change. A
//! view that changes nothing is a consistent read.

use bytes::Bytes;
use hashbrown::HashSet;
use trefoil_core::limits::STATE_BYTES_PER_COMMIT_MAX;
use trefoil_core::{Direction, Error, Result};
use trefoil_state::{Space, SpaceScan};
use trefoil_storage::KEY_BYTES_MAX;

use super::change::Changes;
use super::recent_reads::RecentReads;
use super::staged::{StagedEntries, StagedEntry};
use super::store::{ChangedEntries, StateStore, StoreReader};
use crate::time::NEVER;

/// Durable entries and what is to change of them.
#[derive(Debug)]
pub(crate) struct View {
    /// The durable entries; `None` while groups that it has staged become durable.
    reader: Option<StoreReader>,
    recent_reads: RecentReads,
    staged: StagedEntries,
    /// The entries that the commit changed, as they were staged before it; behind them, those that
    /// the running command changed, as they were staged before that.
    undo: Vec<(Bytes, Option<StagedEntry>)>,
    /// The names of the entries that commits changed, some of them more than once.
    changed: Vec<Bytes>,
    /// The first command of the commit, and the one that is running.
    commands: (u64, u64),
    /// How far things were when it began.
    begun: Begun,
    /// The changes of the commit that is being staged.
    changes: Changes,
    /// The keys that it touches.
    touched: TouchedKeys,
    /// The keys that the commits before it touched.
    touched_before: TouchedKeys,
    /// What is to be cleaned.
    due: ToClean,
}

/// What is to be cleaned.
#[derive(Debug)]
pub(crate) struct ToClean {
    /// When something expires, in milliseconds since 1970.
    pub(super) expiry: u64,
    /// The first of the entries that note garbage.
    pub(super) garbage: Option<Bytes>,
    /// Whether work is left behind for which a closed database must be opened.
    has_upkeep: bool,
}

impl Default for ToClean {
    /// Nothing.
    fn default() -> Self {
        Self {
            expiry: NEVER,
            garbage: None,
            has_upkeep: false,
        }
    }
}

impl ToClean {
    /// Returns when the first of it is due.
    pub(crate) fn first(&self) -> u64 {
        match self.garbage {
            Some(_) => 0,
            None if self.has_upkeep => 0,
            None => self.expiry,
        }
    }
}

/// Keys under which something was changed.
#[derive(Debug, Default)]
pub(crate) struct TouchedKeys {
    keys: Vec<Bytes>,
    /// Those of the keys that were looked for among them, up to an index.
    found: HashSet<Bytes>,
    n_found: usize,
    /// Whether everything was removed.
    pub(crate) is_all: bool,
}

impl TouchedKeys {
    /// Returns the keys, some of them more than once.
    pub(crate) fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    /// Returns whether a key is among them.
    pub(crate) fn contains(&mut self, key: &Bytes) -> bool {
        self.found.extend(self.keys[self.n_found..].iter().cloned());
        self.n_found = self.keys.len();
        self.found.contains(key)
    }
}

/// How far a commit was when a command began.
#[derive(Debug, Default)]
struct Begun {
    n_undo: usize,
    n_bytes: usize,
    n_touched: usize,
    is_all_touched: bool,
}

impl View {
    pub(crate) fn new(store: &StateStore) -> Self {
        Self {
            reader: Some(store.read()),
            recent_reads: RecentReads::default(),
            staged: StagedEntries::default(),
            undo: Vec::new(),
            changed: Vec::new(),
            commands: (0, 0),
            begun: Begun::default(),
            changes: Changes::default(),
            touched: TouchedKeys::default(),
            touched_before: TouchedKeys::default(),
            due: ToClean::default(),
        }
    }

    /// Notes that a commit leaves work behind for which a closed database must be opened.
    pub(crate) fn leave_upkeep(&mut self) {
        self.due.has_upkeep = true;
    }

    /// Returns whether the commit that is being staged changes something.
    pub(crate) fn has_changes(&self) -> bool {
        !self.changes.bytes.is_empty()
    }

    /// Returns the keys that all commits touched.
    pub(crate) fn take_touched(&mut self) -> TouchedKeys {
        std::mem::take(&mut self.touched_before)
    }

    /// Returns the keys that the commits before this one touched.
    pub(crate) fn touched_before(&mut self) -> &mut TouchedKeys {
        &mut self.touched_before
    }

    fn reader(&self) -> Result<&StoreReader> {
        let missing = || Error::Internal("the state is read while it changes".to_owned());
        self.reader.as_ref().ok_or_else(missing)
    }

    /// Lets go of the durable entries while `land` changes them, so that no part of them has to be copied
    /// for that, and sees them again as they are then. What `land` changes is staged here, and stays so.
    pub(crate) fn while_landing<T>(&mut self, store: &StateStore, land: impl FnOnce() -> T) -> T {
        self.reader = None;
        let landed = land();
        self.reader = Some(store.read());
        landed
    }

    /// From now on, entries that are not in memory are errors.
    pub(crate) fn read_at_hand(&mut self) {
        self.reader = self.reader.take().map(StoreReader::at_hand);
    }

    /// Returns whether something was not in memory.
    pub(crate) fn is_short(&self) -> bool {
        self.reader.as_ref().is_some_and(StoreReader::is_short)
    }

    /// Returns the value of an entry.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.staged.get(key) {
            Some(staged) => Ok(staged.value.clone()),
            None => self.recent_reads.get(key, || self.reader()?.get(key)),
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
        if key.len() > KEY_BYTES_MAX {
            let what = "length of the name of an entry of the state";
            return Err(Error::over_limit(what, key.len(), KEY_BYTES_MAX));
        }
        self.change(key, before.as_ref(), value)
    }

    /// Changes an entry, which has another value.
    fn change(&mut self, key: Bytes, before: Option<&Bytes>, value: Option<Bytes>) -> Result<()> {
        self.changes.put(&key, before, value.as_ref());
        let n_bytes = self.changes.bytes.len();
        if n_bytes > STATE_BYTES_PER_COMMIT_MAX {
            let what = "bytes of state that one commit changes";
            return Err(Error::over_limit(what, n_bytes, STATE_BYTES_PER_COMMIT_MAX));
        }
        let command = self.commands.1;
        let before = self
            .staged
            .insert(key.clone(), StagedEntry { value, command });
        if before
            .as_ref()
            .is_none_or(|before| before.command != command)
        {
            self.undo.push((key, before));
        }
        Ok(())
    }

    /// Returns the entries with `from <= key < to`, in either direction.
    pub(crate) fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> SpaceScan<'_> {
        if from >= to {
            return Box::new(std::iter::empty());
        }
        match self.reader() {
            Ok(reader) => reader.scan(from, to, direction, self.staged.range(from, to)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    /// A command begins. What those before it changed is taken back with the whole commit or not at
    /// all.
    pub(crate) fn begin_command(&mut self) {
        let (first, running) = self.commands;
        let mut n_kept = self.begun.n_undo;
        for index in self.begun.n_undo..self.undo.len() {
            let (_, before) = &self.undo[index];
            // An entry that the commit had changed before is kept as it was before all that.
            if before.as_ref().is_none_or(|before| before.command < first) {
                self.undo.swap(n_kept, index);
                n_kept += 1;
            }
        }
        self.undo.truncate(n_kept);
        self.commands = (first, running + 1);
        self.begun = Begun {
            n_undo: n_kept,
            n_bytes: self.changes.bytes.len(),
            n_touched: self.touched.keys.len(),
            is_all_touched: self.touched.is_all,
        };
    }

    /// Takes back all that the running command changed.
    pub(crate) fn take_back_command(&mut self) {
        let begun = std::mem::take(&mut self.begun);
        self.restore(begun.n_undo);
        self.changes.bytes.truncate(begun.n_bytes);
        self.touched.keys.truncate(begun.n_touched);
        self.touched.is_all = begun.is_all_touched;
        self.begun = begun;
    }

    /// Takes back all that the commit changed.
    pub(crate) fn take_back_commit(&mut self) {
        self.begun = Begun::default();
        self.take_back_command();
    }

    /// Restores the entries that were noted for going back, the last ones first.
    fn restore(&mut self, n_left: usize) {
        for (key, before) in self.undo.drain(n_left..).rev() {
            match before {
                Some(before) => drop(self.staged.insert(key, before)),
                None => self.staged.remove(&key),
            }
        }
    }

    /// Ends a commit: its changes can no longer be taken back. They are handed to `log`.
    pub(crate) fn commit(&mut self, log: impl FnOnce(&[u8])) {
        let names = self.undo.drain(..).map(|(name, _)| name);
        self.changed.extend(names);
        self.touch_only();
        log(&self.changes.bytes);
        self.changes.bytes.clear();
        let next = self.commands.1 + 1;
        self.commands = (next, next);
        self.begun = Begun::default();
    }

    /// Ends what is no commit because it left everything as it was: watches see it all the same.
    pub(crate) fn touch_only(&mut self) {
        self.touched_before.keys.append(&mut self.touched.keys);
        self.touched_before.is_all |= std::mem::take(&mut self.touched.is_all);
    }

    /// Returns what of what the commits changed is to be cleaned.
    pub(crate) fn take_to_clean(&mut self) -> ToClean {
        std::mem::take(&mut self.due)
    }

    /// Returns the entries that the commits changed since it was last asked for them. It sees them still.
    pub(crate) fn take_changed(&mut self) -> ChangedEntries {
        let mut names = std::mem::take(&mut self.changed);
        names.sort_unstable();
        names.dedup();
        let entry = |name: Bytes| {
            let value = self.staged.get(&name)?.value.clone();
            Some((name, value))
        };
        names.into_iter().filter_map(entry).collect()
    }

    /// Returns the entries that the commits changed.
    pub(crate) fn into_staged(self) -> ChangedEntries {
        self.staged.into_all().collect()
    }
}

impl Space for View {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        View::get(self, key)
    }

    fn set(&mut self, key: Bytes, value: Option<Bytes>) -> Result<()> {
        View::set(self, key, value)
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> SpaceScan<'_> {
        View::scan(self, from, to, direction)
    }

    fn touch(&mut self, key: &Bytes) {
        if self.touched.keys.last() != Some(key) {
            self.touched.keys.push(key.clone());
        }
    }

    fn touch_all(&mut self) {
        self.touched.is_all = true;
    }

    fn remove(&mut self, key: Bytes) -> Result<()> {
        self.change(key, Some(&Bytes::new()), None)
    }

    fn due(&mut self, time: u64) {
        self.due.expiry = self.due.expiry.min(time);
    }

    fn garbage(&mut self, name: &Bytes) {
        let first = self.due.garbage.take();
        self.due.garbage = first.into_iter().chain([name.clone()]).min();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use trefoil_storage::MemoryStorage;

    use super::*;
    use crate::state::ReadCache;

    fn store() -> StateStore {
        let read_cache = Arc::new(ReadCache::new(0, crate::Clock::default()));
        let shared_bytes = Arc::new(AtomicUsize::new(0));
        StateStore::open(Arc::new(MemoryStorage::new()), shared_bytes, read_cache).unwrap()
    }

    fn all(view: &View) -> Vec<(Bytes, Bytes)> {
        let all = view.scan(b"a", b"z", Direction::Forwards);
        all.collect::<Result<_>>().unwrap()
    }

    #[test]
    fn what_goes_back_does_not_grow_with_the_number_of_changes() {
        let mut view = View::new(&store());
        for number in 0..1000_u32 {
            view.begin_command();
            for times in 0..10 {
                let value = [&number.to_be_bytes()[..], &[times; 100]].concat();
                view.put(Bytes::from_static(b"key"), value.into()).unwrap();
                view.touch(&Bytes::from_static(b"key"));
            }
            assert!(view.undo.len() <= 2, "{}", view.undo.len());
        }
        assert_eq!(view.touched.keys.len(), 1);
        view.take_back_commit();
        assert_eq!((all(&view), view.has_changes()), (Vec::new(), false));
    }

    #[test]
    fn commands_and_commits_are_taken_back_exactly() {
        let mut view = View::new(&store());
        let mut random = 1_u64;
        let mut below = |n: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % n
        };
        for _ in 0..500 {
            let before_commit = all(&view);
            for _ in 0..below(6) {
                view.begin_command();
                let before_command = (all(&view), view.changes.clone(), view.touched.keys.clone());
                for _ in 0..below(5) {
                    let key = Bytes::from(format!("key {}", below(4)));
                    let value = (below(3) > 0).then(|| Bytes::from(below(9).to_string()));
                    view.touch(&key);
                    view.set(key, value).unwrap();
                }
                if below(3) == 0 {
                    view.take_back_command();
                    let now = (all(&view), view.changes.clone(), view.touched.keys.clone());
                    assert_eq!(now, before_command);
                }
            }
            if below(2) == 0 {
                view.take_back_commit();
                assert_eq!((all(&view), view.has_changes()), (before_commit, false));
            } else {
                view.commit(|_| {});
            }
        }
    }

    #[test]
    fn what_is_durable_after_a_landing_is_seen() {
        let store = store();
        let mut view = View::new(&store);
        let entry = |name| (Bytes::from_static(name), Some(Bytes::from_static(b"1")));
        view.put(Bytes::from_static(b"a"), Bytes::from_static(b"2"))
            .unwrap();
        view.while_landing(&store, || {
            store.apply(vec![entry(b"a"), entry(b"b")], || {});
        });
        // What is staged stays above it.
        let value = |name| view.get(name).unwrap();
        assert_eq!(value(b"a"), Some(Bytes::from_static(b"2")));
        assert_eq!(value(b"b"), Some(Bytes::from_static(b"1")));
        assert_eq!(all(&view).len(), 2);
    }

    #[test]
    fn what_commits_changed_is_told_once_and_seen_still() {
        let mut view = View::new(&store());
        let entry = |key: &'static str, value: Option<&'static str>| {
            let value = value.map(|value| Bytes::from_static(value.as_bytes()));
            (Bytes::from_static(key.as_bytes()), value)
        };
        let change = |view: &mut View, entries: &[(Bytes, Option<Bytes>)]| {
            view.begin_command();
            for (key, value) in entries {
                view.set(key.clone(), value.clone()).unwrap();
            }
        };
        change(&mut view, &[entry("c", Some("1")), entry("a", Some("1"))]);
        change(&mut view, &[entry("a", Some("2"))]);
        view.commit(|_| {});
        change(&mut view, &[entry("d", Some("1"))]);
        view.take_back_commit();
        let first = [entry("a", Some("2")), entry("c", Some("1"))];
        assert_eq!(view.take_changed(), first);
        assert_eq!(view.take_changed(), []);
        change(&mut view, &[entry("c", None), entry("b", Some("3"))]);
        view.commit(|_| {});
        let second = [entry("b", Some("3")), entry("c", None)];
        assert_eq!(view.take_changed(), second);
        let seen = [("a", "2"), ("b", "3")].map(|(key, value)| (key.into(), value.into()));
        assert_eq!(all(&view), seen);
    }

    #[test]
    fn a_name_that_no_map_takes_is_not_there_and_cannot_be_put() {
        let mut view = View::new(&store());
        let key = Bytes::from(vec![b'k'; KEY_BYTES_MAX + 1]);
        assert_eq!(view.get(&key).unwrap(), None);
        view.set(key.clone(), None).unwrap();
        let refused = view.put(key, Bytes::new());
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        assert!(!view.has_changes());
    }
}
