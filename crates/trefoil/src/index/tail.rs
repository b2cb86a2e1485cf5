//! The newest part of the index, in memory, until a checkpoint moves it to a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;
use trefoil_core::{Event, EventId, Timestamp, located_position};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::list::List;
use super::named::Named;
use super::term::Kind;

/// What the index needs to know of an event.
#[derive(Debug)]
pub(crate) struct IndexedEvent<'a> {
    pub(crate) position: u64,
    pub(crate) id: EventId,
    pub(crate) time: Timestamp,
    /// The stream and the place in it.
    pub(crate) stream: Option<(&'a str, u64)>,
    /// Whether this is the first event of its stream.
    pub(crate) is_new_stream: bool,
    pub(crate) event_type: &'a str,
    pub(crate) tags: Tags<'a>,
    pub(crate) correlation: Option<&'a str>,
}

impl<'a> IndexedEvent<'a> {
    /// What the index needs to know of a stored event; its correlation has been read before.
    pub(crate) fn of(event: &'a Event, is_new_stream: bool, correlation: Option<&'a str>) -> Self {
        Self {
            position: event.position(),
            id: event.id(),
            time: event.time(),
            stream: event.stream().zip(event.stream_position()),
            is_new_stream,
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
type Lists = Named<List>;

/// From so many events on it pays to add them with two threads.
const EVENTS_FOR_TWO_THREADS: usize = 512;

/// Lists far apart are not in the processor's caches. Finding those of some events first and then
/// touching them all lets it fetch them at the same time instead of one after the other.
const EVENTS_TOGETHER: usize = 32;

/// About how much memory a posting takes, and an id.
const POSTING_BYTES: usize = 16;
const ID_BYTES: usize = 80;

/// The index of the events since the last checkpoint.
#[derive(Debug)]
pub(crate) struct Tail {
    singles: Singles,
    several: Several,
    n_events: usize,
    n_bytes: usize,
    last_position: u64,
    /// How much memory all tails of the process take together, this one included.
    shared_bytes: Arc<AtomicUsize>,
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.shared_bytes.fetch_sub(self.n_bytes, Ordering::Relaxed);
    }
}

impl Tail {
    /// An empty tail after `last_position`, in a log whose highest time so far is `highest_time`.
    pub(crate) fn new(
        id_seed: u64,
        last_position: u64,
        highest_time: Timestamp,
        shared_bytes: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            singles: Singles::new(id_seed, highest_time),
            several: Several::default(),
            n_events: 0,
            n_bytes: 0,
            last_position,
            shared_bytes,
        }
    }

    pub(crate) fn n_events(&self) -> usize {
        self.n_events
    }

    /// About how much memory the tail takes.
    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    pub(crate) fn last_position(&self) -> u64 {
        self.last_position
    }

    pub(crate) fn highest_time(&self) -> Timestamp {
        self.singles.highest_time
    }

    /// Adds events in order, all of which come after those that are there.
    pub(crate) fn add(&mut self, events: &[IndexedEvent<'_>]) {
        let names_before = self.name_bytes();
        let postings = if events.len() < EVENTS_FOR_TWO_THREADS {
            self.singles.add(events) + self.several.add(events)
        } else {
            self.add_with_two_threads(events)
        };
        let bytes = postings + self.name_bytes() - names_before;
        self.n_bytes += bytes;
        self.shared_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.n_events += events.len();
        self.last_position = events
            .last()
            .map_or(self.last_position, |event| event.position);
    }

    fn add_with_two_threads(&mut self, events: &[IndexedEvent<'_>]) -> usize {
        let Self {
            singles, several, ..
        } = self;
        let several = Mutex::new(several);
        let add_others = || several.lock().add(events);
        std::thread::scope(|scope| {
            let other = std::thread::Builder::new().spawn_scoped(scope, add_others);
            let bytes = singles.add(events);
            match other.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(others)) => bytes + others,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                // No thread was to be had.
                Err(_) => bytes + add_others(),
            }
        })
    }

    /// About how much memory the lists take besides their postings.
    fn name_bytes(&self) -> usize {
        let lists = Kind::EVERY.iter().filter_map(|kind| self.lists_of(*kind));
        lists.map(Lists::name_bytes).sum()
    }

    fn lists_of(&self, kind: Kind) -> Option<&Lists> {
        match kind {
            Kind::All => None,
            Kind::Stream => Some(&self.singles.streams),
            Kind::Category => Some(&self.singles.categories),
            Kind::Type => Some(&self.singles.types),
            Kind::Tag => Some(&self.several.tags),
            Kind::Correlation => Some(&self.several.correlations),
        }
    }

    pub(crate) fn list(&self, kind: Kind, name: &str) -> Option<&List> {
        match self.lists_of(kind) {
            Some(lists) => lists.get(name),
            None => (name.is_empty() && self.n_events > 0).then_some(&self.singles.all),
        }
    }

    /// All names of a kind and their postings, in no order.
    pub(crate) fn lists(&self, kind: Kind) -> Box<dyn Iterator<Item = (&str, &List)> + '_> {
        match self.lists_of(kind) {
            Some(lists) => Box::new(lists.iter()),
            None => Box::new(self.list(kind, "").into_iter().map(|list| ("", list))),
        }
    }

