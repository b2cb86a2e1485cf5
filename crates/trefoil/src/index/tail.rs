//! The newest part of the index, in memory, until a checkpoint moves it to a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use trefoil_core::{Event, EventId, Timestamp, both, located_position};
use trefoil_storage::Label;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::list::PostingList;
use super::named::ByName;
use super::term::TermKind;
use crate::read::label;

/// What the index needs to know of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexedEvent<'a> {
    pub(crate) position: u64,
    pub(crate) id: EventId,
    pub(crate) time: Timestamp,
    /// The stream and the place in it.
    pub(crate) stream: Option<(&'a str, u64)>,
    /// What decides which member of a consumer group the stream belongs to.
    pub(crate) group_hash: Option<i64>,
    /// Whether this is the first event of its stream.
    pub(crate) is_new_stream: bool,
    pub(crate) event_type: &'a str,
    pub(crate) tags: Tags<'a>,
    pub(crate) correlation: Option<&'a str>,
}

impl<'a> IndexedEvent<'a> {
    /// Returns what the index needs to know of a stored event; its correlation has been read
    /// before.
    pub(crate) fn of(event: &'a Event, label: Label, correlation: Option<&'a str>) -> Self {
        Self {
            position: event.position(),
            id: event.id(),
            time: event.time(),
            stream: event.stream().zip(event.stream_position()),
            group_hash: label::group_hash(label),
            is_new_stream: label::is_new_stream(label),
            event_type: event.event_type(),
            tags: Tags::Stored(event),
            correlation,
        }
    }
}

/// The tags of an event that is being written, or of one that was stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tags<'a> {
    Given(&'a [String]),
    Stored(&'a Event),
}

impl<'a> Tags<'a> {
    fn iter(self) -> impl Iterator<Item = &'a str> {
        let (given, stored) = match self {
            Self::Given(tags) => (Some(tags), None),
            Self::Stored(event) => (None, Some(event)),
        };
        let given = given.into_iter().flatten().map(String::as_str);
        given.chain(stored.into_iter().flat_map(Event::tags))
    }
}

/// How many events share one entry of the time index.
pub(crate) const EVENTS_PER_TIME_SAMPLE: usize = 1024;

/// The lists of one kind of term.
type Lists = ByName<PostingList>;

/// Lists far apart are not in the processor's caches. Touching those of some events first lets it
/// fetch them at the same time instead of one after the other.
const EVENTS_TOGETHER: usize = 32;

/// From this many events on it pays to look for the lists of their tags on a thread of its own.
const EVENTS_FOR_TWO_THREADS: usize = 4096;

/// About how much memory a posting takes, and an id.
const POSTING_BYTES: usize = 16;
const ID_BYTES: usize = 80;

/// How many positions are kept for the hash of an id, the first ones: an id that many events have
/// stands for the first of them, and that more than a few ids have one hash does not happen.
pub(crate) const POSITIONS_PER_ID_MAX: usize = 8;

/// Where events go in the tail that they were prepared for.
#[derive(Debug)]
pub(crate) struct TailPlaces {
    events: Vec<EventPlaces>,
    /// The places of tags and of correlations, and the positions that go there.
    tags: Vec<(usize, u64)>,
    correlations: Vec<(usize, u64)>,
    /// How many lists of each kind there were before.
    n_before: [usize; TermKind::EVERY.len()],
}

impl TailPlaces {
    pub(super) fn events(&self) -> std::slice::Iter<'_, EventPlaces> {
        self.events.iter()
    }

    /// Returns the places of tags, in the order of the events that have them.
    pub(super) fn tags(&self) -> &[(usize, u64)] {
        &self.tags
    }

    /// Returns the places of correlations, in the order of the events that have one.
    pub(super) fn correlations(&self) -> &[(usize, u64)] {
        &self.correlations
    }

    pub(super) fn last_position(&self) -> Option<u64> {
        self.events.last().map(|event| event.position)
    }
}

/// Where an event goes.
#[derive(Debug)]
pub(super) struct EventPlaces {
    pub(super) position: u64,
    time: Timestamp,
    /// The hash of an id that does not itself say where its event is.
    id: Option<u64>,
    pub(super) event_type: usize,
    /// The place of the stream, the event's place in it, and the place of the category.
    pub(super) stream: Option<(usize, u64, usize)>,
    is_new_stream: bool,
}

