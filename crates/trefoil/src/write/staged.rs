//! The events of a group, found by what they have: conditions see earlier commits of their group.

use std::ops::Deref;

use hashbrown::HashMap;
use trefoil_core::{Appended, EventId, NewEvent, QueryItem, Timestamp};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::index::{IndexedEvent, Tags, TermKind};
use crate::read::Matcher;

/// An event that is to be appended. One that was handed in stays with its request, so that the
/// request can be staged again.
#[derive(Debug)]
pub(crate) enum StagedEvent<'a> {
    HandedIn(&'a NewEvent),
    /// By a command.
    Made(Box<NewEvent>),
}

impl Deref for StagedEvent<'_> {
    type Target = NewEvent;

    fn deref(&self) -> &NewEvent {
        match self {
            Self::HandedIn(event) => event,
            Self::Made(event) => event,
        }
    }
}

/// An event of the group, with what the index needs to know of it.
#[derive(Debug)]
pub(crate) struct Staged<'a> {
    pub(super) event: StagedEvent<'a>,
    pub(super) id: EventId,
    pub(super) position: u64,
    pub(super) commit: u64,
    pub(super) time: Timestamp,
    pub(super) stream_position: u64,
    pub(super) group_hash: Option<i64>,
    pub(super) is_new_stream: bool,
    pub(super) correlation: Option<String>,
}

impl Staged<'_> {
    /// Where it goes.
    pub(super) fn appended(&self) -> Appended {
        let stream_position = self.stream_position;
        Appended {
            id: self.id,
            position: self.position,
            stream_position: self.event.stream.as_ref().map(|_| stream_position),
        }
    }

    /// What the index needs to know of it.
    pub(super) fn indexed(&self) -> IndexedEvent<'_> {
        let stream = self.event.stream.as_deref();
        IndexedEvent {
            position: self.position,
            id: self.id,
            time: self.time,
            stream: stream.map(|stream| (stream, self.stream_position)),
            group_hash: self.group_hash,
            is_new_stream: self.is_new_stream,
            event_type: &self.event.event_type,
            tags: Tags::Given(&self.event.tags),
            correlation: self.correlation.as_deref(),
        }
    }

    fn is_selected(&self, matcher: Matcher<'_>) -> bool {
        let tags = self.event.tags.iter().map(String::as_str);
        matcher.matches_parts(self.event.stream.as_deref(), &self.event.event_type, tags)
    }
}

/// From the types and tags of staged events to their indexes. It is kept only if it is asked.
#[derive(Debug, Default)]
pub(super) struct StagedTerms {
    /// By a hash of the term: what is found is checked on the event.
    by_term: HashMap<u64, Vec<u32>>,
    n_events: usize,
}

impl StagedTerms {
    /// The position of the first staged event after `after` that is selected.
    pub(super) fn find(
        &mut self,
        staged: &[Staged<'_>],
        matcher: Matcher<'_>,
        after: u64,
    ) -> Option<u64> {
        if staged.last().is_none_or(|last| last.position <= after) {
            return None;
        }
        self.add(staged);
        let items = &matcher.query.items;
        let is_hit = |event: &&Staged<'_>| event.position > after && event.is_selected(matcher);
        if matcher.query.is_all() {
            return staged.iter().find(is_hit).map(|event| event.position);
        }
        let lists = items.iter().flat_map(|item| self.candidates(item));
        let first = |list: &[u32]| {
            let mut events = list.iter().map(|index| &staged[*index as usize]);
            events.find(is_hit).map(|event| event.position)
        };
        lists.filter_map(first).min()
    }

    /// The events that have the rarest tag of an item, or for each of its types those that have it.
    fn candidates(&self, item: &QueryItem) -> Vec<&[u32]> {
        let list = |kind, name: &String| {
            let found = self.by_term.get(&hash(kind, name));
            found.map_or(&[][..], Vec::as_slice)
        };
        let by_tag = item.tags.iter().map(|tag| list(TermKind::Tag, tag));
        match by_tag.min_by_key(|list| list.len()) {
            Some(rarest) => vec![rarest],
            None => {
                let types = item.types.iter();
                types.map(|name| list(TermKind::Type, name)).collect()
            }
        }
    }

    /// Takes in the events that were staged since it was asked last.
    fn add(&mut self, staged: &[Staged<'_>]) {
        for (index, event) in staged.iter().enumerate().skip(self.n_events) {
            let index = index as u32;
            let event_type = hash(TermKind::Type, &event.event.event_type);
            self.by_term.entry(event_type).or_default().push(index);
            for tag in &event.event.tags {
                let tag = hash(TermKind::Tag, tag);
                self.by_term.entry(tag).or_default().push(index);
            }
        }
        self.n_events = staged.len();
    }
}

fn hash(kind: TermKind, name: &str) -> u64 {
    xxh3_64_with_seed(name.as_bytes(), kind as u64)
}
