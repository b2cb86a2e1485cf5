//! The events that were added to the tail together, as they are found, for those who wait for some of
//! them.

use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard};
use trefoil_core::category;

use super::Prepared;
use super::tail::{IndexTail, TailPlaces};
use super::term::TermKind;

/// The events of a group that were added.
pub(crate) struct AddedEvents<'t> {
    tail: RwLockReadGuard<'t, IndexTail>,
    places: &'t TailPlaces,
}

/// One of them.
#[derive(Clone, Copy)]
pub(crate) struct AddedEvent<'t> {
    pub(crate) position: u64,
    pub(crate) stream: Option<&'t str>,
    /// What decides which member of a consumer group the stream belongs to.
    pub(crate) group_hash: Option<i64>,
    pub(crate) event_type: &'t str,
    pub(crate) correlation: Option<&'t str>,
    tail: &'t IndexTail,
    tags: &'t [(usize, u64)],
}

impl Prepared {
    /// Returns the position of the last event; `None` if there are no events.
    pub(crate) fn last_position(&self) -> Option<u64> {
        self.places.last_position()
    }

    /// Returns the events, which have been added.
    pub(crate) fn added(&self) -> AddedEvents<'_> {
        let tail: &Arc<RwLock<IndexTail>> = &self.tail;
        AddedEvents {
            tail: tail.read(),
            places: &self.places,
        }
    }
}

impl AddedEvents<'_> {
    /// Returns the events in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = AddedEvent<'_>> {
        let tail = &*self.tail;
        let (mut tags, mut correlations) = (self.places.tags(), self.places.correlations());
        self.places.events().map(move |event| {
            let stream = event.stream.map(|(place, ..)| place);
            let correlation = take_of(&mut correlations, event.position).first();
            AddedEvent {
                position: event.position,
                stream: stream.map(|place| tail.name_at(TermKind::Stream, place)),
                group_hash: stream.and_then(|place| tail.group_hash_at(place)),
                event_type: tail.name_at(TermKind::Type, event.event_type),
                correlation: correlation
                    .map(|(place, _)| tail.name_at(TermKind::Correlation, *place)),
                tail,
                tags: take_of(&mut tags, event.position),
            }
        })
    }
}

/// Takes the places that belong to a position, which come first if there are any.
fn take_of<'t>(places: &mut &'t [(usize, u64)], position: u64) -> &'t [(usize, u64)] {
    let of_others = places.iter().position(|(_, other)| *other != position);
    let (its, rest) = places.split_at(of_others.unwrap_or(places.len()));
    *places = rest;
    its
}

impl<'t> AddedEvent<'t> {
    /// Returns its tags.
    pub(crate) fn tags(self) -> impl Iterator<Item = &'t str> + Clone {
        let tags = self.tags.iter();
        tags.map(move |(place, _)| self.tail.name_at(TermKind::Tag, *place))
    }

    /// Returns the names under which it is found.
    pub(crate) fn terms(self) -> impl Iterator<Item = (TermKind, &'t str)> {
        let stream = self.stream.map(|name| (TermKind::Stream, name));
        let category = self.stream.map(|name| (TermKind::Category, category(name)));
        let correlation = self.correlation.map(|name| (TermKind::Correlation, name));
        let single = [
            Some((TermKind::All, "")),
            stream,
            category,
            correlation,
            Some((TermKind::Type, self.event_type)),
        ];
        let tags = self.tags().map(|name| (TermKind::Tag, name));
        single.into_iter().flatten().chain(tags)
    }
}