/// The index of the events since the last checkpoint.
#[derive(Debug)]
pub(crate) struct IndexTail {
    all: PostingList,
    /// Those of streams, types and so on. A list without postings is one that was only prepared.
    lists: [Lists; TermKind::EVERY.len()],
    /// Keyed hash of each id that does not itself say where its event is, to its first positions.
    ids: HashMap<u64, Vec<u64>>,
    id_seed: u64,
    times: Times,
    n_events: usize,
    posting_bytes: usize,
    n_bytes: usize,
    last_position: u64,
    /// How much memory all tails of the process take together, this one included.
    shared_bytes: Arc<AtomicUsize>,
}

impl Drop for IndexTail {
    fn drop(&mut self) {
        self.shared_bytes.fetch_sub(self.n_bytes, Ordering::Relaxed);
    }
}

impl IndexTail {
    /// Returns an empty tail after `last_position`, in a log whose highest time so far is
    /// `highest_time`.
    pub(crate) fn new(
        id_seed: u64,
        last_position: u64,
        highest_time: Timestamp,
        shared_bytes: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            all: PostingList::default(),
            lists: Default::default(),
            ids: HashMap::new(),
            id_seed,
            times: Times {
                highest: highest_time,
                ..Times::default()
            },
            n_events: 0,
            posting_bytes: 0,
            n_bytes: 0,
            last_position,
            shared_bytes,
        }
    }

    pub(crate) fn n_events(&self) -> usize {
        self.n_events
    }

    /// Returns about how much memory the tail takes.
    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    pub(crate) fn last_position(&self) -> u64 {
        self.last_position
    }

    pub(crate) fn highest_time(&self) -> Timestamp {
        self.times.highest
    }

    /// Has the processor fetch the lists of these streams.
    pub(crate) fn touch_streams(&self, streams: &[&str]) {
        self.lists[TermKind::Stream as usize].touch(streams.iter().copied());
    }

    /// Finds out where events go, and makes room for them. Nobody sees anything of that.
    /// `describe` says what there is to know of one.
    pub(crate) fn prepare<'a, E: Sync>(
        &mut self,
        events: &'a [E],
        describe: impl Fn(&'a E) -> IndexedEvent<'a> + Sync,
    ) -> TailPlaces {
        let n_before = self.lists.each_ref().map(ByName::len);
        let [_, categories, correlations, streams, tags, types] = &mut self.lists;
        let mut tags = TagPlacing {
            lists: tags,
            places: Vec::with_capacity(2 * events.len()),
        };
        let mut rest = Placing {
            categories,
            correlations,
            streams,
            types,
            id_seed: self.id_seed,
            places: Vec::with_capacity(events.len()),
            correlated: Vec::new(),
        };
        let chunks = events.chunks(EVENTS_TOGETHER);
        if events.len() < EVENTS_FOR_TWO_THREADS {
            for some in chunks {
                tags.place(some, &describe);
                rest.place(some, &describe);
            }
        } else {
            let place_tags = || chunks.clone().for_each(|some| tags.place(some, &describe));
            let place_rest = || chunks.clone().for_each(|some| rest.place(some, &describe));
            both(true, place_tags, place_rest);
        }
        TailPlaces {
            events: rest.places,
            tags: tags.places,
            correlations: rest.correlated,
            n_before,
        }
    }

    /// Forgets what was prepared last, which will not be added.
    pub(crate) fn forget(&mut self, places: &TailPlaces) {
        for (lists, n) in self.lists.iter_mut().zip(places.n_before) {
            lists.truncate(n);
        }
    }

    /// Adds events that were prepared, in order, all of which come after those that are there.
    pub(crate) fn add(&mut self, places: &TailPlaces) {
        let [_, categories, _, streams, _, types] = &mut self.lists;
        for some in places.events.chunks(EVENTS_TOGETHER) {
            let in_streams = some.iter().filter_map(|event| event.stream);
            touch(streams, in_streams.map(|(stream, ..)| stream));
            for event in some {
                let position = event.position;
                let new_streams = u64::from(event.is_new_stream);
                self.all.push(position);
                self.all.add_new_streams(new_streams);
                types.at_mut(event.event_type).push(position);
                if let Some((stream, ordinal, category)) = event.stream {
                    streams.at_mut(stream).push_in_stream(position, ordinal);
                    let category = categories.at_mut(category);
                    category.push(position);
                    category.add_new_streams(new_streams);
                }
                if let Some(hash) = event.id {
                    let positions = self.ids.entry(hash).or_default();
                    if positions.len() < POSITIONS_PER_ID_MAX {
                        positions.push(position);
                        self.posting_bytes += ID_BYTES;
                    }
                }
                self.times.add(position, event.time);
            }
        }
        push_all(&mut self.lists[TermKind::Tag as usize], &places.tags);
        let correlations = &mut self.lists[TermKind::Correlation as usize];
        push_all(correlations, &places.correlations);
        let n_terms = places.tags.len() + places.correlations.len();
        // Besides, each event is among all, in a stream, in a category and of a type.
        self.count(places.events.len(), n_terms + 4 * places.events.len());
        self.last_position = places.last_position().unwrap_or(self.last_position);
    }

    fn count(&mut self, n_events: usize, n_postings: usize) {
        self.n_events += n_events;
        self.posting_bytes += n_postings * POSTING_BYTES;
        let names: usize = self.lists.iter().map(ByName::name_bytes).sum();
        let n_bytes = self.posting_bytes + names;
        let grown = n_bytes - self.n_bytes;
        self.shared_bytes.fetch_add(grown, Ordering::Relaxed);
        self.n_bytes = n_bytes;
    }

    pub(crate) fn list(&self, kind: TermKind, name: &str) -> Option<&PostingList> {
        let list = match kind {
            TermKind::All => name.is_empty().then_some(&self.all),
            _ => self.lists[kind as usize].get(name),
        };
        list.filter(|list| list.len() > 0)
    }

    /// Returns the name of the list at a place.
    pub(super) fn name_at(&self, kind: TermKind, place: usize) -> &str {
        self.lists[kind as usize].name_at(place)
    }

    /// Returns what decides which member of a consumer group the stream at a place belongs to.
    pub(super) fn group_hash_at(&self, place: usize) -> Option<i64> {
        self.lists[TermKind::Stream as usize].at(place).group_hash()
    }

    /// Returns all names of a kind and their postings, in no order.
    pub(crate) fn lists(&self, kind: TermKind) -> impl Iterator<Item = (&str, &PostingList)> {
        let all = (kind == TermKind::All).then_some(("", &self.all));
        let lists = self.lists[kind as usize].iter().chain(all);
        lists.filter(|(_, list)| list.len() > 0)
    }

    pub(crate) fn positions_of_id(&self, hash: u64) -> &[u64] {
        self.ids.get(&hash).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn ids(&self) -> &HashMap<u64, Vec<u64>> {
        &self.ids
    }

    pub(crate) fn times(&self) -> &[(Timestamp, u64)] {
        &self.times.samples
    }
}

