//! A home of which one storage waits: until a gate is opened. The storages say so, or do not, as a disk.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use trefoil::home::{
    Claim, Erasure, Facts, Home, Incarnation, MemoryHome, OpenedGeneration, Stamp, StoredEntry,
};
use trefoil::{Direction, NamespaceId, Result};
use trefoil_storage::{
    Batch, BlockCache, Completion, Fill, Group, LogEnd, Map, ReadReach, Record, Scan, Snapshot,
    Storage, StoredItem, VisitEntry, VisitItem,
};

/// What calls of the slow storage wait for.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    is_closed: bool,
    /// How long it takes to pass when it is open.
    delay: Duration,
    n_waiting: usize,
    /// The names of the threads that came here.
    threads: BTreeSet<String>,
}

impl Gate {
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.threads.clear();
    }

    pub(super) fn delay(&self, delay: Duration) {
        self.state.lock().delay = delay;
    }

    pub(super) fn open(&self) {
        self.state.lock().is_closed = false;
        self.changed.notify_all();
    }

    pub(super) fn n_waiting(&self) -> usize {
        self.state.lock().n_waiting
    }

    pub(super) fn threads(&self) -> BTreeSet<String> {
        self.state.lock().threads.clone()
    }

    fn pass(&self) {
        let mut state = self.state.lock();
        let thread = std::thread::current();
        state
            .threads
            .insert(thread.name().unwrap_or_default().to_owned());
        state.n_waiting += 1;
        while state.is_closed {
            self.changed.wait(&mut state);
        }
        state.n_waiting -= 1;
        let delay = state.delay;
        drop(state);
        if delay > Duration::ZERO {
            std::thread::sleep(delay);
        }
    }
}

/// Namespaces in memory.
#[derive(Debug)]
pub(super) struct WaitingHome {
    pub(super) inner: MemoryHome,
    /// Whether the storages say that they may wait. If they do not, only reading waits.
    pub(super) is_said: bool,
    /// The one that does wait.
    pub(super) slow: NamespaceId,
    pub(super) gate: Arc<Gate>,
}

impl Home for WaitingHome {
    fn entries(&self) -> Result<Vec<(String, Result<StoredEntry>)>> {
        self.inner.entries()
    }

    fn entry(&self, id: &NamespaceId) -> Result<Option<StoredEntry>> {
        self.inner.entry(id)
    }

    fn create(&self, id: &NamespaceId, bytes: &[u8]) -> Result<Stamp> {
        self.inner.create(id, bytes)
    }

    fn replace(&self, id: &NamespaceId, old: Stamp, bytes: &[u8]) -> Result<Option<Stamp>> {
        self.inner.replace(id, old, bytes)
    }

