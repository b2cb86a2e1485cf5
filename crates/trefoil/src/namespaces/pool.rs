//! The databases that are open. No lock is held while one opens or closes.
//!
//! Invariants:
//! - An id is in `open` or in `busy` or in neither, never in both.
//! - A slot that only the pool refers to is not in use, and stays so while `state` is locked.
//! - Before a slot opens its database, the one it displaces is closed: never are more than
//!   `open_max` open, and those that are being looked after because something of them is due.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hashbrown::{HashMap, HashSet};
use parking_lot::{Condvar, Mutex, MutexGuard};
use trefoil_core::{Error, NamespaceId, Result};

use crate::background::quiet::CLOSING_PATIENCE;
use crate::stats::{TotalStats, Trace};
use crate::time::NEVER;
use crate::time::closed::ClosedDeadlines;
use crate::{Clock, Database, Info};

/// How long requests for a namespace wait at most because what is in memory alone is saved before it is
/// handed to another process.
const MOVING_PATIENCE: Duration = Duration::from_millis(500);

/// An open database that is not closed for lack of room while this is held.
#[derive(Clone, Debug)]
pub struct OpenDatabase {
    database: Database,
    hold: SlotHold,
}

impl OpenDatabase {
    /// Returns a handle that adds to a trace how long what is done through it takes.
    #[must_use]
    pub fn traced(mut self, trace: &Arc<Trace>) -> Self {
        self.database = self.database.traced(trace);
        self
    }

    /// Returns a handle with which the namespace is not handed to another process while that can wait:
    /// for work of several steps that could not go on there. Clones of it do not keep the namespace.
    #[must_use]
    pub fn staying(mut self) -> Self {
        self.hold = SlotHold::staying(&self.hold.slot);
        self
    }
}

/// Keeps a slot in use.
#[derive(Debug)]
struct SlotHold {
    slot: Arc<DatabaseSlot>,
    is_staying: bool,
}

impl SlotHold {
    fn new(slot: &Arc<DatabaseSlot>) -> Self {
        Self {
            slot: Arc::clone(slot),
            is_staying: false,
        }
    }

    fn staying(slot: &Arc<DatabaseSlot>) -> Self {
        slot.n_staying.fetch_add(1, Ordering::SeqCst);
        Self {
            slot: Arc::clone(slot),
            is_staying: true,
        }
    }
}

impl Clone for SlotHold {
    fn clone(&self) -> Self {
        Self::new(&self.slot)
    }
}