/// Finds out where events go by their tags.
struct TagPlacing<'t> {
    lists: &'t mut Lists,
    places: Vec<(usize, u64)>,
}

impl TagPlacing<'_> {
    fn place<'a, E>(&mut self, events: &'a [E], describe: impl Fn(&'a E) -> IndexedEvent<'a>) {
        let tags = |event| describe(event).tags.iter();
        self.lists.touch(events.iter().flat_map(tags));
        for event in events.iter().map(describe) {
            for tag in event.tags.iter() {
                let place = self.lists.place(tag, PostingList::default);
                self.places.push((place, event.position));
            }
        }
    }
}

/// Finds out where events go by all they have but their tags.
struct Placing<'t> {
    categories: &'t mut Lists,
    correlations: &'t mut Lists,
    streams: &'t mut Lists,
    types: &'t mut Lists,
    id_seed: u64,
    places: Vec<EventPlaces>,
    /// The places of correlations, and the positions that go there.
    correlated: Vec<(usize, u64)>,
}

impl Placing<'_> {
    fn place<'a, E>(&mut self, events: &'a [E], describe: impl Fn(&'a E) -> IndexedEvent<'a>) {
        let streams = events.iter().filter_map(|event| describe(event).stream);
        self.streams.touch(streams.map(|(stream, _)| stream));
        for event in events.iter().map(describe) {
            self.place_one(&event);
        }
    }

    fn place_one(&mut self, event: &IndexedEvent<'_>) {
        let position = event.position;
        if let Some(correlation) = event.correlation {
            let place = self.correlations.place(correlation, PostingList::default);
            self.correlated.push((place, position));
        }
        let stream = event.stream.map(|(stream, ordinal)| {
            let category = trefoil_core::category(stream);
            let category = self.categories.place(category, PostingList::default);
            let make = || PostingList::of_stream(event.group_hash);
            (self.streams.place(stream, make), ordinal, category)
        });
        let is_located = located_position(&event.id) == Some(position);
        self.places.push(EventPlaces {
            position,
            time: event.time,
            id: (!is_located).then(|| id_hash(&event.id, self.id_seed)),
            event_type: self.types.place(event.event_type, PostingList::default),
            stream,
            is_new_stream: event.is_new_stream,
        });
    }
}

