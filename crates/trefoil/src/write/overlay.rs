//! The overlay: what a group has staged so far, laid over what is durable.
//!
//! It is what the later requests of a group see of the earlier ones: their events, by position, id,
//! type and tag; where their streams end; and the state with their changes. It never looks at the
//! index or the log itself. Groups of a chain share one: what the first of them staged is seen by the
//! next, though it may not be durable yet.

use hashbrown::HashMap;
use trefoil_core::{EventId, Result, located_position, stream_group_hash};

use super::staged::{Staged, StagedTerms};
use crate::index::{ByName, StreamEnd};
use crate::read::Matcher;
use crate::state::{StateStore, View};

/// What a group has staged so far.
#[derive(Default)]
pub(super) struct Overlay<'a> {
    events: Vec<Staged<'a>>,
    /// The streams the group has to do with.
    streams: ByName<StagedStream>,
    /// The ids that clients gave to events of the group, to the index of the first such event.
    ids: HashMap<EventId, usize>,
    /// The types and tags of the events.
    terms: StagedTerms,
    /// The state as the group changes it, once a commit has to do with it.
    view: Option<View>,
}

/// A stream that the group has to do with.
#[derive(Debug, Default)]
struct StagedStream {
    /// `None` for one without events.
    last_ordinal: Option<u64>,
    group_hash: Option<i64>,
    /// Whether all its events were removed.
    is_empty: bool,
    /// The transaction that noted events for it last, and where the stream ends with those.
    noted: (u64, Option<u64>),
}

impl StagedStream {
    /// A stream that ends there.
    fn new(name: &str, end: Option<StreamEnd>) -> Self {
        Self {
            last_ordinal: end.map(|end| end.last_ordinal),
            group_hash: end.map_or_else(|| stream_group_hash(name), |end| end.group_hash),
            is_empty: end.is_some_and(|end| end.is_empty),
            noted: (0, None),
        }
    }
}

/// Where an event goes in its stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InStream {
    pub(super) position: u64,
    pub(super) group_hash: Option<i64>,
    pub(super) is_first: bool,
}

impl<'a> Overlay<'a> {
    /// Returns the events of the group, in order.
    pub(super) fn events(&self) -> &[Staged<'a>] {
        &self.events
    }

    /// Returns the event at a position.
    pub(super) fn event_at(&self, position: u64) -> Option<&Staged<'a>> {
        let by_position = |staged: &Staged<'_>| staged.position;
        let index = self.events.binary_search_by_key(&position, by_position);
        self.events.get(index.ok()?)
    }

    /// Returns the first event that has this id.
    pub(super) fn event_with_id(&self, id: &EventId) -> Option<&Staged<'a>> {
        if let Some(&index) = self.ids.get(id) {
            return self.events.get(index);
        }
        // An id that the server made is not among those: it tells where its event is.
        let staged = self.event_at(located_position(id)?)?;
        (staged.id == *id).then_some(staged)
    }

    /// Returns the position of the first event after `after` that matches.
    pub(super) fn first_match(&mut self, matcher: Matcher<'_>, after: u64) -> Option<u64> {
        self.terms.find(&self.events, matcher, after)
    }

    /// Makes room for this many more events.
    pub(super) fn reserve(&mut self, n_events: usize) {
        self.events.reserve(n_events);
    }

    /// Adds an event.
    pub(super) fn push(&mut self, staged: Staged<'a>) {
        if staged.event.id.is_some() {
            self.ids.entry(staged.id).or_insert(self.events.len());
        }
        self.events.push(staged);
    }

    /// Returns the place of a stream among those of the group. `find_end` says where one ends that is
    /// new here. If that fails, the stream stays unknown.
    pub(super) fn stream(
        &mut self,
        name: &str,
        find_end: impl FnOnce() -> Result<Option<StreamEnd>>,
    ) -> Result<usize> {
        let n_known = self.streams.len();
        let place = self.streams.place(name, StagedStream::default);
        if place == n_known {
            let end = find_end().inspect_err(|_| self.streams.truncate(n_known))?;
            *self.streams.at_mut(place) = StagedStream::new(name, end);
        }
        Ok(place)
    }

    /// Returns the places of many streams, as [`Self::stream`] does. `find_ends` is asked once.
    pub(super) fn streams<'b>(
        &mut self,
        names: impl Iterator<Item = Option<&'b str>>,
        find_ends: impl FnOnce(&[&str]) -> Result<Vec<Option<StreamEnd>>>,
    ) -> Result<Vec<Option<usize>>> {
        let n_known = self.streams.len();
        self.streams.reserve(names.size_hint().0);
        let mut new = Vec::new();
        let places = names.map(|name| {
            name.map(|name| {
                self.streams.place(name, || {
                    new.push(name);
                    StagedStream::default()
                })
            })
        });
        let places = places.collect();
        if !new.is_empty() {
            let ends = find_ends(&new).inspect_err(|_| self.streams.truncate(n_known))?;
            for ((place, name), end) in (n_known..).zip(new).zip(ends) {
                *self.streams.at_mut(place) = StagedStream::new(name, end);
            }
        }
        Ok(places)
    }

    /// Returns the last position of the stream at a place; `None` for one without events.
    pub(super) fn last_ordinal(&self, place: usize) -> Option<u64> {
        self.streams.at(place).last_ordinal
    }

    /// Returns whether all events of the stream at a place were removed.
    pub(super) fn is_emptied(&self, place: usize) -> bool {
        self.streams.at(place).is_empty
    }

    /// Returns the last position of a stream, with the events that a transaction, which has not
    /// ended, has noted for it.
    pub(super) fn last_noted(&self, place: usize, transaction: u64) -> Option<u64> {
        let stream = self.streams.at(place);
        match stream.noted {
            (noting, last) if noting == transaction => last,
            _ => stream.last_ordinal,
        }
    }

    /// Notes an event of a transaction that has not ended. Returns the position in the stream that
    /// it will have. Nothing is noted any more when another transaction notes something.
    pub(super) fn note_next(&mut self, place: usize, transaction: u64) -> u64 {
        let next = after(self.last_noted(place, transaction));
        self.streams.at_mut(place).noted = (transaction, Some(next));
        next
    }

    /// Appends to the stream at a place, at this position or at the next one.
    pub(super) fn append_to(&mut self, place: usize, position: Option<u64>) -> InStream {
        let stream = self.streams.at_mut(place);
        let last = stream.last_ordinal;
        let position = position.unwrap_or_else(|| after(last));
        stream.last_ordinal = Some(position);
        stream.is_empty = false;
        InStream {
            position,
            group_hash: stream.group_hash,
            is_first: last.is_none(),
        }
    }

    /// Returns the state as the group has changed it so far, beginning with that of `store`.
    pub(super) fn view(&mut self, store: &StateStore) -> &mut View {
        self.view.get_or_insert_with(|| View::new(store))
    }

    /// Returns the state if the group has had to do with it.
    pub(super) fn opened_view(&mut self) -> Option<&mut View> {
        self.view.as_mut()
    }

    /// Takes out the state. The group sees no more of it after this.
    pub(super) fn take_view(&mut self) -> Option<View> {
        self.view.take()
    }
}

