//! What is known of removals: an entry for each stream, for each category, and for all of them.

use bytes::Bytes;
use trefoil_core::{Damage, Direction, Error, Result, category, put_varint, take_varint};
use trefoil_state::Space as _;

use super::retention::is_policy;
use crate::state::{DurableView, StoreReader, View};

/// What the keys of these entries begin with.
pub(super) const REMOVAL: u8 = b'd';

/// The entry about all that was removed.
pub(crate) const TOTAL: &[u8] = b"da";

/// What the keys about categories and streams begin with.
const CATEGORY: u8 = b'c';
const STREAM: u8 = b's';
/// What the keys of those begin with that say of which streams the log may still have removed events.
const PENDING: u8 = b'p';

/// Returns whether an entry is about removals, or about policies for them.
pub(crate) fn is_entry(key: &[u8]) -> bool {
    key.first() == Some(&REMOVAL)
}

/// Returns whether an entry tells of removed events, which are gone when all events are.
pub(crate) fn is_of_events(key: &[u8]) -> bool {
    is_entry(key) && !is_policy(key)
}

/// How many events and streams were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RemovedCounts {
    /// All that ever were.
    pub(crate) events: u64,
    /// Streams that have no event any more.
    pub(crate) streams: u64,
}

/// What was removed of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamRemoval {
    /// The first global position that is kept.
    pub(crate) floor: u64,
    /// The place in the stream of the first event that is kept.
    pub(crate) first_kept: u64,
    /// The version of the stream when something was removed last: the index may forget it.
    pub(crate) version: u64,
    /// How many events were removed.
    pub(crate) events: u64,
    /// Whether the stream has no event any more.
    pub(crate) is_empty: bool,
}

impl StreamRemoval {
    fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        for number in [self.floor, self.first_kept, self.version, self.events] {
            put_varint(&mut out, number);
        }
        put_varint(&mut out, u64::from(self.is_empty));
        out.into()
    }

    fn decode(mut value: &[u8]) -> Option<Self> {
        let value = &mut value;
        Some(Self {
            floor: take_varint(value)?,
            first_kept: take_varint(value)?,
            version: take_varint(value)?,
            events: take_varint(value)?,
            is_empty: take_varint(value)? != 0,
        })
    }
}

impl RemovedCounts {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.events);
        put_varint(out, self.streams);
    }

    fn decode(value: &mut &[u8]) -> Option<Self> {
        Some(Self {
            events: take_varint(value)?,
            streams: take_varint(value)?,
        })
    }

    /// Counts what changes between two entries of a stream.
    fn change(&mut self, before: Option<StreamRemoval>, after: StreamRemoval) {
        self.events += after.events - before.map_or(0, |before| before.events);
        let was_empty = before.is_some_and(|before| before.is_empty);
        match (was_empty, after.is_empty) {
            (false, true) => self.streams += 1,
            (true, false) => self.streams = self.streams.saturating_sub(1),
            _ => {}
        }
    }
}

/// What was removed of a namespace.
#[derive(Debug, Clone, Copy, Default)]
struct RemovedTotal {
    highest_floor: u64,
    counts: RemovedCounts,
}

impl RemovedTotal {
    fn decode(mut value: &[u8]) -> Option<Self> {
        Some(Self {
            highest_floor: take_varint(&mut value)?,
            counts: RemovedCounts::decode(&mut value)?,
        })
    }
}

fn key(kind: u8, name: &str) -> Bytes {
    let mut key = Vec::with_capacity(2 + name.len());
    key.extend_from_slice(&[REMOVAL, kind]);
    key.extend_from_slice(name.as_bytes());
    key.into()
}

/// Returns the highest floor, by the entry about all that was removed.
pub(crate) fn highest_floor(total: Option<&[u8]>) -> Result<u64> {
    let total = read(total, "of all streams", RemovedTotal::decode)?;
    Ok(total.map_or(0, |total| total.highest_floor))
}

/// Returns what was removed of a stream.
pub(crate) fn stream_removal(entries: &StoreReader, stream: &str) -> Result<Option<StreamRemoval>> {
    let value = entries.get(&key(STREAM, stream))?;
    read(value.as_deref(), stream, StreamRemoval::decode)
}

/// Returns how much was removed of a category.
pub(crate) fn removed_in_category(entries: &StoreReader, category: &str) -> Result<RemovedCounts> {
    let value = entries.get(&key(CATEGORY, category))?;
    let decode = |mut value: &[u8]| RemovedCounts::decode(&mut value);
    Ok(read(value.as_deref(), category, decode)?.unwrap_or_default())
}

/// Returns how much was removed in all.
pub(crate) fn removed_in_total(entries: &StoreReader) -> Result<RemovedCounts> {
    let value = entries.get(TOTAL)?;
    let total = read(value.as_deref(), "of all streams", RemovedTotal::decode)?;
    Ok(total.unwrap_or_default().counts)
}

impl View {
    /// Returns what was removed of a stream.
    pub(crate) fn stream_removal(&self, stream: &str) -> Result<Option<StreamRemoval>> {
        let value = self.get(&key(STREAM, stream))?;
        read(value.as_deref(), stream, StreamRemoval::decode)
    }

