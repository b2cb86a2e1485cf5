//! The newest part of the index, in memory, until a checkpoint moves it to a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;
use trefoil_core::{Direction, Event, EventId, Timestamp, located_position};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::postings::{Posting, Summary};
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

/// The postings of one term.
#[derive(Debug, Default)]
pub(crate) struct List {
    positions: Vec<u64>,
    /// The first ordinal of a stream.
    first_ordinal: u64,
    /// One per position for a stream that has gaps here; otherwise empty, and they are consecutive.
    ordinals: Vec<u64>,
    is_stream: bool,
    new_streams: u64,
}

impl List {
    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    pub(crate) fn posting(&self, index: usize) -> Posting {
        Posting {
            position: self.positions[index],
            ordinal: self.ordinal(index),
        }
    }

    fn ordinal(&self, index: usize) -> u64 {
        match self.ordinals.get(index) {
            Some(ordinal) => *ordinal,
            None if self.is_stream => self.first_ordinal + index as u64,
            None => 0,
        }
    }

    pub(crate) fn last_ordinal(&self) -> u64 {
        self.positions
            .len()
            .checked_sub(1)
            .map_or(0, |index| self.ordinal(index))
    }

    /// Appends a posting of a stream.
    fn push_in_stream(&mut self, position: u64, ordinal: u64) {
        if self.positions.is_empty() {
            self.is_stream = true;
            self.first_ordinal = ordinal;
        } else if self.ordinals.is_empty() && ordinal != self.last_ordinal() + 1 {
            self.ordinals = (0..self.positions.len())
                .map(|index| self.ordinal(index))
                .collect();
            self.ordinals.push(ordinal);
        } else if !self.ordinals.is_empty() {
            self.ordinals.push(ordinal);
        }
        self.positions.push(position);
    }

    pub(crate) fn summary(&self) -> Option<Summary> {
        let (first, last) = (self.positions.first()?, self.positions.last()?);
        Some(Summary {
            n: self.positions.len() as u64,
            first_position: *first,
            last_position: *last,
            first_ordinal: self.ordinal(0),
            last_ordinal: self.last_ordinal(),
            new_streams: self.new_streams,
        })
    }

    /// How many positions there are from `low` to `high`, inclusive.
    pub(crate) fn count(&self, low: u64, high: u64) -> u64 {
        let end = self.positions.partition_point(|&position| position <= high);
        let start = self.positions[..end].partition_point(|&position| position < low);
        (end - start) as u64
    }

    /// Copies up to `max` positions at or beyond `from` in the given direction.
    pub(crate) fn page(&self, from: u64, direction: Direction, max: usize, out: &mut Vec<u64>) {
        match direction {
            Direction::Forwards => {
                let start = self.positions.partition_point(|&position| position < from);
                out.extend(self.positions[start..].iter().take(max));
            }
            Direction::Backwards => {
                let end = self.positions.partition_point(|&position| position <= from);
                out.extend(self.positions[..end].iter().rev().take(max));
            }
        }
    }

    /// The position of the first event at or beyond the place `ordinal` in the given direction.
    pub(crate) fn seek_ordinal(&self, ordinal: u64, direction: Direction) -> Option<u64> {
        let n_below = |ordinal: u64| match self.ordinals.as_slice() {
            [] => {
                let below = ordinal.saturating_sub(self.first_ordinal);
                usize::try_from(below)
                    .unwrap_or(usize::MAX)
                    .min(self.positions.len())
            }
            ordinals => ordinals.partition_point(|&place| place < ordinal),
        };
        let index = match direction {
            Direction::Forwards => n_below(ordinal),
            Direction::Backwards => n_below(ordinal.saturating_add(1)).checked_sub(1)?,
        };
        self.positions.get(index).copied()
    }
}

/// How many events share one entry of the time index.
pub(crate) const EVENTS_PER_TIME_SAMPLE: usize = 1024;

/// The postings of each kind of term by name.
type Lists = [HashMap<String, List>; Kind::EVERY.len()];

/// From so many events on it pays to add them with two threads.
const EVENTS_FOR_TWO_THREADS: usize = 512;

/// About how much memory a posting takes, and a new list besides its name.
const POSTING_BYTES: usize = 16;
const LIST_BYTES: usize = 160;

