//! Storage that lives and dies with the process: for tests and for `--test-mode`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::ops::{Bound, Range};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;
use trefoil_core::{Direction, Error, Result};

use crate::contract::{check_key, dropped, no_item, no_such_snapshot};
use crate::edits::Edits;
use crate::range::range;
use crate::{
    Batch, Completion, Entry, Fill, Group, Label, LogEnd, Map, Record, Scan, Snapshot, Storage,
    StoredItem, Usage, VisitEntry, VisitItem, VisitLabel,
};

/// A namespace in memory.
#[derive(Debug, Default)]
pub struct MemoryStorage {
    log: RwLock<MemoryLog>,
    snapshot: RwLock<Option<(u64, Arc<Entries>)>>,
    maps: RwLock<BTreeMap<String, Arc<MemoryMap>>>,
}

#[derive(Debug, Default)]
struct MemoryLog {
    records: Vec<Record>,
    items: BTreeMap<u64, (Label, Bytes)>,
    end: LogEnd,
}

type Entries = BTreeMap<Bytes, Bytes>;

/// A map. Whoever walks over it holds the entries of that moment: they are copied if they change
/// meanwhile.
#[derive(Debug, Default)]
struct MemoryMap {
    entries: RwLock<Arc<Entries>>,
}

impl MemoryStorage {
    /// An empty namespace.
    pub fn new() -> Self {
        Self::default()
    }

    fn map_or_new(&self, name: &str) -> Arc<MemoryMap> {
        Arc::clone(self.maps.write().entry(name.to_owned()).or_default())
    }
}

/// The entries that `fill` hands over.
fn filled(fill: &mut Fill<'_>) -> Result<Entries> {
    let mut entries = Entries::new();
    fill(&mut |key, value| {
        let key = Bytes::from(key);
        if entries
            .last_key_value()
            .is_some_and(|(last, _)| *last >= key)
        {
            return Err(Error::invalid("the keys must ascend"));
        }
        entries.insert(key, Bytes::from(value));
        Ok(())
    })?;
    Ok(entries)
}

impl MemoryLog {
    fn edit(&mut self, edits: &Edits<'_>) {
        self.records
            .iter_mut()
            .for_each(|record| edits.apply(record));
    }

    fn append(&mut self, group: &Group) -> Result<()> {
        if group.records.iter().any(Record::lacks_something) {
            return Err(dropped());
        }
        for record in &group.records {
            for (position, label, item) in record.items() {
                let item = Bytes::copy_from_slice(item);
                self.items.insert(position, (label, item));
            }
            self.end.commit = record.last_commit();
            self.end.position = self.end.position.max(record.end_position() - 1);
            self.records.push(record.clone());
        }
        Ok(())
    }

    /// Drops the changes of records up to `commit`.
    fn drop_changes(&mut self, commit: u64) {
        for mut record in std::mem::take(&mut self.records) {
            record.drop_changes(commit);
            let is_absorbed = self
                .records
                .last_mut()
                .is_some_and(|last| last.absorb(&record));
            if !is_absorbed {
                self.records.push(record);
            }
        }
    }
}

impl Storage for MemoryStorage {
    fn append(&self, group: &Group) -> Completion {
        self.log.write().append(group).into()
    }

    fn end(&self) -> LogEnd {
        self.log.read().end
    }

