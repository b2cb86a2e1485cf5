//! Dropping removed events from the log for good, in the background.
//!
//! A stream of which something was removed is noted as pending until the log has nothing left of it.
//! A pass looks for what is left, and drops it where that pays: a part of the log that holds it is
//! written again, so a part is left alone until enough of it is gone or has waited for long enough.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use trefoil_core::{Direction, Result};
use trefoil_storage::{Storage, Upkeep};

use super::entries::{PendingRemoval, pending_removals, stream_removal};
use crate::database::engine::Engine;
use crate::index::{Layers, TermKind, TermLookup};
use crate::state::DurableView;
use crate::time::NEVER;
use crate::write::Work;

/// How many milliseconds removed events stay in the log at least, so that more are dropped together.
const DELAY: u64 = 10 * 60 * 1000;
/// After how many milliseconds they are dropped whatever it costs.
const OVERDUE: u64 = 24 * 60 * 60 * 1000;
/// After how many milliseconds it is tried again if the writer is busy or something failed.
const RETRY: u64 = 60 * 1000;

/// A segment is written again when one in so many of its events is to be dropped.
const PAYS_PART: u64 = 8;

/// How many streams, and about how many events, one pass drops at most.
const STREAMS_MAX: usize = 10_000;
const EVENTS_MAX: usize = 2_000_000;
/// How many events are looked for at a time.
const PAGE: usize = 4096;
/// How many streams one commit says are done.
const STREAMS_PER_COMMIT: usize = 512;

/// A stream of which the log has nothing left before its floor.
#[derive(Debug)]
pub(crate) struct DroppedStream {
    pub(crate) stream: String,
    /// The floor that it had when that was found out.
    pub(crate) floor: u64,
}

/// What a pass has found in the log that is to be dropped.
#[derive(Debug, Default)]
struct RemovedItems {
    positions: Vec<u64>,
    /// The streams, each with where its positions are among those.
    streams: Vec<(DroppedStream, Range<usize>)>,
    /// Whether there is more than a pass takes.
    is_cut: bool,
}

impl Engine {
    /// Returns when removed events are to be dropped.
    pub(crate) fn drop_deadline(&self) -> u64 {
        self.removal.drop_due.load(Ordering::Relaxed)
    }

    /// Notes that something was removed, if that is so.
    pub(crate) fn note_removals(&self) {
        if self.store.take_new_removals() {
            let due = self.clock().now().millis() + DELAY;
            self.removal.drop_due.fetch_min(due, Ordering::Relaxed);
        }
    }

