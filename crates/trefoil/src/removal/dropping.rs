//! Dropping removed events from the log for good, in the background.
//!
//! A stream of which something was removed is noted as pending until the log has nothing left of it.
//! A pass looks for what is left, and drops it where that pays: a part of the log that holds it is
//! written again, so a part is left alone until enough of it is gone or has waited for long enough.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use trefoil_core::{Direction, Error, Result};
use trefoil_storage::local::SegmentKind;
use trefoil_storage::{Storage, Upkeep};

use super::entries::{PendingRemoval, pending_removals, stream_removal};
use crate::database::engine::Engine;
use crate::index::{Layers, TermKind, TermLookup};
use crate::state::DurableView;
use crate::time::NEVER;
use crate::write::Work;

/// How many milliseconds removed events stay in the log at least, so that more are dropped together.
const DELAY: u64 = 10 * 60 * 1000;
/// After how many milliseconds they are dropped whatever it costs, and the index forgets dropped ones.
pub(super) const OVERDUE: u64 = 24 * 60 * 60 * 1000;
/// After how many milliseconds it is tried again if the writer is busy or something failed.
const RETRY: u64 = 60 * 1000;

/// A segment is written again when one in so many of its events is to be dropped.
const PAYS_PART: u64 = 8;

/// How many streams, and about how many events, one pass drops at most.
const STREAMS_MAX: usize = 10_000;
const EVENTS_MAX: usize = 2_000_000;
/// How many segments one pass writes again at most, so that it keeps other databases waiting for some
/// seconds only.
const SEGMENTS_MAX: usize = 8;
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

/// What a pass drops, by since when it waits, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DropScope {
    /// What was removed after that is left alone.
    waiting_since: u64,
    /// What was removed after that is dropped only where that pays.
    overdue_since: u64,
}

impl DropScope {
    pub(crate) const EVERYTHING: Self = Self {
        waiting_since: u64::MAX,
        overdue_since: u64::MAX,
    };

    fn is_everything(self) -> bool {
        self.overdue_since == u64::MAX
    }

    /// Returns what is to be dropped at a time.
    fn at(now: u64, is_busy: bool) -> Self {
        let overdue_since = now.saturating_sub(OVERDUE);
        let waiting_since = match is_busy {
            true => overdue_since,
            false => now.saturating_sub(DELAY),
        };
        Self {
            waiting_since,
            overdue_since,
        }
    }
}

/// A stream of which a pass has found something.
#[derive(Debug)]
struct FoundStream {
    dropped: DroppedStream,
    /// Where its positions are among all that were found.
    places: Range<usize>,
    /// Whether these are all.
    is_whole: bool,
    /// Whether it is dropped whatever that costs.
    is_overdue: bool,
}

