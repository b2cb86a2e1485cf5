//! A storage for tests: in memory, and at fault when a test wants it to be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use trefoil_core::{Direction, Error, Result};
use trefoil_storage::{
    Batch, Fill, Group, Label, LogEnd, Map, MemoryStorage, Record, Scan, Snapshot, Storage,
    StoredItem, Upkeep, Usage, VisitEntry,
};

/// A key of a map that ends with this makes whoever asks for it panic.
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
}

impl TestStorage {
    pub(crate) fn new(inner: Arc<MemoryStorage>) -> Self {
        Self {
            inner,
            writes_left: usize::MAX.into(),
            records_left: usize::MAX.into(),
            append_panics: false.into(),
            groups: Mutex::default(),
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
    fn append(&self, group: &Group) -> Result<()> {
        assert!(!self.append_panics.load(Ordering::SeqCst), "while writing");
        let records = group.records.iter();
        let bytes = records.map(|record| record.changes.len()).sum();
        self.groups.lock().push(bytes);
        self.inner.append(group)
    }

    fn end(&self) -> LogEnd {
        self.inner.end()
    }

    fn read(&self, positions: &[u64], visit: &mut dyn FnMut(StoredItem)) -> Result<()> {
        self.inner.read(positions, visit)
    }

    fn read_labels(&self, positions: &[u64], visit: &mut dyn FnMut(Label)) -> Result<()> {
        self.inner.read_labels(positions, visit)
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
