//! How many of the removed events the index does not have any more.
//!
//! Entries of the state count all events that were ever removed of a category. The index counts those
//! that it has. So that the difference is right, it is kept beside the index how many events and
//! streams of each category it has lost. If that is not known, as after the index was made again of a
//! log that has dropped events, it is counted.

use std::collections::BTreeMap;

use trefoil_core::{Direction, Result, category, put_varint, take_varint};
use trefoil_storage::{Batch, Storage};

use super::entries::{StreamRemoval, all_stream_removals, removed_in_category, removed_in_total};
use crate::index::{Layers, RunLoss, TermKind, TermLookup, damaged_maps};
use crate::read::label;
use crate::state::{DurableView, StateStore};

/// The map that holds the counts, and the key of those of all events. Those of categories have a
/// letter before their names.
const MAP: &str = "lost";
const ALL: &[u8] = b"a";
const CATEGORY: u8 = b'c';

/// How many events are looked for at a time.
const PAGE: usize = 4096;

/// How many removed events the index does not have any more, and by how many streams it counts
/// too few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LostCounts {
    pub(crate) events: u64,
    pub(crate) streams: i64,
}

impl LostCounts {
    /// Returns how many streams there are, if the index counts so many and so many have no events any
    /// more.
    pub(crate) fn n_streams(self, in_index: u64, removed: u64) -> u64 {
        in_index
            .saturating_add_signed(self.streams)
            .saturating_sub(removed)
    }

    fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.events);
        out.extend_from_slice(&self.streams.to_le_bytes());
        out
    }

    fn decode(mut value: &[u8]) -> Option<Self> {
        let events = take_varint(&mut value)?;
        let streams = i64::from_le_bytes(value.try_into().ok()?);
        Some(Self { events, streams })
    }
}

/// What the index has lost, of all events and of each category.
#[derive(Debug, Clone, Default)]
pub(crate) struct LostEvents {
    pub(crate) all: LostCounts,
    pub(crate) categories: BTreeMap<String, LostCounts>,
}

impl LostEvents {
    /// Reads what is known; `None` if nothing is.
    fn load(storage: &dyn Storage) -> Result<Option<Self>> {
        let Some(map) = storage.map(MAP)? else {
            return Ok(None);
        };
        let damaged = || damaged_maps("unreadable counts of lost events".to_owned());
        let (mut lost, mut is_known) = (Self::default(), false);
        for entry in map.scan(&[], &[], Direction::Forwards) {
            let (key, value) = entry?;
            let counts = LostCounts::decode(&value).ok_or_else(damaged)?;
            match key.strip_prefix(&[CATEGORY]) {
                Some(name) => {
                    let name = std::str::from_utf8(name).map_err(|_| damaged())?;
                    lost.categories.insert(name.to_owned(), counts);
                }
                None => (lost.all, is_known) = (counts, true),
            }
        }
        Ok(is_known.then_some(lost))
    }

    /// Adds to a batch what makes this known.
    pub(crate) fn fill(&self, batch: &mut Batch) {
        batch.put(MAP, ALL, self.all.encode());
        for (name, counts) in &self.categories {
            let key = [&[CATEGORY], name.as_bytes()].concat();
            batch.put(MAP, key, counts.encode());
        }
    }

    /// Returns this and what a run has lost.
    pub(crate) fn with(&self, loss: &RunLoss) -> Self {
        let mut lost = self.clone();
        lost.all.events += loss.events;
        lost.all.streams += loss.streams as i64;
        for (name, (events, streams)) in &loss.categories {
            let counts = lost.categories.entry(name.clone()).or_default();
            counts.events += events;
            counts.streams += *streams as i64;
        }
        lost
    }

    /// Makes this known, if nothing is known yet.
    pub(crate) fn keep(&self, storage: &dyn Storage) -> Result<()> {
        if Self::load(storage)?.is_some() {
            return Ok(());
        }
        let mut batch = Batch::default();
        self.fill(&mut batch);
        storage.write(&batch)
    }

    /// Returns what the index has lost. It is counted, and kept, if it is not known.
    pub(crate) fn find(storage: &dyn Storage, layers: &Layers, store: &StateStore) -> Result<Self> {
        if store.highest_floor() == 0 {
            return Ok(Self::default());
        }
        if let Some(lost) = Self::load(storage)? {
            return Ok(lost);
        }
        let lost = count(storage, layers, store)?;
        lost.keep(storage)?;
        Ok(lost)
    }
}

/// What the index still has of what was removed.
#[derive(Default)]
struct LeftCounts {
    events: u64,
    /// First events of streams, less the streams that still have events.
    streams: i64,
}

fn count(storage: &dyn Storage, layers: &Layers, store: &StateStore) -> Result<LostEvents> {
    let mut left: BTreeMap<String, LeftCounts> = BTreeMap::new();
    let view = DurableView::new(store);
    for entry in all_stream_removals(&view) {
        let (stream, removal) = entry?;
        let left = left.entry(category(&stream).to_owned()).or_default();
        count_stream(storage, layers, &stream, &removal, left)?;
    }
    let entries = store.read();
    let removed = removed_in_total(&entries)?;
    let lost = |removed: super::RemovedCounts, left: &LeftCounts| LostCounts {
        events: removed.events.saturating_sub(left.events),
        streams: removed.streams as i64 - left.streams,
    };
    let all = LeftCounts {
        events: left.values().map(|left| left.events).sum(),
        streams: left.values().map(|left| left.streams).sum(),
    };
    let mut categories = BTreeMap::new();
    for (name, left) in &left {
        let counts = lost(removed_in_category(&entries, name)?, left);
        categories.insert(name.clone(), counts);
    }
    Ok(LostEvents {
        all: lost(removed, &all),
        categories,
    })
}

/// Counts what the index has of a stream before its floor.
fn count_stream(
    storage: &dyn Storage,
    layers: &Layers,
    stream: &str,
    removal: &StreamRemoval,
    left: &mut LeftCounts,
) -> Result<()> {
    if !removal.is_empty {
        left.streams -= 1;
    }
    let mut term = TermLookup::new(layers, TermKind::Stream, stream);
    let (mut from, mut page) = (1, Vec::with_capacity(PAGE));
    loop {
        page.clear();
        term.page(from, Direction::Forwards, PAGE, &mut page)?;
        let is_last = page.len() < PAGE;
        page.retain(|position| *position < removal.floor);
        left.events += page.len() as u64;
        storage.read_labels(&page, &mut |_, found| {
            left.streams += i64::from(label::is_new_stream(found));
        })?;
        match page.last() {
            Some(last) if !is_last && page.len() == PAGE => from = last + 1,
            _ => return Ok(()),
        }
    }
}
