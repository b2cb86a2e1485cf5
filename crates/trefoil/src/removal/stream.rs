//! Where a stream ends and how many events it has, whatever the index still knows of those that were
//! removed.

use trefoil_core::{Direction, Result, stream_group_hash};

use super::entries::{StreamRemoval, stream_removal};
use crate::index::{Layers, StreamEnd, TermKind, TermLookup, TermSummary};
use crate::state::StateStore;

/// How many positions are counted at a time.
const PAGE: usize = 4096;

/// Returns where a stream ends of which the index knows this end.
pub(crate) fn true_end(
    store: &StateStore,
    stream: &str,
    end: Option<StreamEnd>,
) -> Result<Option<StreamEnd>> {
    let highest_floor = store.highest_floor();
    let is_kept = |end: &StreamEnd| end.last_position >= highest_floor;
    if highest_floor == 0 || end.as_ref().is_some_and(is_kept) {
        return Ok(end);
    }
    let Some(removal) = stream_removal(&store.read(), stream)? else {
        return Ok(end);
    };
    let in_index = end.map_or(0, |end| end.last_ordinal);
    Ok(Some(StreamEnd {
        last_ordinal: removal.version.max(in_index),
        last_position: end.map_or(0, |end| end.last_position),
        group_hash: stream_group_hash(stream),
        is_empty: removal.is_empty,
    }))
}

/// Returns how many events of a stream are kept, of which the index knows this much.
pub(crate) fn n_kept(
    layers: &Layers,
    stream: &str,
    summary: &TermSummary,
    removal: &StreamRemoval,
) -> Result<u64> {
    if summary.last_position < removal.floor {
        return Ok(0);
    }
    if summary.is_dense() {
        let first = summary.first_ordinal.max(removal.first_kept);
        return Ok(summary.last_ordinal + 1 - first);
    }
    n_within(layers, stream, removal.floor, summary.last_position)
}

/// Counts the events of a stream that the index has from `low` to `high`, inclusive.
pub(super) fn n_within(layers: &Layers, stream: &str, low: u64, high: u64) -> Result<u64> {
    let mut term = TermLookup::new(layers, TermKind::Stream, stream);
    let (mut n, mut from) = (0, low);
    let mut page = Vec::with_capacity(PAGE);
    loop {
        page.clear();
        term.page(from, Direction::Forwards, PAGE, &mut page)?;
        let within = page.partition_point(|&position| position <= high);
        n += within as u64;
        match page.last() {
            Some(last) if within == PAGE => from = last + 1,
            _ => return Ok(n),
        }
    }
}
