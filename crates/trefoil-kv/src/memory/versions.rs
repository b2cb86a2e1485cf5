//! An ordered map of which earlier versions can be read for as long as somebody holds them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use bytes::Bytes;
use trefoil_core::Direction;

use crate::contract::{KvBatch, KvPage};

/// The values that a key has had, oldest first, each with the version that set it; `None` is none.
type Values = Vec<(u64, Option<Bytes>)>;

/// Keys and their values in several versions.
#[derive(Debug, Default)]
pub(super) struct VersionedMap {
    entries: BTreeMap<Bytes, Values>,
    version: u64,
    /// The versions that are held, and by how many.
    held: BTreeMap<u64, usize>,
    /// Keys that were removed, and the versions that did so, oldest first.
    removed: VecDeque<(u64, Bytes)>,
}

fn at(values: &Values, version: u64) -> Option<&Bytes> {
    let newest = values.iter().rev().find(|(set, _)| *set <= version);
    newest.and_then(|(_, value)| value.as_ref())
}

/// Forgets what nobody can read who reads version `oldest` or a later one.
fn forget(values: &mut Values, oldest: u64) {
    let after = values.partition_point(|(set, _)| *set <= oldest);
    values.drain(..after.saturating_sub(1));
}

impl VersionedMap {
    /// Returns the newest version.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Keeps the newest version readable until it is let go.
    pub(super) fn hold(&mut self) -> u64 {
        *self.held.entry(self.version).or_default() += 1;
        self.version
    }

    /// Holds a version once more that is held.
    pub(super) fn hold_again(&mut self, version: u64) {
        *self.held.entry(version).or_default() += 1;
    }

    /// Lets a version go that was held.
    pub(super) fn let_go(&mut self, version: u64) {
        if let Some(holders) = self.held.get_mut(&version) {
            *holders -= 1;
            if *holders == 0 {
                self.held.remove(&version);
            }
        }
        self.sweep();
    }

    fn oldest(&self) -> u64 {
        let held = self.held.first_key_value();
        held.map_or(self.version, |(version, _)| *version)
    }

    /// Applies a batch as the next version.
    pub(super) fn apply(&mut self, batch: KvBatch) {
        self.version += 1;
        let oldest = self.oldest().min(self.version - 1);
        for (key, value) in batch.changes {
            if value.is_none() {
                self.removed.push_back((self.version, key.clone()));
            }
            let values = self.entries.entry(key).or_default();
            forget(values, oldest);
            values.retain(|(set, _)| *set != self.version);
            values.push((self.version, value));
        }
        self.sweep();
    }

    /// Forgets keys that nobody can read any more.
    fn sweep(&mut self) {
        let oldest = self.oldest();
        while let Some((version, key)) = self.removed.front() {
            if *version > oldest {
                break;
            }
            if let Some(values) = self.entries.get_mut(key) {
                forget(values, oldest);
                if matches!(values.as_slice(), [(_, None)] | []) {
                    self.entries.remove(key);
                }
            }
            self.removed.pop_front();
        }
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, key: &[u8], version: u64) -> Option<Bytes> {
        at(self.entries.get(key)?, version).cloned()
    }

    fn range(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        version: u64,
    ) -> impl DoubleEndedIterator<Item = (&Bytes, &Bytes)> {
        let entries = self.entries.range::<[u8], _>(bounds);
        entries.filter_map(move |(key, values)| Some((key, at(values, version)?)))
    }

    /// Returns the entry with the greatest key of a range, bounds included.
    pub(super) fn floor(&self, from: &[u8], to: &[u8], version: u64) -> Option<(Bytes, Bytes)> {
        if from > to {
            return None;
        }
        let bounds = (Bound::Included(from), Bound::Included(to));
        let found = self.range(bounds, version).next_back();
        found.map(|(key, value)| (key.clone(), value.clone()))
    }

    /// Returns part of a range.
    pub(super) fn scan(
        &self,
        (from, to): (&[u8], &[u8]),
        direction: Direction,
        max_bytes: usize,
        version: u64,
    ) -> KvPage {
        if from >= to {
            return KvPage::default();
        }
        let range = self.range((Bound::Included(from), Bound::Excluded(to)), version);
        match direction {
            Direction::Forwards => page(range, max_bytes),
            Direction::Backwards => page(range.rev(), max_bytes),
        }
    }

    /// Returns how many keys are kept, in whichever version.
    #[cfg(test)]
    fn n_keys(&self) -> usize {
        self.entries.len()
    }
}

fn page<'a>(mut entries: impl Iterator<Item = (&'a Bytes, &'a Bytes)>, max_bytes: usize) -> KvPage {
    let mut page = KvPage::default();
    let mut n_bytes = 0;
    for (key, value) in entries.by_ref() {
        n_bytes += key.len() + value.len();
        page.entries.push((key.clone(), value.clone()));
        if n_bytes >= max_bytes {
            break;
        }
    }
    page.has_more = entries.next().is_some();
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(map: &mut VersionedMap, key: &'static str, value: Option<&'static str>) {
        let changes = vec![(Bytes::from(key), value.map(Bytes::from))];
        map.apply(KvBatch { changes });
    }

    #[test]
    fn a_version_is_readable_while_it_is_held() {
        let mut map = VersionedMap::default();
        set(&mut map, "a", Some("1"));
        set(&mut map, "b", Some("1"));
        let held = map.hold();
        set(&mut map, "a", Some("2"));
        set(&mut map, "b", None);
        set(&mut map, "c", Some("1"));
        let all = |map: &VersionedMap, version| -> Vec<(Bytes, Bytes)> {
            map.scan((b"", b"z"), Direction::Forwards, usize::MAX, version)
                .entries
        };
        let pair = |key: &'static str, value: &'static str| (Bytes::from(key), Bytes::from(value));
        assert_eq!(all(&map, held), [pair("a", "1"), pair("b", "1")]);
        let newest = map.version();
        assert_eq!(all(&map, newest), [pair("a", "2"), pair("c", "1")]);
        assert_eq!(map.floor(b"", b"b", newest), Some(pair("a", "2")));
        assert_eq!(map.floor(b"", b"b", held), Some(pair("b", "1")));
        assert_eq!(map.n_keys(), 3);
        map.let_go(held);
        assert_eq!(map.n_keys(), 2, "nobody can read the removed key any more");
    }

    #[test]
    fn the_last_change_of_a_key_counts() {
        let mut map = VersionedMap::default();
        let change = |value: Option<&'static str>| (Bytes::from("a"), value.map(Bytes::from));
        let changes = vec![change(Some("1")), change(None), change(Some("3"))];
        map.apply(KvBatch { changes });
        assert_eq!(map.get(b"a", map.version()).unwrap(), "3");
        let changes = vec![change(Some("4")), change(None)];
        map.apply(KvBatch { changes });
        assert_eq!((map.get(b"a", map.version()), map.n_keys()), (None, 0));
    }
}
