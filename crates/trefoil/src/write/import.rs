//! Staging imported events, which bring their positions and times along.

use hashbrown::{HashMap, HashSet};
use trefoil_core::{Committed, Error, EventId, ImportedEvent, NewEvent, Result};

use super::known::KnownEvent;
use super::stage::{Front, Stage, StagedPlace};
use super::staged::StagedEvent;

/// Events to import.
#[derive(Debug)]
pub(crate) struct ImportBatch {
    pub(crate) events: Vec<ImportedEvent>,
    /// Whether those whose ids others have get new ones.
    pub(crate) with_new_ids: bool,
}

impl<'a> Stage<'a> {
    /// Stages imported events, or says why they are not written.
    pub(crate) fn import(&mut self, import: &'a ImportBatch) -> Result<Committed> {
        let events = &import.events;
        let known = self.known_of(events.iter().map(|event| &event.event))?;
        let known = |index: usize| known.get(index).and_then(Option::as_ref);
        let renamed = match import.with_new_ids {
            true => with_known_ids(events, &known),
            false => HashSet::new(),
        };
        self.check_import(events, &renamed, &known)?;
        let streams = events.iter().map(|event| event.event.stream.as_deref());
        let streams = self.resolve(streams)?;
        self.whole_or_not(|stage| {
            let names = events.iter().map(|event| event.event.stream.as_deref());
            stage.revive(names.zip(&streams))?;
            let mut trackings = events.iter().filter_map(|event| event.tracking.as_ref());
            trackings.try_for_each(|tracking| stage.view().set_tracking(tracking))
        })?;
        let mut appended = Vec::with_capacity(events.len());
        let mut rest = events.iter().zip(streams).peekable();
        while let Some((first, _)) = rest.peek() {
            // Positions that follow each other go into one record and one commit.
            let number = self.begin_commit(first.position);
            let mut n_events = 0;
            let mut expected = first.position;
            while let Some((event, stream)) = rest.next_if(|(event, _)| event.position == expected)
            {
                let place = StagedPlace {
                    position: event.position,
                    time: event.time,
                    stream,
                    stream_position: Some(event.stream_position),
                    is_imported: true,
                    tracking: event.tracking.as_ref(),
                    is_redacted: event.is_redacted,
                };
                let event = match renamed.contains(&event.position) {
                    true => without_id(&event.event),
                    false => StagedEvent::HandedIn(&event.event),
                };
                appended.push(self.append(event, number, &place));
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

    /// Checks events, of which those at the positions `renamed` get new ids.
    fn check_import(
        &mut self,
        events: &[ImportedEvent],
        renamed: &HashSet<u64>,
        known: &KnownAt<'_>,
    ) -> Result<()> {
        let mut checked = CheckedImport::default();
        for (index, event) in events.iter().enumerate() {
            let mut taken = self.check_imported(event, &events[..index], &mut checked);
            if taken.is_ok() && !renamed.contains(&event.position) {
                taken = check_imported_id(event, known(index), &mut checked.ids);
            }
            taken.map_err(|error| Error::ImportStopped {
                index,
                error: Box::new(error),
            })?;
        }
        Ok(())
    }

    /// Checks an event that comes after `earlier` ones.
    fn check_imported<'e>(
        &mut self,
        event: &'e ImportedEvent,
        earlier: &[ImportedEvent],
        checked: &mut CheckedImport<'e>,
    ) -> Result<()> {
        let last = earlier
            .last()
            .map_or(self.front.position, |event| event.position);
        if event.position <= last {
            return Err(self.position_refused(event.position, last, earlier));
        }
        let Some(stream) = event.event.stream.as_deref() else {
            return Ok(());
        };
        let before = match checked.ordinals.insert(stream, event.stream_position) {
            Some(ordinal) => Some(ordinal),
            None => self.last_ordinal(stream)?,
        };
        check_stream_position(stream, event.stream_position, before)
    }

    fn is_durable(&self, position: u64) -> bool {
        self.durable_events(&[position])
            .is_ok_and(|events| !events.is_empty())
    }

    /// Why an imported position at or below the `last` one is refused, after `earlier` ones.
    fn position_refused(&self, position: u64, last: u64, earlier: &[ImportedEvent]) -> Error {
        let is_taken = earlier
            .binary_search_by_key(&position, |event| event.position)
            .is_ok()
            || self.overlay.event_at(position).is_some()
            || (position > 0 && position <= self.base && self.is_durable(position));
        if is_taken {
            return Error::PositionExists(position);
        }
        Error::ImportRefused(format!(
            "global position {position} is not after {last}, and events are only added at the end: \
             {HOW_TO_MERGE}"
        ))
    }
}

/// The event that has the id of the one of this index already, if there is one.
type KnownAt<'a> = dyn Fn(usize) -> Option<&'a KnownEvent> + 'a;

/// What stands in a stream has an id of its own. Events without a stream may share one: UmaDB allows
/// that.
fn check_imported_id(
    event: &ImportedEvent,
    known: Option<&KnownEvent>,
    seen: &mut HashMap<EventId, u64>,
) -> Result<()> {
    let Some(id) = event.event.id else {
        return Ok(());
    };
    let before = seen.insert(id, event.position);
    if event.event.stream.is_none() {
        return Ok(());
    }
    match known.map(|known| known.appended.position).or(before) {
        Some(position) => Err(Error::DuplicateId { id, position }),
        None => Ok(()),
    }
}

/// The positions of events whose ids others have.
fn with_known_ids(events: &[ImportedEvent], known: &KnownAt<'_>) -> HashSet<u64> {
    let mut seen: HashSet<EventId> = HashSet::new();
    let mut found = HashSet::new();
    for (
        index,
        ImportedEvent {
            event, position, ..
        },
    ) in events.iter().enumerate()
    {
        let Some(id) = event.id else { continue };
        if !seen.insert(id) || known(index).is_some() {
            found.insert(*position);
        }
    }
    found
}

/// An event that gets a new id.
fn without_id(event: &NewEvent) -> StagedEvent<'static> {
    let mut event = event.clone();
    event.id = None;
    StagedEvent::Made(Box::new(event))
}

/// What helps when positions do not follow those that are there.
const HOW_TO_MERGE: &str = "to merge, export what is here, sort it and the new lines by gpos, and \
                            import them together with force, or import into another namespace";

/// What has been seen of an import that is being checked.
#[derive(Default)]
struct CheckedImport<'e> {
    ids: HashMap<EventId, u64>,
    /// The last position in each stream.
    ordinals: HashMap<&'e str, u64>,
}

/// Places in a stream ascend, also imported ones.
fn check_stream_position(stream: &str, position: u64, before: Option<u64>) -> Result<()> {
    match before {
        Some(before) if position <= before => Err(Error::ImportRefused(format!(
            "position {position} of stream {stream} is not after {before}: {HOW_TO_MERGE}"
        ))),
        _ => Ok(()),
    }
}