/// The index of the events since the last checkpoint.
#[derive(Debug)]
pub(crate) struct Tail {
    order: Order,
    /// The terms that are not in `order`, whose places are empty here.
    lists: Lists,
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
            order: Order::new(id_seed, highest_time),
            lists: Lists::default(),
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
        self.order.highest_time
    }

    /// Adds events in order, all of which come after those that are there.
    pub(crate) fn add(&mut self, events: &[IndexedEvent<'_>]) {
        let bytes = if events.len() < EVENTS_FOR_TWO_THREADS {
            self.order.add(events) + add_terms(&mut self.lists, events)
        } else {
            self.add_with_two_threads(events)
        };
        self.n_bytes += bytes;
        self.shared_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.n_events += events.len();
        self.last_position = events
            .last()
            .map_or(self.last_position, |event| event.position);
    }

    fn add_with_two_threads(&mut self, events: &[IndexedEvent<'_>]) -> usize {
        let Self { order, lists, .. } = self;
        let lists = Mutex::new(lists);
        let add_others = || add_terms(&mut lists.lock(), events);
        std::thread::scope(|scope| {
            let other = std::thread::Builder::new().spawn_scoped(scope, add_others);
            let bytes = order.add(events);
            match other.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(others)) => bytes + others,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                // No thread was to be had.
                Err(_) => bytes + add_others(),
            }
        })
    }

    pub(crate) fn list(&self, kind: Kind, name: &str) -> Option<&List> {
        match kind {
            Kind::All => (name.is_empty() && self.n_events > 0).then_some(&self.order.all),
            Kind::Stream => self.order.streams.get(name),
            _ => self.lists[kind as usize].get(name),
        }
    }

    /// All names of a kind and their postings, in no order.
    pub(crate) fn lists(&self, kind: Kind) -> Box<dyn Iterator<Item = (&str, &List)> + '_> {
        let lists = match kind {
            Kind::All => {
                return Box::new(self.list(kind, "").into_iter().map(|list| ("", list)));
            }
            Kind::Stream => &self.order.streams,
            _ => &self.lists[kind as usize],
        };
        Box::new(lists.iter().map(|(name, list)| (name.as_str(), list)))
    }

    pub(crate) fn positions_of_id(&self, hash: u64) -> &[u64] {
        self.order.ids.get(&hash).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn ids(&self) -> &HashMap<u64, Vec<u64>> {
        &self.order.ids
    }

    pub(crate) fn times(&self) -> &[(Timestamp, u64)] {
        &self.order.times
    }
}

/// What says which events there are and in which order: everything, streams, ids and times.
#[derive(Debug)]
struct Order {
    all: List,
    streams: HashMap<String, List>,
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

impl Order {
    fn new(id_seed: u64, highest_time: Timestamp) -> Self {
        Self {
            all: List::default(),
            streams: HashMap::new(),
            ids: HashMap::new(),
            id_seed,
            times: Vec::new(),
            highest_time,
            stretch_start: 0,
            stretch_events: 0,
        }
    }

    /// Adds events. Answers about how much memory that took.
    fn add(&mut self, events: &[IndexedEvent<'_>]) -> usize {
        let mut bytes = 0;
        for event in events {
            let position = event.position;
            bytes += 2 * POSTING_BYTES;
            self.all.positions.push(position);
            self.all.new_streams += u64::from(event.is_new_stream);
            if let Some((stream, ordinal)) = event.stream {
                let list = self.streams.entry_ref(stream).or_default();
                bytes += cost_of(list, stream);
                list.push_in_stream(position, ordinal);
            }
            if located_position(&event.id) != Some(position) {
                let hash = id_hash(&event.id, self.id_seed);
                self.ids.entry(hash).or_default().push(position);
                bytes += LIST_BYTES / 2;
            }
            self.add_time(position, event.time);
        }
        bytes
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

/// What a list will cost besides its postings: nothing if it is not new.
fn cost_of(list: &List, name: &str) -> usize {
    if list.positions.is_empty() {
        LIST_BYTES + name.len()
    } else {
        0
    }
}

/// Adds events to the lists of their categories, types, tags and correlations. Answers about how
/// much memory that took.
fn add_terms(lists: &mut Lists, events: &[IndexedEvent<'_>]) -> usize {
    let mut bytes = 0;
    let mut insert = |kind: Kind, name: &str, position: u64, new_streams: u64| {
        let list = lists[kind as usize].entry_ref(name).or_default();
        bytes += POSTING_BYTES + cost_of(list, name);
        // Once even if an event has the term twice.
        if list.positions.last() != Some(&position) {
            list.positions.push(position);
        }
        list.new_streams += new_streams;
    };
    for event in events {
        let position = event.position;
        if let Some((stream, _)) = event.stream {
            let category = trefoil_core::category(stream);
            insert(
                Kind::Category,
                category,
                position,
                u64::from(event.is_new_stream),
            );
        }
        insert(Kind::Type, event.event_type, position, 0);
        for tag in event.tags.iter() {
            insert(Kind::Tag, tag, position, 0);
        }
        if let Some(correlation) = event.correlation {
            insert(Kind::Correlation, correlation, position, 0);
        }
    }
    bytes
}

/// The hash under which an id is indexed. The seed keeps others from choosing ids that collide.
pub(crate) fn id_hash(id: &EventId, seed: u64) -> u64 {
    xxh3_64_with_seed(id.as_bytes(), seed)
}