    fn delete(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<Erasure> {
        self.inner.delete(id, incarnation)
    }

    fn claim(
        &self,
        id: &NamespaceId,
        incarnation: Incarnation,
        must_exist: bool,
    ) -> Result<Arc<dyn Claim>> {
        let inner = self.inner.claim(id, incarnation, must_exist)?;
        let gate = (*id == self.slow).then(|| Arc::clone(&self.gate));
        let is_said = self.is_said;
        Ok(Arc::new(WaitingClaim {
            inner,
            gate,
            is_said,
        }))
    }

    fn has_storage(&self, id: &NamespaceId) -> Result<bool> {
        self.inner.has_storage(id)
    }

    fn due_times(&self) -> Result<Vec<(NamespaceId, u64)>> {
        self.inner.due_times()
    }

    fn append_audit(&self, record: &str) -> Result<u64> {
        self.inner.append_audit(record)
    }

    fn read_audit(&self, before: u64, limit: usize) -> Result<Vec<(u64, String)>> {
        self.inner.read_audit(before, limit)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.inner.free_bytes()
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

#[derive(Debug)]
struct WaitingClaim {
    inner: Arc<dyn Claim>,
    gate: Option<Arc<Gate>>,
    is_said: bool,
}

impl WaitingClaim {
    fn pass(&self) {
        self.gate.iter().for_each(|gate| gate.pass());
    }
}

impl Claim for WaitingClaim {
    fn facts(&self) -> Result<Facts> {
        self.pass();
        self.inner.facts()
    }

    fn open(
        &self,
        generation: u64,
        cache: &Arc<BlockCache>,
        reach: &ReadReach<'_>,
    ) -> Result<OpenedGeneration> {
        self.pass();
        let mut opened = self.inner.open(generation, cache, reach)?;
        opened.storage = Arc::new(WaitingStorage {
            inner: opened.storage,
            gate: self.gate.clone(),
            is_said: self.is_said,
        });
        Ok(opened)
    }

    fn switch(&self, generation: u64) -> Result<()> {
        self.pass();
        self.inner.switch(generation)
    }

    fn remove_others(&self) -> Result<()> {
        self.pass();
        self.inner.remove_others()
    }

    fn set_due(&self, due: Option<u64>) -> Result<()> {
        self.pass();
        self.inner.set_due(due)
    }

    fn release(&self) {
        self.inner.release();
    }
}

#[derive(Debug)]
struct WaitingStorage {
    inner: Arc<dyn Storage>,
    gate: Option<Arc<Gate>>,
    is_said: bool,
}

impl WaitingStorage {
    /// Waits for the gate if this is the slow one.
    fn inner(&self) -> &dyn Storage {
        self.gate.iter().for_each(|gate| gate.pass());
        self.inner.as_ref()
    }
}

impl Storage for WaitingStorage {
    fn may_wait(&self) -> bool {
        self.is_said
    }

    fn append(&self, group: &Group) -> Completion {
        if !self.is_said {
            return self.inner.append(group);
        }
        let (completer, completion) = Completion::later();
        let (inner, gate, group) = (self.inner.clone(), self.gate.clone(), group.clone());
        let append = move || {
            gate.iter().for_each(|gate| gate.pass());
            completer.complete(inner.append(&group).wait());
        };
        let name = "storage".to_owned();
        std::thread::Builder::new()
            .name(name)
            .spawn(append)
            .unwrap();
        completion
    }

    fn end(&self) -> LogEnd {
        self.inner.end()
    }

    fn read(&self, positions: &[u64], visit: &mut VisitItem<'_>) -> Result<()> {
        self.inner().read(positions, visit)
    }

    fn replace_items(&self, stubs: &[StoredItem]) -> Result<()> {
        self.inner().replace_items(stubs)
    }

    fn drop_items(&self, positions: &[Range<u64>]) -> Result<()> {
        self.inner().drop_items(positions)
    }

    fn replay(&self, after: u64, visit: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
        self.inner().replay(after, visit)
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.inner.snapshot()
    }

    fn write_snapshot(&self, commit: u64, fill: &mut Fill<'_>) -> Result<()> {
        self.inner().write_snapshot(commit, fill)
    }

    fn read_snapshot(&self, visit: &mut VisitEntry<'_>) -> Result<()> {
        self.inner().read_snapshot(visit)
    }

    fn map(&self, name: &str) -> Result<Option<Arc<dyn Map>>> {
        let (map, gate) = (self.inner().map(name)?, &self.gate);
        let slow = |inner| Arc::new(WaitingMap::new(inner, gate.clone())) as _;
        Ok(map.map(slow))
    }

    fn map_names(&self) -> Result<Vec<String>> {
        self.inner().map_names()
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        self.inner().write(batch)
    }

    fn load(&self, name: &str, fill: &mut Fill<'_>) -> Result<()> {
        self.inner().load(name, fill)
    }

    fn drop_map(&self, name: &str) -> Result<()> {
        self.inner().drop_map(name)
    }
}

#[derive(Debug)]
struct WaitingMap {
    inner: Arc<dyn Map>,
    gate: Option<Arc<Gate>>,
}

impl WaitingMap {
    fn new(inner: Arc<dyn Map>, gate: Option<Arc<Gate>>) -> Self {
        Self { inner, gate }
    }

    fn pass(&self) {
        self.gate.iter().for_each(|gate| gate.pass());
    }
}

impl Map for WaitingMap {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.pass();
        self.inner.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> Scan<'_> {
        self.pass();
        self.inner.scan(from, to, direction)
    }

    fn moment(self: Arc<Self>) -> Result<Arc<dyn Map>> {
        let inner = Arc::clone(&self.inner).moment()?;
        Ok(Arc::new(Self::new(inner, self.gate.clone())))
    }
}
