//! What a request to remove something comes to: which events that are, before the writer is asked.

use trefoil_core::{Direction, Result};

use super::entries::{StreamRemoval, stream_removal};
use super::stream::n_within;
use super::truncate::RemoveBefore;
use crate::database::engine::Engine;
use crate::index::{Layers, TermKind, TermLookup, TermSummary};
use crate::read;

/// Events of a stream that are to be removed.
#[derive(Debug)]
pub(crate) struct RemovalWork {
    pub(crate) stream: String,
    /// The version that the stream must have.
    pub(crate) expected: Option<i64>,
    /// What was removed before. If that is another now, this has to be found out again.
    pub(crate) before: Option<StreamRemoval>,
    pub(crate) after: StreamRemoval,
}

impl RemovalWork {
    /// Returns how many events are removed.
    pub(super) fn n_events(&self) -> u64 {
        self.after.events - self.before.map_or(0, |before| before.events)
    }
}

/// Finds out what is removed of a stream; `None` if that is nothing.
pub(super) fn resolve(
    engine: &Engine,
    stream: &str,
    before: RemoveBefore,
    expected: Option<i64>,
) -> Result<Option<RemovalWork>> {
    let removed = stream_removal(&engine.store.read(), stream)?;
    let layers = engine.index.layers();
    let mut term = TermLookup::new(&layers, TermKind::Stream, stream);
    let Some(summary) = term.summary()? else {
        return Ok(None);
    };
    let first = first_kept(&mut term, before)?.filter(|first| *first <= summary.last_position);
    let floor = first.unwrap_or(summary.last_position + 1);
    if removed.is_some_and(|removed| floor <= removed.floor) {
        return Ok(None);
    }
    let first_kept = match first {
        None => summary.last_ordinal + 1,
        Some(position) => {
            let event = read::fetch(engine.storage.as_ref(), position)?;
            event.stream_position().unwrap_or_default()
        }
    };
    let n_events = n_between(&layers, stream, &summary, removed, (floor, first_kept))?;
    if n_events == 0 {
        return Ok(None);
    }
    Ok(Some(RemovalWork {
        stream: stream.to_owned(),
        expected,
        before: removed,
        after: StreamRemoval {
            floor,
            first_kept,
            version: summary.last_ordinal,
            events: n_events + removed.map_or(0, |removed| removed.events),
            is_empty: first.is_none(),
        },
    }))
}

/// Returns the position of the first event that is kept; `None` if none is.
fn first_kept(term: &mut TermLookup<'_>, before: RemoveBefore) -> Result<Option<u64>> {
    match before {
        RemoveBefore::End => Ok(None),
        RemoveBefore::StreamPosition(ordinal) => term.seek_ordinal(ordinal, Direction::Forwards),
        RemoveBefore::Position(position) => {
            let mut first = Vec::with_capacity(1);
            term.page(position, Direction::Forwards, 1, &mut first)?;
            Ok(first.pop())
        }
    }
}

/// Counts the events of a stream between what was removed before and what is kept from now on.
fn n_between(
    layers: &Layers,
    stream: &str,
    summary: &TermSummary,
    removed: Option<StreamRemoval>,
    (floor, first_kept): (u64, u64),
) -> Result<u64> {
    let kept_before = removed.map_or(0, |removed| removed.first_kept);
    if summary.is_dense() {
        return Ok(first_kept.saturating_sub(kept_before.max(summary.first_ordinal)));
    }
    let low = removed.map_or(0, |removed| removed.floor);
    n_within(layers, stream, low, floor - 1)
}