/// What a pass has found in the log that is to be dropped.
#[derive(Debug, Default)]
pub(super) struct RemovedItems {
    pub(super) positions: Vec<u64>,
    streams: Vec<FoundStream>,
    /// Whether there is more than a pass takes.
    is_cut: bool,
    /// What kept it from looking at a stream.
    damage: Option<Error>,
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
            self.removal.bring_drop_forward(due, due);
        }
    }

    /// Finds out when removed events are to be dropped, of a database that was just opened.
    pub(crate) fn find_drop_deadline(&self) -> Result<()> {
        if self.store.highest_floor() > 0 {
            let due = self.pending_due(|since| since + DELAY)?;
            let due = due.min(self.forget_deadline());
            self.removal.set_drop_due(due, due);
        }
        Ok(())
    }

    /// Returns when the first of the streams is due of which removed events wait to be dropped, by since
    /// when they wait.
    fn pending_due(&self, due: impl Fn(u64) -> u64) -> Result<u64> {
        let entries = DurableView::new(&self.store);
        let mut first = NEVER;
        for pending in pending_removals(&entries) {
            first = first.min(due(pending?.since));
        }
        Ok(first)
    }

    /// It is tried again after a while, unless what follows finds out when.
    pub(crate) fn put_off_dropping(&self, now: u64) {
        self.removal.set_drop_due(now + RETRY, now + RETRY);
    }

    /// Drops all removed events that have waited for long enough.
    pub(crate) fn drop_all_due(self: &Arc<Self>) -> Result<()> {
        let is_open = || !self.is_closing.load(Ordering::Relaxed);
        while is_open() && self.drop_or_wait(false)? == Upkeep::More {}
        Ok(())
    }

    /// Drops removed events that have waited for long enough.
    pub(crate) fn drop_or_wait(self: &Arc<Self>, is_busy: bool) -> Result<Upkeep> {
        let now = self.clock().now().millis();
        self.put_off_dropping(now);
        let scope = DropScope::at(now, is_busy);
        let oldest = self.pending_due(|since| since)?;
        let is_due = oldest <= scope.waiting_since || self.forget_deadline() <= now;
        if is_due && self.drop_removed(scope)? {
            return Ok(Upkeep::More);
        }
        if is_busy {
            return Ok(Upkeep::Done);
        }
        // What is removed from here on brings it forward again, or is found.
        self.removal.set_drop_due(NEVER, NEVER);
        // What was tried did not pay.
        let pending = self.pending_due(|since| match since > scope.waiting_since {
            true => since + DELAY,
            false => since + OVERDUE,
        })?;
        let again = match pending {
            NEVER => NEVER,
            _ => now + DELAY,
        };
        let forgetting = self.forget_deadline();
        self.removal
            .bring_drop_forward(pending.min(again).min(forgetting), pending.min(forgetting));
        self.background.timer.note(self.drop_deadline());
        Ok(Upkeep::Done)
    }

    /// Drops removed events from the log. Returns whether there are more than it takes at a time.
    pub(crate) fn drop_removed(self: &Arc<Self>, scope: DropScope) -> Result<bool> {
        if self.store.highest_floor() == 0 {
            return Ok(false);
        }
        // What is only in memory would be missing when the log is read again.
        self.checkpoint()?;
        let found = self.find_removed(scope)?;
        let is_all = scope.is_everything() || found.streams.iter().any(|found| found.is_overdue);
        let (is_chosen, is_cut) = where_it_pays(self.storage.as_ref(), &found);
        let is_cut = is_cut || found.is_cut;
        let chosen = found.positions.iter().zip(&is_chosen);
        let chosen = chosen.filter_map(|(position, is_chosen)| is_chosen.then_some(*position));
        let ranges = ranges(chosen.collect());
        if !ranges.is_empty() {
            // It could not be counted any more once they are gone.
            self.removal.lost.read().keep(self.storage.as_ref())?;
            let now = self.clock().now().millis();
            self.index.note_missing(&ranges, now)?;
            match self.storage.drop_items(&ranges) {
                Err(error @ Error::Damaged(_)) => return self.end_dropped(scope, error),
                dropped => dropped?,
            }
        }
        // All runs are looked at once all is dropped.
        self.forget_dropped(is_all && !is_cut)?;
        let is_done = |found: &FoundStream| {
            let mut chosen = is_chosen[found.places.clone()].iter();
            found.is_whole && chosen.all(|is_chosen| *is_chosen)
        };
        let done = found.streams.into_iter().filter(is_done);
        let done: Vec<DroppedStream> = done.map(|found| found.dropped).collect();
        let has_progress = !done.is_empty() || !ranges.is_empty();
        self.end_streams(done)?;
        match found.damage {
            Some(damage) => Err(damage),
            None => Ok(is_cut && has_progress),
        }
    }

    /// Writes down of which streams the log has nothing left before their floors.
    fn end_streams(self: &Arc<Self>, mut done: Vec<DroppedStream>) -> Result<()> {
        while !done.is_empty() {
            let rest = done.split_off(done.len().min(STREAMS_PER_COMMIT));
            self.write(Work::Dropped(done))?;
            done = rest;
        }
        Ok(())
    }

    /// Ends the streams of which nothing is left, although the log is damaged where others are.
    fn end_dropped(self: &Arc<Self>, scope: DropScope, damage: Error) -> Result<bool> {
        let found = self.find_removed(scope)?.streams.into_iter();
        let done = found.filter(|found| found.is_whole && found.places.is_empty());
        self.end_streams(done.map(|found| found.dropped).collect())?;
        Err(damage)
    }

    /// Looks for what is left in the log of what was removed.
    pub(super) fn find_removed(&self, scope: DropScope) -> Result<RemovedItems> {
        let durable = DurableView::new(&self.store);
        let (entries, layers) = (self.store.read(), self.index.layers());
        // What came after the checkpoint is in memory alone.
        let end = layers.runs().last().map_or(0, |run| run.last_position) + 1;
        let mut found = RemovedItems::default();
        for pending in pending_removals(&durable) {
            let PendingRemoval { stream, since } = pending?;
            if since > scope.waiting_since {
                continue;
            }
            if found.streams.len() == STREAMS_MAX {
                found.is_cut = true;
                break;
            }
            let removal = stream_removal(&entries, &stream)?;
            let floor = removal.map_or(0, |removal| removal.floor.min(end));
            let start = found.positions.len();
            let storage = self.storage.as_ref();
            let is_whole = match find_items(storage, &layers, &stream, floor, &mut found.positions)
            {
                // It is left alone, and the others are not.
                Err(error @ Error::Damaged(_)) => {
                    found.positions.truncate(start);
                    found.damage = found.damage.or(Some(error));
                    continue;
                }
                is_whole => is_whole?,
            };
            let places = start..found.positions.len();
            found.streams.push(FoundStream {
                dropped: DroppedStream { stream, floor },
                places,
                is_whole,
                is_overdue: since <= scope.overdue_since,
            });
            if !is_whole {
                found.is_cut = true;
                break;
            }
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

/// Returns of each position whether it is to be dropped: because enough is dropped of its segment, or
/// something of it that is overdue. The segment that is being written is left alone otherwise: it would end
/// early, and a stream that is truncated all the time would get a segment with each pass. A storage without
/// segments writes little more again than it drops. Returns also whether there are more such segments
/// than a pass takes.
fn where_it_pays(storage: &dyn Storage, found: &RemovedItems) -> (Vec<bool>, bool) {
    let mut segments = storage.segments();
    if segments.is_empty() {
        return (vec![true; found.positions.len()], false);
    }
    // Without items it has no last position.
    segments.retain(|segment| segment.items > 0);
    let segment_of =
        |position: u64| segments.partition_point(|segment| segment.last_position < position);
    let mut counts = vec![0; segments.len() + 1];
    let mut has_overdue = vec![false; segments.len() + 1];
    for position in &found.positions {
        counts[segment_of(*position)] += 1;
    }
    for stream in found.streams.iter().filter(|stream| stream.is_overdue) {
        for position in &found.positions[stream.places.clone()] {
            has_overdue[segment_of(*position)] = true;
        }
    }
    let pays = |segment: usize| {
        let full = segments.get(segment);
        let full = full.filter(|segment| segment.kind != SegmentKind::Active);
        has_overdue[segment] || full.is_some_and(|full| counts[segment] * PAYS_PART >= full.items)
    };
    let mut paying: Vec<usize> = (0..counts.len())
        .filter(|segment| counts[*segment] > 0 && pays(*segment))
        .collect();
    let is_cut = paying.len() > SEGMENTS_MAX;
    paying.truncate(SEGMENTS_MAX);
    let is_chosen = |position: &u64| paying.binary_search(&segment_of(*position)).is_ok();
    (found.positions.iter().map(is_chosen).collect(), is_cut)
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