    /// Finds out when removed events are to be dropped, of a database that was just opened.
    pub(crate) fn find_drop_deadline(&self) -> Result<()> {
        if self.store.highest_floor() > 0 {
            let due = self.oldest_pending()?.map_or(NEVER, |since| since + DELAY);
            self.removal.drop_due.store(due, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns since when removed events wait to be dropped.
    fn oldest_pending(&self) -> Result<Option<u64>> {
        let pending = pending_removals(&DurableView::new(&self.store), STREAMS_MAX)?;
        Ok(pending.iter().map(|pending| pending.since).min())
    }

    /// It is tried again after a while, unless what follows finds out when.
    pub(crate) fn put_off_dropping(&self, now: u64) {
        self.removal.drop_due.store(now + RETRY, Ordering::Relaxed);
    }

    /// Drops removed events that have waited for long enough.
    pub(crate) fn drop_or_wait(self: &Arc<Self>, is_busy: bool) -> Result<Upkeep> {
        let now = self.clock().now().millis();
        self.put_off_dropping(now);
        let oldest = self.oldest_pending()?;
        if let Some(age) = oldest.map(|since| now.saturating_sub(since)) {
            if age < DELAY || is_busy && age < OVERDUE {
                return Ok(Upkeep::Done);
            }
            if self.drop_removed(age >= OVERDUE)? {
                return Ok(Upkeep::More);
            }
        }
        let due = self.oldest_pending()?.map_or(NEVER, |since| {
            let later = self.clock().now().millis() + DELAY;
            later.min(since + OVERDUE)
        });
        self.removal.drop_due.store(due, Ordering::Relaxed);
        Ok(Upkeep::Done)
    }

    /// Drops removed events from the log: where that pays, or all of them. Returns whether there are
    /// more than it takes at a time.
    pub(crate) fn drop_removed(self: &Arc<Self>, is_all: bool) -> Result<bool> {
        if self.store.highest_floor() == 0 {
            return Ok(false);
        }
        // What is only in memory would be missing when the log is read again.
        self.checkpoint()?;
        let found = self.find_removed()?;
        let is_chosen = match is_all {
            true => vec![true; found.positions.len()],
            false => where_it_pays(self.storage.as_ref(), &found.positions),
        };
        let chosen = found.positions.iter().zip(&is_chosen);
        let chosen = chosen.filter_map(|(position, is_chosen)| is_chosen.then_some(*position));
        let ranges = ranges(chosen.collect());
        if !ranges.is_empty() {
            // It could not be counted any more once they are gone.
            self.removal.lost.read().keep(self.storage.as_ref())?;
            self.storage.drop_items(&ranges)?;
        }
        if is_all || !ranges.is_empty() {
            self.forget_dropped(&ranges, is_all)?;
        }
        let is_done = |(_, range): &(DroppedStream, Range<usize>)| {
            is_chosen[range.clone()].iter().all(|is_chosen| *is_chosen)
        };
        let done = found.streams.into_iter().filter(is_done);
        let mut done: Vec<DroppedStream> = done.map(|(stream, _)| stream).collect();
        let has_progress = !done.is_empty() || !ranges.is_empty();
        while !done.is_empty() {
            let rest = done.split_off(done.len().min(STREAMS_PER_COMMIT));
            self.write(Work::Dropped(done))?;
            done = rest;
        }
        Ok(found.is_cut && has_progress)
    }

    /// Looks for what is left in the log of what was removed.
    fn find_removed(&self) -> Result<RemovedItems> {
        let pending = pending_removals(&DurableView::new(&self.store), STREAMS_MAX)?;
        let (entries, layers) = (self.store.read(), self.index.layers());
        let mut found = RemovedItems {
            is_cut: pending.len() == STREAMS_MAX,
            ..RemovedItems::default()
        };
        for PendingRemoval { stream, .. } in pending {
            let removal = stream_removal(&entries, &stream)?;
            let floor = removal.map_or(0, |removal| removal.floor);
            let start = found.positions.len();
            let storage = self.storage.as_ref();
            let is_whole = find_items(storage, &layers, &stream, floor, &mut found.positions)?;
            if !is_whole {
                found.is_cut = true;
                break;
            }
            let places = start..found.positions.len();
            found
                .streams
                .push((DroppedStream { stream, floor }, places));
        }
        Ok(found)
    }
}

/// Adds the positions of a stream before its floor that the log still has, until there are too many.
/// Returns whether these are all.
fn find_items(
    storage: &dyn Storage,
    layers: &Layers,
    stream: &str,
    floor: u64,
    positions: &mut Vec<u64>,
) -> Result<bool> {
    let mut term = TermLookup::new(layers, TermKind::Stream, stream);
    let mut from = 1;
    let mut page = Vec::with_capacity(PAGE);
    while positions.len() < EVENTS_MAX {
        page.clear();
        term.page(from, Direction::Forwards, PAGE, &mut page)?;
        let is_last = page.len() < PAGE;
        page.retain(|position| *position < floor);
        storage.read_labels(&page, &mut |position, _| positions.push(position))?;
        match page.last() {
            Some(last) if !is_last && page.len() == PAGE => from = last + 1,
            _ => return Ok(true),
        }
    }
    Ok(false)
}

/// Returns of each position whether dropping it pays, because enough is dropped of its segment. A
/// storage without segments writes little more again than it drops.
fn where_it_pays(storage: &dyn Storage, positions: &[u64]) -> Vec<bool> {
    let segments = storage.segments();
    if segments.is_empty() {
        return vec![true; positions.len()];
    }
    let segment_of =
        |position: u64| segments.partition_point(|segment| segment.last_position < position);
    let mut counts = vec![0; segments.len() + 1];
    for position in positions {
        counts[segment_of(*position)] += 1;
    }
    let pays = |position: &u64| {
        let segment = segment_of(*position);
        let items = segments.get(segment).map_or(0, |segment| segment.items);
        counts[segment] * PAYS_PART >= items
    };
    positions.iter().map(pays).collect()
}

/// Returns the ranges that positions make up.
fn ranges(mut positions: Vec<u64>) -> Vec<Range<u64>> {
    positions.sort_unstable();
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for position in positions {
        match ranges.last_mut() {
            Some(last) if last.end == position => last.end += 1,
            _ => ranges.push(position..position + 1),
        }
    }
    ranges
}
