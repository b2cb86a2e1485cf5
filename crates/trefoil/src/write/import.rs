//! Staging imported events, which bring their positions and times along.

use hashbrown::HashMap;
use trefoil_core::{Committed, Error, EventId, ImportedEvent, Result};

use super::stage::{Front, Place, Stage};
use super::staged::StagedEvent;

impl<'a> Stage<'a> {
    /// Stages imported events, or says why they are not written.
    pub(crate) fn import(&mut self, events: &'a [ImportedEvent]) -> Result<Committed> {
        self.check_import(events)?;
        let streams = events.iter().map(|event| event.event.stream.as_deref());
        let streams = self.resolve(streams)?;
        self.whole_or_not(|stage| {
            let mut trackings = events.iter().filter_map(|event| event.tracking.as_ref());
            trackings.try_for_each(|tracking| stage.view().set_tracking(tracking))
        })?;
        let mut appended = Vec::with_capacity(events.len());
        let mut rest = events.iter().zip(streams).peekable();
        while let Some((first, _)) = rest.peek() {
            // Positions that follow each other go into one record and one commit.
            self.begin_record(first.position);
            let number = self.begin_commit();
            let mut n_events = 0;
            let mut expected = first.position;
            while let Some((event, stream)) = rest.next_if(|(event, _)| event.position == expected)
            {
                let place = Place {
                    position: event.position,
                    time: event.time,
                    stream,
                    stream_position: Some(event.stream_position),
                    is_imported: true,
                    tracking: event.tracking.as_ref(),
                };
                appended.push(self.append(StagedEvent::HandedIn(&event.event), number, &place));
                expected += 1;
                n_events += 1;
            }
            self.end_commit(n_events);
            // All tracked positions of the import are recorded with its first commit.
            self.end_state(number);
        }
        let Front {
            commit, position, ..
        } = self.front;
        Ok(Committed {
            commit,
            position,
            events: appended,
            replayed: false,
        })
    }

    fn check_import(&self, events: &[ImportedEvent]) -> Result<()> {
        let mut last = self.front.position;
        let mut ordinals: HashMap<&str, u64> = HashMap::new();
        let mut seen: HashMap<EventId, u64> = HashMap::new();
        for (index, event) in events.iter().enumerate() {
            if event.position <= last {
                return Err(self.position_refused(event.position, &events[..index]));
            }
            last = event.position;
            if let Some(id) = event.event.id {
                let known = self.find_id(&id)?.map(|known| known.position);
                if let Some(position) = known.or(seen.insert(id, event.position)) {
                    return Err(Error::DuplicateId { id, position });
                }
            }
            if let Some(stream) = event.event.stream.as_deref() {
                let before = match ordinals.insert(stream, event.stream_position) {
                    Some(ordinal) => Some(ordinal),
                    None => self.last_ordinal(stream)?,
                };
                check_stream_position(stream, event.stream_position, before)?;
            }
        }
        Ok(())
    }

    /// Why an imported position at or below the last one is refused, after `earlier` ones.
    fn position_refused(&self, position: u64, earlier: &[ImportedEvent]) -> Error {
        let is_taken = earlier
            .binary_search_by_key(&position, |event| event.position)
            .is_ok()
            || self
                .staged
                .binary_search_by_key(&position, |staged| staged.position)
                .is_ok()
            || (position > 0 && position <= self.base && self.durable(position).is_ok());
        if is_taken {
            return Error::PositionExists(position);
        }
        let last = earlier
            .last()
            .map_or(self.front.position, |event| event.position);
        Error::ImportRefused(format!("global position {position} is not after {last}"))
    }
}

/// Places in a stream ascend, also imported ones.
fn check_stream_position(stream: &str, position: u64, before: Option<u64>) -> Result<()> {
    match before {
        Some(before) if position <= before => Err(Error::ImportRefused(format!(
            "position {position} of stream {stream} is not after {before}"
        ))),
        _ => Ok(()),
    }
}
