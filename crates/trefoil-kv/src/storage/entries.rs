//! The entries of maps in the store.
//!
//! An entry is a key of the store, unless its key is too long for that. Entries with long keys that begin
//! alike lie together in one value, a *bucket*, under what they have in common. A key of the store
//! that is as long as it may be is always that of a bucket, so that both sort as the entries do.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use trefoil_core::{Direction, Result, put_bytes, take_bytes};
use trefoil_storage::{Entry, KEY_BYTES_MAX};

use crate::contract::{KvLimits, KvRead};

use super::errors::{damaged, failed};
use super::keys::{HEAD_BYTES, Tag, own_part};
use super::store::{OpenStore, next_key};

/// The bytes of a map's number in a key.
const NUMBER_BYTES: usize = 8;
/// How much of a map a scan reads first, and how much at most at a time.
const PAGE_BYTES_FIRST: usize = 4 * 1024;
const PAGE_BYTES_MAX: usize = 512 * 1024;

/// What the long keys of a bucket have besides what they begin with, and their values.
pub(super) type Bucket = BTreeMap<Bytes, Bytes>;

/// Returns how long the key of an entry is in the store, at most: then it is that of a bucket.
fn bucket_bytes(limits: &KvLimits) -> usize {
    let longest = KEY_BYTES_MAX + 1;
    let room = limits.key_bytes.saturating_sub(HEAD_BYTES + NUMBER_BYTES);
    // One byte less: the key after it is asked for, too.
    room.saturating_sub(1).clamp(1, longest)
}

/// Where an entry is in the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryPlace {
    /// Under a key of its own.
    Alone(Bytes),
    /// In a bucket, under the rest of its key.
    InBucket(Bytes, Bytes),
}

/// Returns where the entry with this key is.
pub(super) fn place(store: &OpenStore, map: u64, key: &[u8]) -> EntryPlace {
    match key.split_at_checked(bucket_bytes(&store.limits)) {
        Some((common, rest)) => {
            let bucket = store.keys.within(Tag::Entry, map, common);
            EntryPlace::InBucket(bucket, Bytes::copy_from_slice(rest))
        }
        None => EntryPlace::Alone(store.keys.within(Tag::Entry, map, key)),
    }
}

pub(super) fn encode_bucket(bucket: &Bucket) -> Vec<u8> {
    let mut out = Vec::new();
    for (rest, value) in bucket {
        put_bytes(&mut out, rest);
        put_bytes(&mut out, value);
    }
    out
}

fn decode_bucket(mut content: &[u8]) -> Option<Bucket> {
    let mut bucket = Bucket::new();
    while !content.is_empty() {
        let rest = Bytes::copy_from_slice(take_bytes(&mut content)?);
        let value = Bytes::copy_from_slice(take_bytes(&mut content)?);
        bucket.insert(rest, value);
    }
    Some(bucket)
}

/// Returns the bucket under a key, if there is one.
pub(super) fn read_bucket(
    store: &OpenStore,
    read: &dyn KvRead,
    key: &Bytes,
) -> Result<Option<Bucket>> {
    let content = read_content(store, read, key)?;
    let bucket = content.map(|content| {
        decode_bucket(&content).ok_or_else(|| damaged(key, "entries are not whole"))
    });
    bucket.transpose()
}

/// Returns the content under a key. If a long value is replaced meanwhile, it is read again.
fn read_content(store: &OpenStore, read: &dyn KvRead, key: &Bytes) -> Result<Option<Bytes>> {
    let mut last: Option<Bytes> = None;
    loop {
        let found = read.get(&[key]).map_err(failed("reading a map"))?;
        let Some(value) = found.into_iter().flatten().next() else {
            return Ok(None);
        };
        if let Some(content) = store.cells.content(read, key, &value)? {
            return Ok(Some(content));
        }
        if last.as_ref() == Some(&value) {
            return Err(damaged(key, "parts of the value are missing"));
        }
        last = Some(value);
    }
}