/// When events were written, roughly.
#[derive(Debug, Default)]
struct Times {
    /// The highest time so far wherever it grew, and the first position of the stretch of events
    /// in which it did.
    samples: Vec<(Timestamp, u64)>,
    highest: Timestamp,
    /// The first position of the stretch of events that the next sample is for.
    stretch_start: u64,
    stretch_events: usize,
}

impl Times {
    fn add(&mut self, position: u64, time: Timestamp) {
        if self.stretch_events == 0 {
            self.stretch_start = position;
        }
        self.stretch_events = (self.stretch_events + 1) % EVENTS_PER_TIME_SAMPLE;
        if time > self.highest {
            self.highest = time;
            match self.samples.last_mut() {
                Some((highest, start)) if *start == self.stretch_start => *highest = time,
                _ => self.samples.push((time, self.stretch_start)),
            }
        }
    }
}

/// Appends positions to the lists at their places.
fn push_all(lists: &mut Lists, places: &[(usize, u64)]) {
    for some in places.chunks(EVENTS_TOGETHER) {
        touch(lists, some.iter().map(|(place, _)| *place));
        for &(place, position) in some {
            lists.at_mut(place).push(position);
        }
    }
}

/// Has the processor fetch the ends of the lists at these places.
fn touch(lists: &Lists, places: impl Iterator<Item = usize>) {
    let ends = places.map(|place| lists.at(place).last_position());
    std::hint::black_box(ends.fold(0, std::ops::BitXor::bitxor));
}

/// Returns the hash under which an id is indexed. The seed keeps others from choosing ids that
/// collide.
pub(crate) fn id_hash(id: &EventId, seed: u64) -> u64 {
    xxh3_64_with_seed(id.as_bytes(), seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(position: u64, tags: &[String]) -> IndexedEvent<'_> {
        IndexedEvent {
            position,
            id: EventId::from_bytes([7; 16]),
            time: Timestamp(1),
            stream: Some(("account-1", position - 1)),
            group_hash: None,
            is_new_stream: position == 1,
            event_type: "Opened",
            tags: Tags::Given(tags),
            correlation: Some("cart"),
        }
    }

    #[test]
    fn nobody_sees_events_that_were_only_prepared() {
        let mut tail = IndexTail::new(0, 0, Timestamp::default(), Arc::default());
        let tags = ["a".to_owned(), "b".to_owned()];
        let n_seen = |tail: &IndexTail| {
            let lists = TermKind::EVERY
                .into_iter()
                .flat_map(|kind| tail.lists(kind));
            let found = tail.list(TermKind::Stream, "account-1");
            (lists.count(), found.map(PostingList::len), tail.n_events())
        };
        let refused = tail.prepare(&[event(1, &tags)], |event| *event);
        assert_eq!(n_seen(&tail), (0, None, 0));
        tail.forget(&refused);
        assert_eq!((n_seen(&tail), tail.n_bytes()), ((0, None, 0), 0));
        for position in 1..=2 {
            let places = tail.prepare(&[event(position, &tags)], |event| *event);
            tail.add(&places);
            assert_eq!(
                n_seen(&tail),
                (7, Some(position as usize), position as usize)
            );
        }
    }

    #[test]
    fn many_events_that_were_refused_leave_nothing() {
        let mut tail = IndexTail::new(0, 0, Timestamp::default(), Arc::default());
        let tags: Vec<[String; 1]> = (0..EVENTS_FOR_TWO_THREADS)
            .map(|number| [number.to_string()])
            .collect();
        let events = tags.iter().zip(1..).map(|(tags, at)| event(at, tags));
        let events: Vec<IndexedEvent<'_>> = events.collect();
        let refused = tail.prepare(&events, |event| *event);
        tail.forget(&refused);
        assert!(tail.lists.iter().all(|lists| lists.len() == 0));
        let places = tail.prepare(&events, |event| *event);
        tail.add(&places);
        let found = tags.iter().map(|[tag]| tail.list(TermKind::Tag, tag));
        let positions = found.map(|list| list.map(PostingList::last_position));
        assert!(positions.eq((1..=tags.len() as u64).map(Some)));
        let stream = tail.list(TermKind::Stream, "account-1");
        assert_eq!(stream.map(PostingList::len), Some(tags.len()));
    }
}