    pub(crate) fn positions_of_id(&self, hash: u64) -> &[u64] {
        self.singles.ids.get(&hash).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn ids(&self) -> &HashMap<u64, Vec<u64>> {
        &self.singles.ids
    }

    pub(crate) fn times(&self) -> &[(Timestamp, u64)] {
        &self.singles.times
    }
}

/// What an event has once: its place among all, its stream, category, type, id and time.
#[derive(Debug)]
struct Singles {
    all: List,
    streams: Lists,
    categories: Lists,
    types: Lists,
    /// Keyed hash of each id that does not itself say where its event is, to its positions.
    ids: HashMap<u64, Vec<u64>>,
    id_seed: u64,
    /// The highest time so far wherever it grew, and the first position of the stretch of events
    /// in which it did.
    times: Vec<(Timestamp, u64)>,
    highest_time: Timestamp,
    /// The first position of the stretch of events that the next time sample is for.
    stretch_start: u64,
    stretch_events: usize,
}

impl Singles {
    fn new(id_seed: u64, highest_time: Timestamp) -> Self {
        Self {
            all: List::default(),
            streams: Lists::default(),
            categories: Lists::default(),
            types: Lists::default(),
            ids: HashMap::new(),
            id_seed,
            times: Vec::new(),
            highest_time,
            stretch_start: 0,
            stretch_events: 0,
        }
    }

    /// Adds events. Answers about how much memory their postings and ids take.
    fn add(&mut self, events: &[IndexedEvent<'_>]) -> usize {
        let mut bytes = 0;
        let mut places = Vec::with_capacity(events.len().min(EVENTS_TOGETHER));
        for some in events.chunks(EVENTS_TOGETHER) {
            places.clear();
            for event in some {
                if let Some((stream, ordinal)) = event.stream {
                    places.push((
                        self.streams.place(stream, List::default),
                        event.position,
                        ordinal,
                    ));
                }
            }
            touch(&self.streams, places.iter().map(|(place, ..)| *place));
            for &(place, position, ordinal) in &places {
                self.streams.at_mut(place).push_in_stream(position, ordinal);
            }
            bytes += some
                .iter()
                .map(|event| self.add_event(event))
                .sum::<usize>();
        }
        bytes
    }

    /// Adds all of an event but its place in its stream.
    fn add_event(&mut self, event: &IndexedEvent<'_>) -> usize {
        let position = event.position;
        let new_streams = u64::from(event.is_new_stream);
        self.all.push(position);
        self.all.add_new_streams(new_streams);
        if let Some((stream, _)) = event.stream {
            let list = list_of(&mut self.categories, trefoil_core::category(stream));
            list.push(position);
            list.add_new_streams(new_streams);
        }
        list_of(&mut self.types, event.event_type).push(position);
        self.add_time(position, event.time);
        let n_postings = 2 + 2 * usize::from(event.stream.is_some());
        POSTING_BYTES * n_postings + self.add_id(position, &event.id)
    }

    fn add_id(&mut self, position: u64, id: &EventId) -> usize {
        if located_position(id) == Some(position) {
            return 0;
        }
        let hash = id_hash(id, self.id_seed);
        self.ids.entry(hash).or_default().push(position);
        ID_BYTES
    }

    fn add_time(&mut self, position: u64, time: Timestamp) {
        if self.stretch_events == 0 {
            self.stretch_start = position;
        }
        self.stretch_events = (self.stretch_events + 1) % EVENTS_PER_TIME_SAMPLE;
        if time > self.highest_time {
            self.highest_time = time;
            match self.times.last_mut() {
                Some((highest, start)) if *start == self.stretch_start => {
                    *highest = self.highest_time;
                }
                _ => self.times.push((self.highest_time, self.stretch_start)),
            }
        }
    }
}

/// What an event may have several of, or none: tags and correlations.
#[derive(Debug, Default)]
struct Several {
    tags: Lists,
    correlations: Lists,
}

impl Several {
    /// Adds events. Answers about how much memory their postings take.
    fn add(&mut self, events: &[IndexedEvent<'_>]) -> usize {
        let mut n_postings = 0;
        let mut places = Vec::new();
        for some in events.chunks(EVENTS_TOGETHER) {
            places.clear();
            for event in some {
                for tag in event.tags.iter() {
                    places.push((self.tags.place(tag, List::default), event.position));
                }
                if let Some(correlation) = event.correlation {
                    list_of(&mut self.correlations, correlation).push(event.position);
                    n_postings += 1;
                }
            }
            touch(&self.tags, places.iter().map(|(place, _)| *place));
            for &(place, position) in &places {
                self.tags.at_mut(place).push(position);
            }
            n_postings += places.len();
        }
        POSTING_BYTES * n_postings
    }
}

/// The list of a term, which is made if there is none.
fn list_of<'a>(lists: &'a mut Lists, name: &str) -> &'a mut List {
    let place = lists.place(name, List::default);
    lists.at_mut(place)
}

/// Has the processor fetch the ends of the lists at these places.
fn touch(lists: &Lists, places: impl Iterator<Item = usize>) {
    let ends = places.map(|place| lists.at(place).last_position());
    std::hint::black_box(ends.fold(0, std::ops::BitXor::bitxor));
}

/// The hash under which an id is indexed. The seed keeps others from choosing ids that collide.
pub(crate) fn id_hash(id: &EventId, seed: u64) -> u64 {
    xxh3_64_with_seed(id.as_bytes(), seed)
}