/// Returns the value of a key of a map.
pub(super) fn get(
    store: &OpenStore,
    read: &dyn KvRead,
    map: u64,
    key: &[u8],
) -> Result<Option<Bytes>> {
    match place(store, map, key) {
        EntryPlace::Alone(key) => read_content(store, read, &key),
        EntryPlace::InBucket(key, rest) => {
            let bucket = read_bucket(store, read, &key)?;
            Ok(bucket.and_then(|mut bucket| bucket.remove(&rest)))
        }
    }
}

/// A walk over the entries of a map at one moment.
pub(super) struct EntryWalk {
    store: Arc<OpenStore>,
    moment: Arc<dyn KvRead>,
    direction: Direction,
    /// What is left of the map, in keys of the store.
    left: Option<(Bytes, Bytes)>,
    /// The keys that are wanted; an empty end is that of the map.
    from: Vec<u8>,
    to: Vec<u8>,
    page: std::vec::IntoIter<Entry>,
    page_bytes: usize,
}

impl EntryWalk {
    pub(super) fn new(
        store: &Arc<OpenStore>,
        moment: Arc<dyn KvRead>,
        map: u64,
        (from, to): (&[u8], &[u8]),
        direction: Direction,
    ) -> Self {
        let lower = match place(store, map, from) {
            EntryPlace::Alone(key) | EntryPlace::InBucket(key, _) => key,
        };
        let upper = match place(store, map, to) {
            _ if to.is_empty() => store.keys.after(Tag::Entry, map),
            EntryPlace::Alone(key) => key,
            EntryPlace::InBucket(key, _) => next_key(&key),
        };
        Self {
            store: Arc::clone(store),
            moment,
            direction,
            left: (lower < upper).then_some((lower, upper)),
            from: from.to_vec(),
            to: to.to_vec(),
            page: Vec::new().into_iter(),
            page_bytes: PAGE_BYTES_FIRST,
        }
    }

    /// Reads the next page. Returns whether there may be another one after it.
    fn read_on(&mut self) -> Result<bool> {
        let Some((from, to)) = self.left.take() else {
            return Ok(false);
        };
        let scan = self
            .moment
            .scan(&from, &to, self.direction, self.page_bytes, true);
        let page = scan.map_err(failed("reading a map"))?;
        self.page_bytes = (self.page_bytes * 4).min(PAGE_BYTES_MAX);
        let last = page.entries.last().filter(|_| page.has_more);
        self.left = last.map(|(last, _)| match self.direction {
            Direction::Forwards => (next_key(last), to),
            Direction::Backwards => (from, last.clone()),
        });
        let mut entries = Vec::with_capacity(page.entries.len());
        for (key, value) in page.entries {
            self.unpack(&key, &value, &mut entries)?;
        }
        self.page = entries.into_iter();
        Ok(true)
    }

    /// Adds what is under a key of the store.
    fn unpack(&self, key: &Bytes, value: &Bytes, entries: &mut Vec<Entry>) -> Result<()> {
        let content = self.store.cells.settled(&*self.moment, key, value)?;
        let own = key.slice(key.len() - own_part(key).len()..);
        let name = own.slice(NUMBER_BYTES.min(own.len())..);
        if name.len() < bucket_bytes(&self.store.limits) {
            entries.push((name, content));
            return Ok(());
        }
        let bucket = decode_bucket(&content);
        let bucket = bucket.ok_or_else(|| damaged(key, "entries are not whole"))?;
        let whole = |(rest, value): (Bytes, Bytes)| ([&name[..], &rest].concat().into(), value);
        let is_wanted = |(key, _): &Entry| {
            key[..] >= self.from[..] && (self.to.is_empty() || key[..] < self.to[..])
        };
        let bucket = bucket.into_iter().map(whole).filter(is_wanted);
        match self.direction {
            Direction::Forwards => entries.extend(bucket),
            Direction::Backwards => entries.extend(bucket.collect::<Vec<_>>().into_iter().rev()),
        }
        Ok(())
    }
}

impl Iterator for EntryWalk {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        loop {
            if let Some(entry) = self.page.next() {
                return Some(Ok(entry));
            }
            match self.read_on() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
