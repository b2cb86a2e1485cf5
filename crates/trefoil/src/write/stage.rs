//! Staging: deciding, one request after the other, what of a group is written and where.
//!
//! A request is checked against the durable index and against what the group holds already. It
//! takes effect on the group whole or not at all, so that one that fails harms no other.

use hashbrown::HashMap;
use trefoil_core::{
    Appended, Committed, EVENTS_TOUCHED, Event, EventId, EventItem, Result, Timestamp, Tracking,
    both, correlation_category, make_event_id, put_varint, stream_group_hash, touch_bodies,
};
use trefoil_state::Moment;
use trefoil_storage::{Group, Label, Record};

use super::changes;
use super::known::{Known, check_unknown, replayed};
use super::staged::{Staged, StagedEvent, StagedTerms};
use crate::index::{Index, Named, StreamEnd};
use crate::read::Matcher;
use crate::read::condition::CheckedCommit;
use crate::read::label;
use crate::state::{Entries, Store, ToClean, Touched, View};

/// Finds the events at durable positions, as far as they hold one, in the same order.
pub(crate) type Fetch<'a> = dyn Fn(&[u64]) -> Result<Vec<Event>> + 'a;

/// Finds the first selected event between two durable positions, inclusive.
pub(crate) type Search<'a> = dyn Fn(Matcher<'_>, u64, u64) -> Result<Option<u64>> + 'a;

/// From so many streams on it pays to look for them on two threads.
const STREAMS_FOR_TWO_THREADS: usize = 2048;

/// Where the next event goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Front {
    /// The last commit and position, staged ones included.
    pub(crate) commit: u64,
    pub(crate) position: u64,
    /// The highest time that the server gave to an event.
    pub(crate) clock: Timestamp,
}

/// A group being put together.
pub(crate) struct Stage<'a> {
    pub(super) index: &'a Index,
    fetch: &'a Fetch<'a>,
    pub(super) search: &'a Search<'a>,
    pub(super) front: Front,
    /// The position before the group's first event.
    pub(super) base: u64,
    /// The wall clock, by which deadlines are set and judged.
    now: Timestamp,
    random: u64,
    /// The bytes after which the group takes no more commits.
    bytes_max: usize,
    group: Group,
    pub(super) staged: Vec<Staged<'a>>,
    /// The streams the group has to do with.
    streams: Named<Stream>,
    /// The ids that clients gave to events of the group, to the index of the first such event.
    pub(super) ids: HashMap<EventId, usize>,
    /// The types and tags of the staged events.
    pub(super) terms: StagedTerms,
    /// The state as the group changes it, once a commit has to do with it.
    view: Option<View>,
    store: &'a Store,
    /// What the commits of the last record change besides appending events.
    changes: Vec<u8>,
    /// About how many bytes the records before the last one take in the log.
    ended_bytes: usize,
}

/// A stream that the group has to do with.
#[derive(Default)]
struct Stream {
    /// `None` for one without events.
    last_ordinal: Option<u64>,
    group_hash: Option<i64>,
}

impl Stream {
    /// A stream of which this is known.
    fn new(name: &str, end: Option<StreamEnd>) -> Self {
        Self {
            last_ordinal: end.map(|end| end.last_ordinal),
            group_hash: end.map_or_else(|| stream_group_hash(name), |end| end.group_hash),
        }
    }
}

