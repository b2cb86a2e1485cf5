//! One namespace's log, maps and snapshot.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use trefoil::{Direction, Error, Result};
use trefoil_storage::{
    Batch, Completer, Completion, Entry, Fill, Group, Items, KEY_BYTES_MAX, Label, LogEnd, Map,
    Record, Scan, Snapshot, Storage, StoredItem, VisitEntry, VisitItem,
};

/// What is kept of a namespace, whether it is open or not.
#[derive(Debug, Default)]
pub(crate) struct Data {
    records: Vec<Record>,
    end: LogEnd,
    snapshot: Option<(Snapshot, SortedEntries)>,
    maps: BTreeMap<String, Arc<VecMap>>,
}

/// In the order of their keys.
type SortedEntries = Vec<Entry>;

/// A namespace in a `Vec`.
#[derive(Debug)]
pub struct VecStorage {
    data: Arc<RwLock<Data>>,
    appends: Mutex<mpsc::Sender<(Group, Completer)>>,
}

impl Default for VecStorage {
    fn default() -> Self {
        Self::open(Arc::default())
    }
}

impl VecStorage {
    /// Opens the same namespace again.
    pub fn reopen(&self) -> Self {
        Self::open(Arc::clone(&self.data))
    }

    pub(crate) fn open(data: Arc<RwLock<Data>>) -> Self {
        let (appends, appending) = mpsc::channel::<(Group, Completer)>();
        let (appended, appends) = (Arc::clone(&data), Mutex::new(appends));
        // The thread ends when the storage, and with it the sender, is dropped.
        std::thread::spawn(move || {
            for (group, completer) in appending {
                completer.complete(appended.write().append(group));
            }
        });
        Self { data, appends }
    }
}

impl Data {
    fn append(&mut self, group: Group) -> Result<()> {
        let lacks = |record: &Record| record.changes_dropped || record.items.has_dropped();
        if group.records.iter().any(lacks) {
            return Err(Error::invalid("the record is not complete"));
        }
        for record in group.records {
            self.end.commit = record.last_commit();
            self.end.position = self.end.position.max(record.end_position() - 1);
            self.records.push(record);
        }
        Ok(())
    }

    /// Returns the item at a position, if there is one.
    fn item(&self, position: u64) -> Option<StoredItem> {
        let after = self
            .records
            .partition_point(|record| record.first_position <= position);
        let has_it = |record: &&Record| record.end_position() > position;
        let record = self.records[..after].iter().rev().find(has_it)?;
        let index = usize::try_from(position - record.first_position).ok()?;
        let (label, bytes) = record.items.iter().nth(index)??;
        Some(stored(position, label, bytes))
    }

    /// Puts other items in the place of those that there are; `None` drops one.
    fn edit(&mut self, edit: impl Fn(StoredItem) -> Option<StoredItem>) {
        for record in &mut self.records {
            let mut items = Items::default();
            for (position, item) in (record.first_position..).zip(record.items.iter()) {
                match item.and_then(|(label, bytes)| edit(stored(position, label, bytes))) {
                    Some(item) => items.push(item.label, &item.bytes),
                    None => items.push_dropped(),
                }
            }
            record.items = items;
        }
    }
}

fn stored(position: u64, label: Label, bytes: &[u8]) -> StoredItem {
    let bytes = Bytes::copy_from_slice(bytes);
    StoredItem {
        position,
        label,
        bytes,
    }
}

fn check_key(key: &[u8]) -> Result<()> {
    match (1..=KEY_BYTES_MAX).contains(&key.len()) {
        true => Ok(()),
        false => Err(Error::invalid("the key is empty or too long")),
    }
}

/// Returns the entries that `fill` hands over.
fn filled(fill: &mut Fill<'_>, check: impl Fn(&[u8]) -> Result<()>) -> Result<SortedEntries> {
    let mut entries = SortedEntries::new();
    fill(&mut |key, value| {
        check(&key)?;
        if entries.last().is_some_and(|(last, _)| last[..] >= key[..]) {
            return Err(Error::invalid("the keys must ascend"));
        }
        entries.push((key.into(), value.into()));
        Ok(())
    })?;
    Ok(entries)
}

impl Storage for VecStorage {
    fn append(&self, group: &Group) -> Completion {
        let (completer, completion) = Completion::later();
        // If the thread is gone, the completer is dropped, which says that the outcome is unknown.
        drop(self.appends.lock().send((group.clone(), completer)));
        completion
    }

    fn end(&self) -> LogEnd {
        self.data.read().end
    }

    fn read(&self, positions: &[u64], visit: &mut VisitItem<'_>) -> Result<()> {
        let data = self.data.read();
        let mut items = positions.iter().filter_map(|position| data.item(*position));
        // Breaking off is no failure.
        let _ = items.try_for_each(visit);
        Ok(())
    }

