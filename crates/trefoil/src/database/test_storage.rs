//! A storage for tests: in memory, and at fault when a test wants it to be.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use trefoil_core::{Direction, Error, Result};
use trefoil_storage::{
    Batch, Completer, Completion, Fill, Group, GroupLimits, LogEnd, Map, MemoryStorage, Record,
    Scan, Snapshot, Storage, StoredItem, Upkeep, Usage, VisitEntry, VisitItem, VisitLabel,
};

/// A key of a map that ends with this makes a read of it panic.
pub(crate) const BAIT: &str = "!panic";

/// A storage in memory that fails, as if the process had died, after a number of batches or
/// records, and panics on demand.
#[derive(Debug)]
pub(crate) struct TestStorage {
    inner: Arc<MemoryStorage>,
    pub(crate) writes_left: AtomicUsize,
    pub(crate) records_left: AtomicUsize,
    /// Whether appending panics.
    pub(crate) append_panics: AtomicBool,
    /// How many bytes of changes each group had.
    pub(crate) groups: Mutex<Vec<usize>>,
    /// Whether groups are held until the test completes them.
    pub(crate) holds_groups: AtomicBool,
    pub(crate) limits: GroupLimits,
    held: Mutex<Vec<HeldGroup>>,
}

/// A group that is on its way.
#[derive(Debug)]
pub(crate) struct HeldGroup {
    group: Group,
    inner: Arc<MemoryStorage>,
    completer: Completer,
}

impl HeldGroup {
    /// Returns how many commits the group has.
    pub(crate) fn n_commits(&self) -> u32 {
        self.group
            .records
            .iter()
            .map(|record| record.n_commits)
            .sum()
    }

    /// Appends the group and says so.
    pub(crate) fn complete(self) {
        let appended = self.inner.append(&self.group).wait();
        self.completer.complete(appended);
    }

    /// Says that the group failed.
    pub(crate) fn fail(self, error: Error) {
        self.completer.complete(Err(error));
    }
}

impl TestStorage {
    pub(crate) fn new(inner: Arc<MemoryStorage>) -> Self {
        Self {
            inner,
            writes_left: usize::MAX.into(),
            records_left: usize::MAX.into(),
            append_panics: false.into(),
            groups: Mutex::default(),
            holds_groups: false.into(),
            limits: GroupLimits::default(),
            held: Mutex::default(),
        }
    }

    /// Returns whether a group is on its way.
    pub(crate) fn has_held(&self) -> bool {
        !self.held.lock().is_empty()
    }

    /// Returns the group that is on its way, once there is one.
    pub(crate) fn take_held(&self) -> HeldGroup {
        loop {
            if let Some(held) = self.held.lock().pop() {
                return held;
            }
            std::thread::yield_now();
        }
    }
}

/// A map with a bait in it.
#[derive(Debug)]
struct TestMap(Arc<dyn Map>);

impl Map for TestMap {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        assert!(!key.ends_with(BAIT.as_bytes()), "the bait was taken");
        self.0.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> Scan<'_> {
        self.0.scan(from, to, direction)
    }

    fn moment(self: Arc<Self>) -> Result<Arc<dyn Map>> {
        Ok(Arc::new(Self(Arc::clone(&self.0).moment()?)))
    }
}

fn spend(left: &AtomicUsize) -> Result<()> {
    let spent = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
        left.checked_sub(1)
    });
    spent
        .map(drop)
        .map_err(|_| Error::invalid("the process died"))
}

impl Storage for TestStorage {
    fn group_limits(&self) -> GroupLimits {
        self.limits
    }

    fn append(&self, group: &Group) -> Completion {
        assert!(!self.append_panics.load(Ordering::SeqCst), "while writing");
        let records = group.records.iter();
        let bytes = records.map(|record| record.changes.len()).sum();
        self.groups.lock().push(bytes);
        if !self.holds_groups.load(Ordering::SeqCst) {
            return self.inner.append(group);
        }
        let (completer, completion) = Completion::later();
        let held = HeldGroup {
            group: group.clone(),
            inner: Arc::clone(&self.inner),
            completer,
        };
        self.held.lock().push(held);
        completion
    }

    fn end(&self) -> LogEnd {
        self.inner.end()
    }

    fn read(&self, positions: &[u64], visit: &mut VisitItem<'_>) -> Result<()> {
        self.inner.read(positions, visit)
    }

    fn read_labels(&self, positions: &[u64], visit: &mut VisitLabel<'_>) -> Result<()> {
        self.inner.read_labels(positions, visit)
    }

    fn replace_items(&self, stubs: &[StoredItem]) -> Result<()> {
        self.inner.replace_items(stubs)
    }

    fn drop_items(&self, positions: &[Range<u64>]) -> Result<()> {
        self.inner.drop_items(positions)
    }

    fn replay(&self, after: u64, visit: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
        self.inner.replay(after, &mut |record| {
            spend(&self.records_left)?;
            visit(record)
        })
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.inner.snapshot()
    }

    fn write_snapshot(&self, commit: u64, fill: &mut Fill<'_>) -> Result<()> {
        self.inner.write_snapshot(commit, fill)
    }

    fn read_snapshot(&self, visit: &mut VisitEntry<'_>) -> Result<()> {
        self.inner.read_snapshot(visit)
    }

    fn map(&self, name: &str) -> Result<Option<Arc<dyn Map>>> {
        let map = self.inner.map(name)?;
        Ok(map.map(|map| Arc::new(TestMap(map)) as _))
    }

    fn map_names(&self) -> Result<Vec<String>> {
        self.inner.map_names()
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        spend(&self.writes_left)?;
        self.inner.write(batch)
    }

    fn load(&self, name: &str, fill: &mut Fill<'_>) -> Result<()> {
        self.inner.load(name, fill)
    }

    fn drop_map(&self, name: &str) -> Result<()> {
        self.inner.drop_map(name)
    }

    fn maintain(&self, is_busy: bool) -> Result<Upkeep> {
        self.inner.maintain(is_busy)
    }

    fn seal(&self) -> Result<()> {
        self.inner.seal()
    }

    fn usage(&self) -> Result<Usage> {
        self.inner.usage()
    }
}