    /// Notes what is removed of a stream, and counts it.
    pub(crate) fn set_stream_removal(&mut self, stream: &str, after: StreamRemoval) -> Result<()> {
        let before = self.stream_removal(stream)?;
        self.put(key(STREAM, stream), after.encode())?;
        let category = category(stream);
        let category_key = key(CATEGORY, category);
        let value = self.get(&category_key)?;
        let decode = |mut value: &[u8]| RemovedCounts::decode(&mut value);
        let mut counts = read(value.as_deref(), category, decode)?.unwrap_or_default();
        counts.change(before, after);
        let mut out = Vec::new();
        counts.encode(&mut out);
        self.put(category_key, out.into())?;
        let value = self.get(TOTAL)?;
        let total = read(value.as_deref(), "of all streams", RemovedTotal::decode)?;
        let mut total = total.unwrap_or_default();
        total.counts.change(before, after);
        let mut out = Vec::new();
        put_varint(&mut out, total.highest_floor.max(after.floor));
        total.counts.encode(&mut out);
        self.put(Bytes::from_static(TOTAL), out.into())
    }

    /// Notes that the log has removed events of a stream, since now unless it has had some before.
    pub(crate) fn set_pending(&mut self, stream: &str, now: u64) -> Result<()> {
        let key = key(PENDING, stream);
        if self.get(&key)?.is_some() {
            return Ok(());
        }
        self.leave_upkeep();
        self.put(key, since(now))
    }

    /// Notes that the log has nothing left of a stream before this floor. If more was removed meanwhile,
    /// that waits from now on.
    pub(crate) fn end_pending(&mut self, stream: &str, floor: u64, now: u64) -> Result<()> {
        let removal = self.stream_removal(stream)?;
        let is_done = removal.is_none_or(|removal| removal.floor <= floor);
        self.set(key(PENDING, stream), (!is_done).then(|| since(now)))
    }

    /// Notes that a stream without events gets one.
    pub(crate) fn revive(&mut self, stream: &str) -> Result<()> {
        match self.stream_removal(stream)? {
            Some(removal) if removal.is_empty => self.set_stream_removal(
                stream,
                StreamRemoval {
                    is_empty: false,
                    ..removal
                },
            ),
            _ => Ok(()),
        }
    }
}

fn since(now: u64) -> Bytes {
    let mut value = Vec::new();
    put_varint(&mut value, now);
    value.into()
}

/// A stream of which the log may still have removed events.
#[derive(Debug)]
pub(crate) struct PendingRemoval {
    pub(crate) stream: String,
    /// Since when, in milliseconds since 1970.
    pub(crate) since: u64,
}

/// Returns the streams of which the log may still have removed events, by name.
pub(crate) fn pending_removals(
    entries: &DurableView,
) -> impl Iterator<Item = Result<PendingRemoval>> + '_ {
    entries_of(entries, PENDING).map(|entry| {
        let (stream, value) = entry?;
        let since = read(Some(&value), &stream, |mut value| take_varint(&mut value))?;
        let since = since.unwrap_or(0);
        Ok(PendingRemoval { stream, since })
    })
}

/// Returns all streams of which something was removed.
pub(crate) fn all_stream_removals(
    entries: &DurableView,
) -> impl Iterator<Item = Result<(String, StreamRemoval)>> + '_ {
    entries_of(entries, STREAM).filter_map(|entry| {
        let read_one = |(stream, value): (String, Bytes)| {
            let removal = read(Some(&value), &stream, StreamRemoval::decode)?;
            Ok(removal.map(|removal| (stream, removal)))
        };
        entry.and_then(read_one).transpose()
    })
}

/// Returns the entries of a kind with the names that they are about.
fn entries_of(
    entries: &DurableView,
    kind: u8,
) -> impl Iterator<Item = Result<(String, Bytes)>> + '_ {
    let found = entries.scan(&[REMOVAL, kind], &[REMOVAL, kind + 1], Direction::Forwards);
    found.map(|entry| {
        let (key, value) = entry?;
        Ok((String::from_utf8_lossy(&key[2..]).into_owned(), value))
    })
}

/// Reads the value of an entry, if there is one.
pub(super) fn read<T>(
    value: Option<&[u8]>,
    of: &str,
    decode: impl Fn(&[u8]) -> Option<T>,
) -> Result<Option<T>> {
    let damaged = || {
        Error::Damaged(Box::new(Damage {
            file: "maps".into(),
            offset: 0,
            position: 0,
            what: format!("unreadable entry about what was removed of {of:?}"),
            help: "run `trefoil repair`, which rebuilds the maps from the log".to_owned(),
        }))
    };
    value
        .map(|value| decode(value).ok_or_else(damaged))
        .transpose()
}

/// Returns of which stream an entry of this name tells, if it tells of one; `None` if it is not about
/// removals.
pub(crate) fn subject_of_entry(name: &[u8]) -> Option<Option<String>> {
    let rest = name.strip_prefix(&[REMOVAL])?;
    let stream = rest.strip_prefix(&[STREAM]);
    Some(stream.map(|stream| String::from_utf8_lossy(stream).into_owned()))
}