/// What an event is appended with.
pub(super) struct Place<'t> {
    pub(super) position: u64,
    pub(super) time: Timestamp,
    /// The place of its stream among those of the group.
    pub(super) stream: Option<usize>,
    /// `None`: the next one of the stream.
    pub(super) stream_position: Option<u64>,
    pub(super) is_imported: bool,
    pub(super) tracking: Option<&'t Tracking>,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(
        (index, store): (&'a Index, &'a Store),
        (fetch, search): (&'a Fetch<'a>, &'a Search<'a>),
        front: Front,
        (now, random): (Timestamp, u64),
        bytes_max: usize,
    ) -> Self {
        Self {
            index,
            fetch,
            search,
            front,
            base: front.position,
            now,
            random,
            bytes_max,
            group: Group::default(),
            staged: Vec::new(),
            streams: Named::default(),
            ids: HashMap::new(),
            terms: StagedTerms::default(),
            view: None,
            store,
            changes: Vec::new(),
            ended_bytes: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.group.records.is_empty()
    }

    /// Whether the group takes so many bytes in the log that it should be written before more is
    /// staged.
    pub(crate) fn is_full(&self) -> bool {
        let last = self.group.records.last();
        let last = last.map_or(0, |record| record.items.n_bytes());
        self.ended_bytes + last + self.changes.len() >= self.bytes_max
    }

    /// Stages a commit, or says why it is not written.
    pub(crate) fn commit(&mut self, commit: &'a CheckedCommit) -> Result<Committed> {
        let CheckedCommit { commit, checked } = commit;
        let known = self.known(commit)?;
        if let Some(committed) = replayed(&known) {
            self.track_again(commit.tracking.as_ref())?;
            return Ok(committed);
        }
        self.check_conditions(&commit.conditions, checked)?;
        let events = commit.events.iter().map(StagedEvent::HandedIn).collect();
        self.whole_or_not(|stage| stage.stage_commit(events, commit.tracking.as_ref(), &known))
    }

    /// Does something that changes the state, or leaves the state as it was if that fails.
    pub(super) fn whole_or_not<T>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let changed = change(self);
        if let (Err(_), Some(view)) = (&changed, &mut self.view) {
            view.take_back_commit();
        }
        changed
    }

    /// Stages a commit whose conditions hold.
    pub(super) fn stage_commit(
        &mut self,
        events: Vec<StagedEvent<'a>>,
        tracking: Option<&Tracking>,
        known: &[Option<Known>],
    ) -> Result<Committed> {
        check_unknown(known)?;
        let streams = events.iter().map(|event| event.stream.as_deref());
        let mut streams = self.resolve(streams)?.into_iter();
        if let Some(tracking) = tracking {
            self.view().track(tracking)?;
        }
        let mut appended = Vec::with_capacity(events.len());
        let time = self.now.max(self.front.clock);
        if !events.is_empty() {
            self.front.clock = time;
        }
        self.begin_record(self.front.position + 1);
        let number = self.begin_commit();
        self.end_commit(events.len());
        self.reserve(&events);
        let mut events = events.into_iter();
        while !events.as_slice().is_empty() {
            touch_bodies(events.as_slice().iter().map(|event| &**event));
            for (event, stream) in events.by_ref().zip(streams.by_ref()).take(EVENTS_TOUCHED) {
                let place = Place {
                    position: self.front.position + 1,
                    time,
                    stream,
                    stream_position: None,
                    is_imported: false,
                    tracking,
                };
                appended.push(self.append(event, number, &place));
            }
        }
        self.end_state(number);
        let position = self.front.position;
        Ok(Committed {
            commit: number,
            position,
            events: appended,
            replayed: false,
        })
    }

    pub(super) fn last_ordinal(&self, stream: &str) -> Result<Option<u64>> {
        match self.streams.get(stream) {
            Some(stream) => Ok(stream.last_ordinal),
            None => self.index.last_ordinal(stream),
        }
    }

    /// Asks the index for whatever appending to these streams will need, so that appending cannot
    /// fail half-way. Answers the place of each among the streams of the group.
    pub(super) fn resolve<'b>(
        &mut self,
        streams: impl Iterator<Item = Option<&'b str>>,
    ) -> Result<Vec<Option<usize>>> {
        let n_known = self.streams.len();
        self.streams.reserve(streams.size_hint().0);
        let mut new = Vec::new();
        let places = streams.map(|stream| {
            stream.map(|stream| {
                self.streams.place(stream, || {
                    new.push(stream);
                    Stream::default()
                })
            })
        });
        let places = places.collect();
        match self.find_ends(&new) {
            Ok(ends) => {
                for ((place, stream), end) in (n_known..).zip(new).zip(ends) {
                    *self.streams.at_mut(place) = Stream::new(stream, end);
                }
                Ok(places)
            }
            Err(error) => {
                self.streams.truncate(n_known);
                Err(error)
            }
        }
    }

    /// Where these streams end. Many are looked for on two threads.
    fn find_ends(&self, streams: &[&str]) -> Result<Vec<Option<StreamEnd>>> {
        self.index.ask_stream_ends(|ends| {
            let (front, back) = streams.split_at(streams.len() / 2);
            let pays = streams.len() >= STREAMS_FOR_TWO_THREADS;
            let (back, front) = both(pays, || ends.find_all(back), || ends.find_all(front));
            let mut found = front?;
            found.append(&mut back?);
            Ok(found)
        })
    }

    /// Makes sure that the group's last record goes on at `position`.
    pub(super) fn begin_record(&mut self, position: u64) {
        if self
            .group
            .records
            .last()
            .is_none_or(|record| record.end_position() != position)
        {
            self.end_record();
            let first_commit = self.front.commit + 1;
            let record = Record {
                first_commit,
                first_position: position,
                ..Record::default()
            };
            self.group.records.push(record);
        }
    }

    /// Ends the last record: no commit is added to it any more.
    fn end_record(&mut self) {
        if let Some(record) = self.group.records.last_mut() {
            record.changes.append(&mut self.changes);
            self.ended_bytes += record.items.n_bytes() + record.changes.len();
        }
    }

    /// Begins a commit in the last record.
    pub(super) fn begin_commit(&mut self) -> u64 {
        self.front.commit += 1;
        self.front.commit
    }

    /// Says how many events the commit has, which an import knows only at its end.
    pub(super) fn end_commit(&mut self, n_events: usize) {
        if let Some(record) = self.group.records.last_mut() {
            record.n_commits += 1;
            put_varint(&mut record.commits, n_events as u64);
        }
    }

    /// The state as the group has changed it so far.
    pub(super) fn view(&mut self) -> &mut View {
        self.view.get_or_insert_with(|| View::new(self.store))
    }

    /// The position that the next event gets.
    pub(super) fn next_position(&self) -> u64 {
        self.front.position + 1
    }

    /// The number that the next commit gets.
    pub(super) fn next_commit(&self) -> u64 {
        self.front.commit + 1
    }

    /// When the commands of the next commit run: by the wall clock, which may have been set back.
    pub(super) fn moment(&mut self) -> Moment {
        Moment {
            now: self.now.millis(),
            seed: self.next_random(),
            position: self.next_position(),
        }
    }

    /// The durable state.
    pub(super) fn store(&self) -> &'a Store {
        self.store
    }

    /// The event at a position, if it is one of the group.
    pub(super) fn staged_event(&self, position: u64) -> Option<&Staged<'a>> {
        let by_position = |staged: &Staged<'_>| staged.position;
        let index = self.staged.binary_search_by_key(&position, by_position);
        self.staged.get(index.ok()?)
    }

    /// The events at durable positions, as far as they hold one, in the same order.
    pub(super) fn durable(&self, positions: &[u64]) -> Result<Vec<Event>> {
        (self.fetch)(positions)
    }

    /// Ends the changes of state of the commit of this number, which is in the last record.
    pub(super) fn end_state(&mut self, commit: u64) {
        let (Some(view), Some(record)) = (&mut self.view, self.group.records.last()) else {
            return;
        };
        view.commit(|changes| {
            if !changes.is_empty() {
                let index = commit - record.first_commit;
                changes::put_state(&mut self.changes, index, changes);
            }
        });
    }

    /// Appends an event to the last record. All checks have been made and its stream is resolved.
    pub(super) fn append(
        &mut self,
        event: StagedEvent<'a>,
        commit: u64,
        place: &Place<'_>,
    ) -> Appended {
        let position = place.position;
        let id = match event.id {
            Some(id) => id,
            None => make_event_id(place.time.millis(), self.next_random(), position),
        };
        let name = event.stream.as_deref();
        let known = place.stream.map(|place| self.streams.at_mut(place));
        let last = known.as_ref().and_then(|known| known.last_ordinal);
        let group_hash = known.as_ref().and_then(|known| known.group_hash);
        let is_new_stream = name.is_some() && last.is_none();
        let next = || last.map_or(0, |last| last + 1);
        let stream_position = place.stream_position.unwrap_or_else(next);
        if let Some(known) = known {
            known.last_ordinal = Some(stream_position);
        }
        let stream = name.map(|name| (name, stream_position));
        let item = EventItem {
            id,
            time: place.time,
            commit_offset: position.wrapping_sub(commit) as i64,
            stream,
            event_type: &event.event_type,
            tags: &event.tags,
            metadata: event.metadata.as_deref(),
            tracking: place.tracking,
            data: &event.data,
        };
        let label = label::make(place.is_imported, is_new_stream, group_hash);
        self.push_item(label, &item);
        if event.id.is_some() {
            self.ids.entry(id).or_insert(self.staged.len());
        }
        let correlation = event.metadata.as_deref().and_then(correlation_category);
        self.front.position = position;
        let staged = Staged {
            event,
            id,
            position,
            commit,
            time: place.time,
            stream_position,
            group_hash,
            is_new_stream,
            correlation,
        };
        let appended = staged.appended();
        self.staged.push(staged);
        appended
    }

    /// Makes room for these events, so that what the group holds is not moved as it grows.
    fn reserve(&mut self, events: &[StagedEvent<'_>]) {
        self.staged.reserve(events.len());
        if let Some(record) = self.group.records.last_mut() {
            let n_bytes = events.iter().map(|event| event.size()).sum();
            record.items.reserve(events.len(), n_bytes);
        }
    }

    fn push_item(&mut self, label: Label, item: &EventItem<'_>) {
        if let Some(record) = self.group.records.last_mut() {
            record.items.push_with(label, |out| item.encode(out));
        }
    }

    /// Sixty-four bits that nobody can foresee without knowing the seed.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The keys that the group touches.
    pub(crate) fn take_touched(&mut self) -> Option<Touched> {
        self.view.as_mut().map(View::take_touched)
    }

    /// Finishes the group. Answers where the log ends with it.
    pub(crate) fn finish(&mut self) -> Front {
        self.end_record();
        self.front
    }

    /// The group.
    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    /// The events of the group, which is finished.
    pub(crate) fn staged(&self) -> &[Staged<'a>] {
        &self.staged
    }

    /// What of the group is to be cleaned.
    pub(crate) fn take_to_clean(&mut self) -> ToClean {
        self.view
            .as_mut()
            .map(View::take_to_clean)
            .unwrap_or_default()
    }

    /// The entries of the state that the group changes. It sees no more of the state after this.
    pub(crate) fn take_entries(&mut self) -> Entries {
        self.view.take().map(View::into_staged).unwrap_or_default()
    }

    /// The state of the generator of random bits, for the next group.
    pub(crate) fn random(&self) -> u64 {
        self.random
    }
}