    fn replace_items(&self, stubs: &[StoredItem]) -> Result<()> {
        let mut data = self.data.write();
        if let Some(stub) = stubs.iter().find(|stub| data.item(stub.position).is_none()) {
            let position = stub.position;
            return Err(Error::invalid(format!("no item at position {position}")));
        }
        data.edit(|item| {
            let stub = stubs.iter().find(|stub| stub.position == item.position);
            Some(stub.cloned().unwrap_or(item))
        });
        Ok(())
    }

    fn drop_items(&self, positions: &[Range<u64>]) -> Result<()> {
        let is_dropped = |position| positions.iter().any(|range| range.contains(&position));
        self.data
            .write()
            .edit(|item| (!is_dropped(item.position)).then_some(item));
        Ok(())
    }

    fn replay(&self, after: u64, visit: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
        let data = self.data.read();
        let is_wanted = |record: &&Record| record.last_commit() > after;
        data.records.iter().filter(is_wanted).try_for_each(visit)
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.data.read().snapshot.as_ref().map(|(info, _)| *info)
    }

    fn write_snapshot(&self, commit: u64, fill: &mut Fill<'_>) -> Result<()> {
        let last = self.snapshot().map_or(0, |snapshot| snapshot.commit);
        if !(last..=self.end().commit).contains(&commit) {
            return Err(Error::invalid("there can be no snapshot of this commit"));
        }
        let entries = filled(fill, |_| Ok(()))?;
        let bytes = entries.iter().map(|(key, value)| key.len() + value.len());
        let info = Snapshot {
            commit,
            entries: entries.len() as u64,
            bytes: bytes.sum::<usize>() as u64,
        };
        // The changes up to the commit may be dropped now; this storage keeps them.
        self.data.write().snapshot = Some((info, entries));
        Ok(())
    }

    fn read_snapshot(&self, visit: &mut VisitEntry<'_>) -> Result<()> {
        let data = self.data.read();
        let entries = data.snapshot.iter().flat_map(|(_, entries)| entries);
        { entries }.try_for_each(|(key, value)| visit(key, value))
    }

    fn map(&self, name: &str) -> Result<Option<Arc<dyn Map>>> {
        let map = self.data.read().maps.get(name).map(Arc::clone);
        Ok(map.map(|map| map as Arc<dyn Map>))
    }

    fn map_names(&self) -> Result<Vec<String>> {
        Ok(self.data.read().maps.keys().cloned().collect())
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        let mut keys = batch.changes.iter().map(|(_, key, _)| key);
        keys.try_for_each(|key| check_key(key))?;
        let mut data = self.data.write();
        for (name, key, value) in &batch.changes {
            let map = data.maps.entry(name.clone()).or_default();
            let mut entries = map.entries.write();
            let entries = Arc::make_mut(&mut entries);
            let place = entries.binary_search_by(|(found, _)| found[..].cmp(key));
            match (place, value) {
                (Ok(at), Some(value)) => entries[at].1 = value.clone().into(),
                (Ok(at), None) => drop(entries.remove(at)),
                (Err(at), Some(value)) => {
                    let entry = (key.clone().into(), value.clone().into());
                    entries.insert(at, entry);
                }
                (Err(_), None) => {}
            }
        }
        Ok(())
    }

    fn load(&self, name: &str, fill: &mut Fill<'_>) -> Result<()> {
        let entries = RwLock::new(Arc::new(filled(fill, check_key)?));
        let maps = &mut self.data.write().maps;
        if maps.contains_key(name) {
            return Err(Error::invalid(format!("map {name} exists already")));
        }
        maps.insert(name.to_owned(), Arc::new(VecMap { entries }));
        Ok(())
    }

    fn drop_map(&self, name: &str) -> Result<()> {
        self.data.write().maps.remove(name);
        Ok(())
    }
}

/// An ordered map. Whoever walks over it holds the entries of that moment.
#[derive(Debug, Default)]
struct VecMap {
    entries: RwLock<Arc<SortedEntries>>,
}

impl Map for VecMap {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let entries = self.entries.read();
        let place = entries.binary_search_by(|(found, _)| found[..].cmp(key));
        Ok(place.ok().map(|at| entries[at].1.clone()))
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> Scan<'_> {
        let entries = Arc::clone(&self.entries.read());
        let place = |key: &[u8]| entries.partition_point(|(found, _)| found[..] < *key);
        let end = match to {
            [] => entries.len(),
            to => place(to),
        };
        let mut left = place(from)..end;
        Box::new(std::iter::from_fn(move || {
            let at = match direction {
                Direction::Forwards => left.next(),
                Direction::Backwards => left.next_back(),
            };
            at.map(|at| Ok(entries[at].clone()))
        }))
    }

    fn moment(self: Arc<Self>) -> Result<Arc<dyn Map>> {
        let entries = Arc::clone(&self.entries.read());
        let entries = RwLock::new(entries);
        Ok(Arc::new(Self { entries }))
    }
}
