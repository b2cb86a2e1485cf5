//! A storage for tests: in memory, and at fault when a test wants it to be.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

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
    pub(crate) waits: Arc<Waits>,
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
            waits: Arc::default(),
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

/// How long a storage that waits takes to read what it has not in memory.
const WAIT: Duration = Duration::from_millis(50);

/// What makes a storage wait.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Set before the storage is opened.
    pub(crate) is_on: AtomicBool,
    /// Whether it does not say that it waits, as a disk does not.
    pub(crate) is_unsaid: AtomicBool,
    /// What was read or appended.
    in_memory: Mutex<HashSet<Vec<u8>>>,
    /// The name of the thread that waited, for each time that one did.
    waited: Mutex<Vec<String>>,
    /// How often items were read.
    n_reads: AtomicUsize,
}

impl Waits {
    /// Forgets what was read, and who waited for it.
    pub(crate) fn begin(&self) {
        self.in_memory.lock().clear();
        self.waited.lock().clear();
        self.n_reads.store(0, Ordering::SeqCst);
    }

    /// Returns the names of the threads that waited.
    pub(crate) fn waited(&self) -> Vec<String> {
        self.waited.lock().clone()
    }

    /// Returns how often items were read.
    pub(crate) fn n_reads(&self) -> usize {
        self.n_reads.load(Ordering::SeqCst)
    }

    /// Returns whether one of them was not in memory before.
    fn keep(&self, keys: impl Iterator<Item = Vec<u8>>) -> bool {
        let mut in_memory = self.in_memory.lock();
        let n_before = in_memory.len();
        in_memory.extend(keys);
        in_memory.len() > n_before
    }

    /// Waits once if one of these is not in memory.
    fn fetch(&self, keys: impl Iterator<Item = Vec<u8>>) {
        if self.is_on.load(Ordering::SeqCst) && self.keep(keys) {
            std::thread::sleep(WAIT);
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default().to_owned();
            self.waited.lock().push(name);
        }
    }
}

/// What an item is kept under.
fn item_key(position: u64) -> Vec<u8> {
    position.to_be_bytes().to_vec()
}

/// A map with a bait in it.
#[derive(Debug)]
struct TestMap {
    name: String,
    map: Arc<dyn Map>,
    waits: Arc<Waits>,
}

impl Map for TestMap {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        assert!(!key.ends_with(BAIT.as_bytes()), "the bait was taken");
        let kept = [self.name.as_bytes(), key].join(&0);
        self.waits.fetch(std::iter::once(kept));
        self.map.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> Scan<'_> {
        let kept = [self.name.as_bytes(), from, to].join(&1);
        self.waits.fetch(std::iter::once(kept));
        self.map.scan(from, to, direction)
    }

    fn moment(self: Arc<Self>) -> Result<Arc<dyn Map>> {
        Ok(Arc::new(Self {
            name: self.name.clone(),
            map: Arc::clone(&self.map).moment()?,
            waits: Arc::clone(&self.waits),
        }))
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
    fn may_wait(&self) -> bool {
        let Waits {
            is_on, is_unsaid, ..
        } = &*self.waits;
        is_on.load(Ordering::SeqCst) && !is_unsaid.load(Ordering::SeqCst)
    }

    fn group_limits(&self) -> GroupLimits {
        self.limits
    }

    fn append(&self, group: &Group) -> Completion {
        assert!(!self.append_panics.load(Ordering::SeqCst), "while writing");
        let records = group.records.iter();
        let bytes = records.map(|record| record.changes.len()).sum();
        self.groups.lock().push(bytes);
        let items = group.records.iter().flat_map(Record::items);
        self.waits
            .keep(items.map(|(position, ..)| item_key(position)));
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
        self.waits.n_reads.fetch_add(1, Ordering::SeqCst);
        self.waits.fetch(positions.iter().copied().map(item_key));
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
        Ok(map.map(|map| {
            let (name, waits) = (name.to_owned(), Arc::clone(&self.waits));
            Arc::new(TestMap { name, map, waits }) as _
        }))
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

    fn maintain(&self, is_busy: &dyn Fn() -> bool) -> Result<Upkeep> {
        self.inner.maintain(is_busy)
    }

    fn seal(&self) -> Result<()> {
        self.inner.seal()
    }

    fn usage(&self) -> Result<Usage> {
        self.inner.usage()
    }
}
