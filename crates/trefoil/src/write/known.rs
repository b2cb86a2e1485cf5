//! Events that are known already: how a commit that is sent again is recognised.

use trefoil_core::{Appended, Committed, Event, EventId};

use super::staged::{Staged, StagedEvent};

/// An event that has an id which a request brings again.
#[derive(Debug)]
pub(super) struct Known {
    id: EventId,
    pub(super) position: u64,
    commit: u64,
    stream: Option<(String, u64)>,
}

impl Known {
    pub(super) fn durable(event: &Event) -> Self {
        let stream = event
            .stream()
            .map(str::to_owned)
            .zip(event.stream_position());
        Self {
            id: event.id(),
            position: event.position(),
            commit: event.commit(),
            stream,
        }
    }

    pub(super) fn staged(staged: &Staged<'_>) -> Self {
        let stream = staged
            .event
            .stream
            .clone()
            .map(|stream| (stream, staged.stream_position));
        Self {
            id: staged.id,
            position: staged.position,
            commit: staged.commit,
            stream,
        }
    }
}

/// The answer to a commit that was written before: every id is known, in the same streams and the
/// same order.
pub(super) fn replayed(
    handed_in: &[StagedEvent<'_>],
    known: &[Option<Known>],
) -> Option<Committed> {
    let mut events: Vec<Appended> = Vec::with_capacity(known.len());
    let mut number = 0;
    for (event, known) in handed_in.iter().zip(known) {
        let known = known.as_ref()?;
        let is_same_stream = known.stream.as_ref().map(|(name, _)| name) == event.stream.as_ref();
        let is_in_order = events
            .last()
            .is_none_or(|before| before.position < known.position);
        if !is_same_stream || !is_in_order {
            return None;
        }
        let stream_position = known.stream.as_ref().map(|(_, at)| *at);
        events.push(Appended {
            id: known.id,
            position: known.position,
            stream_position,
        });
        number = known.commit;
    }
    let position = events.last()?.position;
    Some(Committed {
        commit: number,
        position,
        events,
        replayed: true,
    })
}