impl Drop for SlotHold {
    fn drop(&mut self) {
        if self.is_staying {
            self.slot.n_staying.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Deref for OpenDatabase {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

#[derive(Debug)]
pub(super) struct DatabasePool {
    state: Mutex<PoolState>,
    /// Told whenever an id leaves `busy`.
    settled: Condvar,
    open_max: usize,
    closed: Arc<ClosedDeadlines>,
}

#[derive(Debug, Default)]
struct PoolState {
    open: HashMap<NamespaceId, UsedSlot>,
    /// Namespaces that are being closed or deleted: a request for one waits.
    busy: HashSet<NamespaceId>,
    /// What was known of the databases that were closed for lack of room, until they are opened
    /// again: asking for counts must not displace what is in use.
    counted: HashMap<NamespaceId, Info>,
    /// Where the logs of those ended that were closed for lack of room since somebody asked; `None` if
    /// nobody does.
    closed_logs: Option<HashMap<NamespaceId, LogState>>,
    /// How many were closed for lack of room.
    n_displaced: u64,
    /// How many are being looked after because something of them is due.
    n_due: usize,
    /// Counts the uses, to know the least recent one.
    clock: u64,
    closed: bool,
}

/// Where the log of a namespace ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogState {
    /// How often all events were replaced, and so the log.
    pub generation: u64,
    /// The number of the last commit.
    pub commit: u64,
}

impl LogState {
    fn of(database: &Database) -> Option<Self> {
        let engine = database.engine().ok()?;
        Some(Self {
            generation: engine.generation,
            commit: engine.storage.end().commit,
        })
    }
}

#[derive(Debug)]
struct UsedSlot {
    slot: Arc<DatabaseSlot>,
    last: u64,
}

/// The place of one database. The first request opens it, those that come meanwhile wait.
#[derive(Debug, Default)]
struct DatabaseSlot {
    displaced: Mutex<Option<(NamespaceId, Arc<DatabaseSlot>)>>,
    database: OnceLock<Result<Database>>,
    /// How many do something that could not go on in another process.
    n_staying: AtomicUsize,
}

impl DatabaseSlot {
    /// Returns whether it is open, and nothing is done with it that could not go on in another process.
    fn is_movable(&self) -> bool {
        let is_free = |database: &Database| !database.is_being_replaced();
        let opened = self.database.get();
        opened.is_some_and(|opened| opened.as_ref().is_ok_and(is_free))
            && self.n_staying.load(Ordering::SeqCst) == 0
    }

    /// Closes the database if it is open, see [`Database::close_saving`]. One that has not begun to
    /// open never will.
    fn close(&self, patience: Duration) -> Result<()> {
        let never = || Err(Error::Closed("the namespace was closed".to_owned()));
        match self.database.get_or_init(never) {
            Ok(database) => database.close_saving(patience),
            Err(_) => Ok(()),
        }
    }
}

impl DatabasePool {
    pub(super) fn new(open_max: usize, closed: Arc<ClosedDeadlines>) -> Self {
        Self {
            closed,
            state: Mutex::default(),
            settled: Condvar::new(),
            open_max,
        }
    }

    /// Returns the database of `id`, opened with `open` if it is not open and neither `exists` nor `check`,
    /// which may wait, objects.
    pub(super) fn get(
        &self,
        id: &NamespaceId,
        exists: impl Fn() -> Result<()>,
        check: impl FnOnce() -> Result<()>,
        open: impl FnOnce() -> Result<Database>,
    ) -> Result<OpenDatabase> {
        self.drop_lost(id);
        let state = self.state.lock();
        let is_new = !state.closed && !state.open.contains_key(id);
        drop(state);
        // Before a place is made for it.
        if is_new {
            exists()?;
            check()?;
        }
        let slot = self.reserve(id, exists)?;
        let opened = slot.database.get_or_init(|| {
            self.close_displaced(&slot);
            // What is due is known elsewhere now. If it cannot be opened, it must be tried again.
            open().inspect(|_| self.closed.forget(id))
        });
        match opened {
            Ok(database) => Ok(OpenDatabase {
                database: database.clone(),
                hold: SlotHold::new(&slot),
            }),
            Err(error) => {
                self.forget(id, &slot);
                Err(error.clone())
            }
        }
    }

    /// Returns the database of `id` if it is open. Never waits for one that is being opened or closed.
    pub(super) fn opened(&self, id: &NamespaceId) -> Option<OpenDatabase> {
        let mut state = self.state.lock();
        state.clock += 1;
        let last = state.clock;
        let used = state.open.get_mut(id)?;
        let database = used.slot.database.get()?.as_ref().ok()?.clone();
        if database.is_lost() {
            return None;
        }
        used.last = last;
        Some(OpenDatabase {
            database,
            hold: SlotHold::new(&used.slot),
        })
    }

    /// Closes the database of `id` if another process has it for good: who asks for it asks the home
    /// again.
    fn drop_lost(&self, id: &NamespaceId) {
        let mut state = self.wait_for(id);
        let is_lost = |used: &UsedSlot| {
            let database = used.slot.database.get();
            database.is_some_and(|opened| opened.as_ref().is_ok_and(Database::is_lost))
        };
        if !state.open.get(id).is_some_and(is_lost) {
            return;
        }
        let lost = state.open.remove(id);
        state.busy.insert(id.clone());
        drop(state);
        if let Some(Err(error)) = lost.map(|used| used.slot.close(Duration::ZERO)) {
            tracing::warn!(namespace = %id, %error, "cannot close what another node has");
        }
        self.settle(id);
    }

    fn reserve(
        &self,
        id: &NamespaceId,
        exists: impl Fn() -> Result<()>,
    ) -> Result<Arc<DatabaseSlot>> {
        let mut state = self.wait_for(id);
        if state.closed {
            return Err(Error::Closed("the namespaces were closed".to_owned()));
        }
        state.clock += 1;
        let last = state.clock;
        if let Some(used) = state.open.get_mut(id) {
            used.last = last;
            return Ok(Arc::clone(&used.slot));
        }
        exists()?;
        state.counted.remove(id);
        let slot = Arc::new(DatabaseSlot::default());
        *slot.displaced.lock() = self.displace(&mut state, 1)?;
        let used = UsedSlot {
            slot: Arc::clone(&slot),
            last,
        };
        state.open.insert(id.clone(), used);
        Ok(slot)
    }

    /// Makes room for `n_more`: takes out the least recently used database that is not in use.
    fn displace(
        &self,
        state: &mut PoolState,
        n_more: usize,
    ) -> Result<Option<(NamespaceId, Arc<DatabaseSlot>)>> {
        let open_max = self.open_max;
        if state.open.len() + n_more <= open_max + state.n_due {
            return Ok(None);
        }
        let idle = state
            .open
            .iter()
            .filter(|(_, used)| Arc::strong_count(&used.slot) == 1);
        let oldest = idle
            .min_by_key(|(_, used)| used.last)
            .map(|(id, _)| id.clone());
        let displaced = oldest.and_then(|id| state.open.remove_entry(&id));
        let Some((id, used)) = displaced else {
            return Err(Error::Overloaded(format!(
                "{open_max} namespaces are open and in use, which is the limit"
            )));
        };
        state.busy.insert(id.clone());
        state.n_displaced += 1;
        Ok(Some((id, used.slot)))
    }

    /// Looks after a database of which something is due. It takes no place from those that others
    /// use.
    pub(super) fn look_after(
        &self,
        get: impl FnOnce() -> Result<OpenDatabase>,
        work: impl FnOnce(&Database) -> Result<()>,
    ) -> Result<()> {
        self.state.lock().n_due += 1;
        let done = get().and_then(|database| work(&database));
        self.shrink();
        done
    }

    /// Closes a database that is not in use if more are open than should be, now that one less is
    /// looked after.
    fn shrink(&self) {
        let mut state = self.state.lock();
        state.n_due -= 1;
        let displaced = self.displace(&mut state, 0);
        drop(state);
        let slot = DatabaseSlot::default();
        *slot.displaced.lock() = displaced.unwrap_or_default();
        self.close_displaced(&slot);
    }

    /// What was acknowledged is on disk before a database is closed, so that an error here is
    /// worth a warning but no reason to refuse another namespace.
    fn close_displaced(&self, slot: &DatabaseSlot) {
        let displaced = slot.displaced.lock().take();
        let Some((id, displaced)) = displaced else {
            return;
        };
        let database = displaced
            .database
            .get()
            .and_then(|opened| opened.as_ref().ok());
        let info = database.and_then(|database| database.info().ok());
        let log = database.and_then(LogState::of);
        if let Err(error) = displaced.close(CLOSING_PATIENCE) {
            tracing::warn!(namespace = %id, %error, "cannot close");
        }
        let deadline = database.map_or(NEVER, Database::deadline_when_closed);
        let mut state = self.state.lock();
        if let Some(info) = info {
            state.counted.insert(id.clone(), info);
        }
        if let (Some(log), Some(closed_logs)) = (log, &mut state.closed_logs) {
            closed_logs.insert(id.clone(), log);
        }
        drop(state);
        if deadline != NEVER {
            self.closed.note(id.clone(), deadline);
        }
        self.settle(&id);
    }

    /// Returns where the logs of all databases end that are open, or were closed for lack of room since
    /// this was asked last.
    pub(super) fn logs(&self) -> HashMap<NamespaceId, LogState> {
        let closed = self.state.lock().closed_logs.replace(HashMap::new());
        let mut logs = closed.unwrap_or_default();
        for (id, database) in self.all_open() {
            logs.extend(LogState::of(&database).map(|log| (id, log)));
        }
        logs
    }

    /// Returns the databases that are open now.
    fn all_open(&self) -> Vec<(NamespaceId, Database)> {
        let open = |(id, used): (&NamespaceId, &UsedSlot)| {
            let database = used.slot.database.get()?.as_ref().ok()?;
            Some((id.clone(), database.clone()))
        };
        self.state.lock().open.iter().filter_map(open).collect()
    }

    /// Adds how many databases are open, how many were closed for lack of room, and how much room on
    /// disk all of these take.
    pub(super) fn add_usage(&self, stats: &mut TotalStats) {
        let open = self.all_open();
        let state = self.state.lock();
        (stats.open, stats.closed_for_room) = (open.len() as u64, state.n_displaced);
        for info in state.counted.values() {
            stats.log_bytes += info.log_bytes;
            stats.log_used_bytes += info.log_used_bytes;
            stats.index_bytes += info.index_bytes;
            stats.state_bytes += info.state_bytes;
        }
        drop(state);
        for usage in open
            .iter()
            .filter_map(|(_, database)| database.usage().ok())
        {
            stats.log_bytes += usage.log_bytes;
            stats.log_used_bytes += usage.log_used_bytes;
            stats.index_bytes += usage.map_bytes - usage.written_map_bytes;
            stats.state_bytes += usage.written_map_bytes;
        }
    }

    /// Returns how many bytes of a namespace are on disk; `None` if it is neither open nor was it closed for
    /// lack of room. It does not count as used.
    pub(super) fn disk_bytes(&self, id: &NamespaceId) -> Option<u64> {
        let state = self.state.lock();
        let opened = state.open.get(id).map(|used| Arc::clone(&used.slot));
        let counted = state.counted.get(id).cloned();
        drop(state);
        let Some(slot) = opened else {
            let Info {
                log_used_bytes,
                index_bytes,
                state_bytes,
                ..
            } = counted?;
            return Some(log_used_bytes + index_bytes + state_bytes);
        };
        slot.database.get()?.as_ref().ok()?.disk_bytes().ok()
    }

    /// Returns how many bytes of memory storages of all open databases hold that are not in the cache.
    pub(super) fn held_bytes(&self) -> u64 {
        let open = self.all_open();
        open.iter().map(|(_, database)| database.held_bytes()).sum()
    }

    /// Returns the open databases that take no writes before they are opened again, and why.
    pub(super) fn refusing_writes(&self) -> Vec<(NamespaceId, String)> {
        let refusing = self
            .all_open()
            .into_iter()
            .filter_map(|(id, database)| Some((id, database.refuses_writes()?)));
        refusing.collect()
    }

    /// Returns the counts and times of a database that was closed for lack of room.
    pub(super) fn counted(&self, id: &NamespaceId) -> Option<Info> {
        self.state.lock().counted.get(id).cloned()
    }

    /// Closes a slot, and what it was to displace if it had not come to that.
    fn close_slot(&self, slot: &DatabaseSlot, patience: Duration) -> Result<()> {
        let closed = slot.close(patience);
        self.close_displaced(slot);
        closed
    }

    /// Closes the database of `id`, held or not, and blocks requests for it until `remove` has
    /// been run.
    pub(super) fn remove<T>(
        &self,
        id: &NamespaceId,
        remove: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let mut state = self.wait_for(id);
        state.busy.insert(id.clone());
        state.counted.remove(id);
        self.closed.forget(id);
        let used = state.open.remove(id);
        drop(state);
        if let Some(used) = used
            && let Err(error) = self.close_slot(&used.slot, Duration::ZERO)
        {
            tracing::warn!(namespace = %id, %error, "cannot close what is being deleted");
        }
        let removed = remove();
        if removed.is_err() {
            // It is still there, and what is due of it is not known.
            self.closed.note(id.clone(), 0);
        }
        self.settle(id);
        removed
    }

    /// Returns all that are open, or are being opened.
    pub(super) fn all_ids(&self) -> Vec<NamespaceId> {
        self.state.lock().open.keys().cloned().collect()
    }

    /// Returns the open databases, the least recently used first, that nothing keeps in this process.
    pub(super) fn movable(&self) -> Vec<NamespaceId> {
        let state = self.state.lock();
        let movable = state.open.iter().filter(|(_, used)| used.slot.is_movable());
        let mut movable: Vec<_> = movable.map(|(id, used)| (used.last, id.clone())).collect();
        movable.sort();
        movable.into_iter().map(|(_, id)| id).collect()
    }

    /// Hands the database of `id` to another process, if there is one for it. Requests for it wait
    /// meanwhile, and are then told where it is. Unless `is_urgent`, what stays here is not moved.
    /// Returns whether it was.
    pub(super) fn hand_over(&self, id: &NamespaceId, is_urgent: bool) -> Result<bool> {
        let mut state = self.wait_for(id);
        let is_movable = |slot: &DatabaseSlot| is_urgent || slot.is_movable();
        let slot = state.open.get(id).map(|used| Arc::clone(&used.slot));
        let Some(slot) = slot.filter(|slot| is_movable(slot)) else {
            return Ok(false);
        };
        let Some(Ok(database)) = slot.database.get() else {
            return Ok(false);
        };
        if database.is_lost() {
            return Ok(false);
        }
        let used = state.open.remove(id);
        state.busy.insert(id.clone());
        drop(state);
        // Opening it elsewhere reads what is in memory here alone from the log.
        let moved = database.hand_over(MOVING_PATIENCE);
        if let (Ok(false), Some(used)) = (&moved, used) {
            self.state.lock().open.insert(id.clone(), used);
        }
        self.settle(id);
        moved
    }

    /// Closes every database and opens none any more. Returns the first error. All of them together
    /// take as long as one may.
    pub(super) fn close(&self, clock: &Clock) -> Result<()> {
        let began = clock.steady();
        let mut state = self.state.lock();
        state.closed = true;
        let all = std::mem::take(&mut state.open);
        drop(state);
        let mut result = Ok(());
        for used in all.into_values() {
            let patience = CLOSING_PATIENCE.saturating_sub(clock.since(began));
            result = result.and(self.close_slot(&used.slot, patience));
        }
        let mut state = self.state.lock();
        while !state.busy.is_empty() {
            self.settled.wait(&mut state);
        }
        result
    }

    #[cfg(test)]
    pub(super) fn is_open(&self, id: &NamespaceId) -> bool {
        let state = self.state.lock();
        state
            .open
            .get(id)
            .is_some_and(|used| used.slot.database.get().is_some())
    }

    /// Returns how many databases are open.
    pub(super) fn open_count(&self) -> usize {
        self.state.lock().open.len()
    }

    fn wait_for(&self, id: &NamespaceId) -> MutexGuard<'_, PoolState> {
        let mut state = self.state.lock();
        while state.busy.contains(id) {
            self.settled.wait(&mut state);
        }
        state
    }

    fn settle(&self, id: &NamespaceId) {
        self.state.lock().busy.remove(id);
        self.settled.notify_all();
    }

    /// Removes a slot whose database could not be opened, so that the next user tries again.
    fn forget(&self, id: &NamespaceId, slot: &Arc<DatabaseSlot>) {
        let mut state = self.state.lock();
        if state
            .open
            .get(id)
            .is_some_and(|used| Arc::ptr_eq(&used.slot, slot))
        {
            state.open.remove(id);
        }
    }
}