    fn read(&self, positions: &[u64], visit: &mut VisitItem<'_>) -> Result<()> {
        let log = self.log.read();
        for &position in positions {
            let Some((label, bytes)) = log.items.get(&position) else {
                continue;
            };
            let item = StoredItem {
                position,
                label: *label,
                bytes: bytes.clone(),
            };
            if visit(item).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn read_labels(&self, positions: &[u64], visit: &mut VisitLabel<'_>) -> Result<()> {
        let log = self.log.read();
        for &position in positions {
            if let Some((label, _)) = log.items.get(&position) {
                visit(position, *label);
            }
        }
        Ok(())
    }

    fn replace_items(&self, stubs: &[StoredItem]) -> Result<()> {
        let mut log = self.log.write();
        let missing = stubs
            .iter()
            .find(|stub| !log.items.contains_key(&stub.position));
        if let Some(stub) = missing {
            return Err(no_item(stub.position));
        }
        for stub in stubs {
            let item = (stub.label, stub.bytes.clone());
            log.items.insert(stub.position, item);
        }
        log.edit(&Edits::replacing(stubs));
        Ok(())
    }

    fn drop_items(&self, positions: &[Range<u64>]) -> Result<()> {
        let edits = Edits::dropping(positions);
        let mut log = self.log.write();
        log.items.retain(|position, _| !edits.drop(*position));
        log.edit(&edits);
        Ok(())
    }

    fn replay(
        &self,
        after_commit: u64,
        visit: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        let log = self.log.read();
        let first = log
            .records
            .partition_point(|record| record.last_commit() <= after_commit);
        log.records[first..].iter().try_for_each(visit)
    }

    fn snapshot(&self) -> Option<Snapshot> {
        let snapshot = self.snapshot.read();
        snapshot.as_ref().map(|(commit, entries)| Snapshot {
            commit: *commit,
            entries: entries.len() as u64,
            bytes: entries.iter().map(entry_bytes).sum(),
        })
    }

    fn write_snapshot(&self, commit: u64, fill: &mut Fill<'_>) -> Result<()> {
        let last = self.snapshot().map_or(0, |snapshot| snapshot.commit);
        let end = self.end().commit;
        if commit < last || commit > end {
            return Err(no_such_snapshot(commit, last, end));
        }
        let entries = Arc::new(filled(fill)?);
        *self.snapshot.write() = Some((commit, entries));
        self.log.write().drop_changes(commit);
        Ok(())
    }

    fn read_snapshot(&self, visit: &mut VisitEntry<'_>) -> Result<()> {
        let snapshot = self.snapshot.read().clone();
        let entries = snapshot.map(|(_, entries)| entries).unwrap_or_default();
        entries
            .iter()
            .try_for_each(|(key, value)| visit(key, value))
    }

    fn map(&self, name: &str) -> Result<Option<Arc<dyn Map>>> {
        let map = self.maps.read().get(name).map(Arc::clone);
        Ok(map.map(|map| map as Arc<dyn Map>))
    }

    fn map_names(&self) -> Result<Vec<String>> {
        Ok(self.maps.read().keys().cloned().collect())
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        let mut keys = batch.changes.iter().map(|(_, key, _)| key);
        keys.try_for_each(|key| check_key(key))?;
        for (name, key, value) in &batch.changes {
            let map = self.map_or_new(name);
            let mut entries = map.entries.write();
            let entries = Arc::make_mut(&mut entries);
            let key = Bytes::copy_from_slice(key);
            match value {
                Some(value) => entries.insert(key, Bytes::copy_from_slice(value)),
                None => entries.remove(&key),
            };
        }
        Ok(())
    }

    fn load(&self, name: &str, fill: &mut Fill<'_>) -> Result<()> {
        let entries = filled(&mut |sink| {
            fill(&mut |key, value| {
                check_key(&key)?;
                sink(key, value)
            })
        })?;
        let map = Arc::new(MemoryMap {
            entries: RwLock::new(Arc::new(entries)),
        });
        match self.maps.write().entry(name.to_owned()) {
            Slot::Occupied(_) => Err(Error::invalid(format!("map {name} exists already"))),
            Slot::Vacant(vacant) => {
                vacant.insert(map);
                Ok(())
            }
        }
    }

    fn drop_map(&self, name: &str) -> Result<()> {
        self.maps.write().remove(name);
        Ok(())
    }

    fn usage(&self) -> Result<Usage> {
        let log = self.log.read();
        let log_bytes = log.items.values().map(|(_, item)| item.len() as u64).sum();
        Ok(Usage {
            log_bytes,
            log_used_bytes: log_bytes,
            ..Usage::default()
        })
    }
}

/// The bytes of an entry.
fn entry_bytes((key, value): (&Bytes, &Bytes)) -> u64 {
    (key.len() + value.len()) as u64
}

/// How many entries of a map are copied out at a time.
const SCAN_PAGE: usize = 256;

impl Map for MemoryMap {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.entries.read().get(key).cloned())
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> Scan<'_> {
        let Some((lower, upper)) = range(from, to) else {
            return Box::new(std::iter::empty());
        };
        let entries = Arc::clone(&self.entries.read());
        let mut lower = lower.map(Bytes::copy_from_slice);
        let mut upper = upper.map(Bytes::copy_from_slice);
        let mut page: std::vec::IntoIter<Entry> = Vec::new().into_iter();
        Box::new(std::iter::from_fn(move || {
            if let Some(entry) = page.next() {
                return Some(Ok(entry));
            }
            if is_empty_range(&lower, &upper) {
                return None;
            }
            let range = entries.range((lower.clone(), upper.clone()));
            let copy = |(key, value): (&Bytes, &Bytes)| (key.clone(), value.clone());
            let next: Vec<Entry> = match direction {
                Direction::Forwards => range.take(SCAN_PAGE).map(copy).collect(),
                Direction::Backwards => range.rev().take(SCAN_PAGE).map(copy).collect(),
            };
            let last = next.last()?.0.clone();
            match direction {
                Direction::Forwards => lower = Bound::Excluded(last),
                Direction::Backwards => upper = Bound::Excluded(last),
            }
            page = next.into_iter();
            page.next().map(Ok)
        }))
    }

    fn moment(self: Arc<Self>) -> Result<Arc<dyn Map>> {
        let entries = Arc::clone(&self.entries.read());
        Ok(Arc::new(Self {
            entries: RwLock::new(entries),
        }))
    }
}

/// Whether `BTreeMap::range` would panic on these bounds.
fn is_empty_range(lower: &Bound<Bytes>, upper: &Bound<Bytes>) -> bool {
    match (lower, upper) {
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower >= upper,
        _ => false,
    }
}