/// The position that comes after the last one.
fn after(last: Option<u64>) -> u64 {
    last.map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use trefoil_core::{Error, NewEvent, Timestamp, make_event_id};

    use super::*;
    use crate::write::staged::StagedEvent;

    fn staged(event: &NewEvent, position: u64, id: EventId) -> Staged<'_> {
        Staged {
            event: StagedEvent::HandedIn(event),
            id,
            position,
            commit: position,
            time: Timestamp(0),
            stream_position: 0,
            group_hash: None,
            is_new_stream: false,
            correlation: None,
        }
    }

    #[test]
    fn events_are_found_by_position_and_by_id() {
        let mut overlay = Overlay::default();
        let made = make_event_id(0, 1, 8);
        let given = EventId::from_u128(5);
        let event = NewEvent::new("account-1", "Opened", "{}");
        let named = event.clone().with_id(given);
        overlay.push(staged(&event, 8, made));
        overlay.push(staged(&named, 9, given));
        overlay.push(staged(&named, 12, given));
        let position = |found: Option<&Staged<'_>>| found.map(|staged| staged.position);
        assert_eq!(position(overlay.event_at(9)), Some(9));
        assert_eq!(position(overlay.event_at(10)), None);
        assert_eq!(position(overlay.event_with_id(&made)), Some(8));
        assert_eq!(position(overlay.event_with_id(&given)), Some(9));
        let unknown = make_event_id(0, 2, 8);
        assert_eq!(position(overlay.event_with_id(&unknown)), None);
    }

    #[test]
    fn a_stream_is_asked_for_once_and_then_counted_here() {
        let mut overlay = Overlay::default();
        let end = StreamEnd {
            last_ordinal: 4,
            last_position: 9,
            group_hash: Some(7),
            is_empty: false,
        };
        let place = overlay.stream("account-1", || Ok(Some(end))).unwrap();
        let again = overlay.stream("account-1", || Err(Error::invalid("asked twice")));
        assert_eq!(again.unwrap(), place);
        let places = [Some("account-1"), None, Some("account-2")];
        let find_ends = |names: &[&str]| {
            assert_eq!(names, ["account-2"]);
            Ok(vec![None])
        };
        let places = overlay.streams(places.into_iter(), find_ends).unwrap();
        assert_eq!(places, [Some(place), None, Some(place + 1)]);
        let next = overlay.append_to(place, None);
        assert_eq!((next.position, next.is_first), (5, false));
        let first = overlay.append_to(place + 1, None);
        assert_eq!((first.position, first.is_first), (0, true));
        assert_eq!(overlay.append_to(place, Some(9)).position, 9);
        assert_eq!(overlay.last_ordinal(place), Some(9));
    }

    #[test]
    fn a_stream_that_cannot_be_found_out_about_stays_unknown() {
        let mut overlay = Overlay::default();
        let error = || Error::invalid("no answer");
        assert!(overlay.stream("account-1", || Err(error())).is_err());
        let names = [Some("account-1"), Some("account-2")];
        assert!(
            overlay
                .streams(names.into_iter(), |_| Err(error()))
                .is_err()
        );
        assert_eq!(overlay.stream("account-2", || Ok(None)).unwrap(), 0);
    }

    #[test]
    fn what_a_transaction_notes_counts_for_itself_alone() {
        let mut overlay = Overlay::default();
        let place = overlay.stream("account-1", || Ok(None)).unwrap();
        assert_eq!(overlay.note_next(place, 1), 0);
        assert_eq!(overlay.note_next(place, 1), 1);
        assert_eq!(overlay.last_noted(place, 1), Some(1));
        // The first one failed.
        assert_eq!(overlay.last_noted(place, 2), None);
        assert_eq!(overlay.note_next(place, 2), 0);
        assert_eq!(overlay.append_to(place, None).position, 0);
        assert_eq!(overlay.note_next(place, 3), 1);
    }
}
