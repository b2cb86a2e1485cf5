//! Staging: deciding, one request after the other, what of a group is written and where.
//!
//! A request is checked against what is durable and against what the group holds already. It takes
//! effect on the group whole or not at all, so that one that fails harms no other.
//!
//! The stage only decides. The [overlay](Overlay) keeps what was decided for the requests that
//! follow, and the [encoder](GroupEncoder) turns it into records of the log.

use fastrand::Rng;
use trefoil_core::{
    Appended, Committed, EVENTS_TOUCHED, Event, EventItem, Result, Timestamp, Tracking, both,
    correlation_category, make_event_id, touch_bodies,
};
use trefoil_state::CommandMoment;
use trefoil_storage::Group;

use super::encoder::GroupEncoder;
use super::known::{KnownEvent, check_unknown, replayed};
use super::overlay::{InStream, Overlay};
use super::staged::{Staged, StagedEvent};
use crate::index::{Index, StreamEnd};
use crate::read::Matcher;
use crate::read::condition::CheckedCommit;
use crate::read::label;
use crate::removal::true_end;
use crate::state::{ChangedEntries, StateStore, ToClean, TouchedKeys, View};

/// Finds the events at durable positions, as far as they hold one, in the same order.
pub(crate) type Fetch<'a> = dyn Fn(&[u64]) -> Result<Vec<Event>> + 'a;

/// Finds the first selected event between two durable positions, inclusive.
pub(crate) type Search<'a> = dyn Fn(Matcher<'_>, u64, u64) -> Result<Option<u64>> + 'a;

/// From this many streams on it pays to look for them on two threads.
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

/// What lies beneath the overlay: the log, its index and the state as they are durable.
#[derive(Clone, Copy)]
pub(crate) struct Durable<'a> {
    pub(crate) index: &'a Index,
    pub(crate) store: &'a StateStore,
    pub(crate) fetch: &'a Fetch<'a>,
    pub(crate) search: &'a Search<'a>,
}

/// Decides about the requests of a group, or of groups that follow each other.
pub(crate) struct Stage<'a> {
    pub(super) durable: Durable<'a>,
    pub(super) overlay: Overlay<'a>,
    encoder: GroupEncoder,
    pub(super) front: Front,
    /// The last position that was durable when the stage was set up.
    pub(super) base: u64,
    /// How many events were staged before the group.
    n_events_before: usize,
    /// The wall clock, by which deadlines are set and judged.
    now: Timestamp,
    random: Rng,
    /// How many transactions were begun.
    n_transactions: u64,
    /// Whether the group takes nothing more.
    is_ended: bool,
}

/// What an event is appended with.
pub(super) struct StagedPlace<'t> {
    pub(super) position: u64,
    pub(super) time: Timestamp,
    /// The place of its stream among those of the group.
    pub(super) stream: Option<usize>,
    /// `None`: the next one of the stream.
    pub(super) stream_position: Option<u64>,
    pub(super) is_imported: bool,
    pub(super) tracking: Option<&'t Tracking>,
    /// Whether it is what stays of a redacted event.
    pub(super) is_redacted: bool,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(
        durable: Durable<'a>,
        front: Front,
        (now, random): (Timestamp, u64),
        bytes_max: usize,
    ) -> Self {
        Self {
            durable,
            overlay: Overlay::default(),
            encoder: GroupEncoder::new(bytes_max),
            front,
            base: front.position,
            n_events_before: 0,
            now,
            random: Rng::with_seed(random),
            n_transactions: 0,
            is_ended: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.encoder.is_empty()
    }

    /// Returns whether the group should be written before more is staged.
    pub(crate) fn is_full(&self) -> bool {
        self.is_ended || self.encoder.is_full()
    }

    /// Has the group written before more is staged.
    pub(super) fn end_group(&mut self) {
        self.is_ended = true;
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
        if changed.is_err()
            && let Some(view) = self.overlay.opened_view()
        {
            view.take_back_commit();
        }
        changed
    }

    /// Stages a commit whose conditions hold.
    pub(super) fn stage_commit(
        &mut self,
        events: Vec<StagedEvent<'a>>,
        tracking: Option<&Tracking>,
        known: &[Option<KnownEvent>],
    ) -> Result<Committed> {
        check_unknown(known)?;
        let (one, many) = match events.as_slice() {
            [event] => (Some(self.resolve_one(event.stream.as_deref())?), Vec::new()),
            events => {
                let streams = events.iter().map(|event| event.stream.as_deref());
                (None, self.resolve(streams)?)
            }
        };
        let places = one.iter().chain(&many);
        let in_streams = events
            .iter()
            .map(|event| event.stream.as_deref())
            .zip(places);
        self.revive(in_streams)?;
        let mut streams = one.into_iter().chain(many);
        if let Some(tracking) = tracking {
            self.view().track(tracking)?;
        }
        let mut appended = Vec::with_capacity(events.len());
        let time = self.now.max(self.front.clock);
        if !events.is_empty() {
            self.front.clock = time;
        }
        let number = self.begin_commit(self.next_position());
        self.encoder.end_commit(events.len());
        self.reserve(&events);
        let mut events = events.into_iter();
        while !events.as_slice().is_empty() {
            touch_bodies(events.as_slice().iter().map(|event| &**event));
            for (event, stream) in events.by_ref().zip(streams.by_ref()).take(EVENTS_TOUCHED) {
                let place = StagedPlace {
                    position: self.next_position(),
                    time,
                    stream,
                    stream_position: None,
                    is_imported: false,
                    tracking,
                    is_redacted: false,
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

    /// Returns the last position of a stream; `None` for one without events.
    pub(super) fn last_ordinal(&mut self, stream: &str) -> Result<Option<u64>> {
        let place = self.stream(stream)?;
        Ok(self.overlay.last_ordinal(place))
    }

    /// Returns the place of a stream in the overlay.
    pub(super) fn stream(&mut self, name: &str) -> Result<usize> {
        let Durable { index, store, .. } = self.durable;
        let find_end = || {
            let end = index.ask_stream_ends(|ends| ends.find(name))?;
            true_end(store, name, end)
        };
        self.overlay.stream(name, find_end)
    }

    /// Notes of streams that lost all their events that they get some again.
    pub(super) fn revive<'b>(
        &mut self,
        streams: impl Iterator<Item = (Option<&'b str>, &'b Option<usize>)>,
    ) -> Result<()> {
        if self.durable.store.highest_floor() == 0 {
            return Ok(());
        }
        for (name, place) in streams {
            if let (Some(name), Some(place)) = (name, *place)
                && self.overlay.is_emptied(place)
            {
                self.view().revive(name)?;
            }
        }
        Ok(())
    }

    /// Finds out all that appending to a stream will need, so that appending cannot fail half-way.
    fn resolve_one(&mut self, stream: Option<&str>) -> Result<Option<usize>> {
        stream.map(|stream| self.stream(stream)).transpose()
    }

    /// Does the same for many streams at once.
    pub(super) fn resolve<'b>(
        &mut self,
        streams: impl Iterator<Item = Option<&'b str>>,
    ) -> Result<Vec<Option<usize>>> {
        let Durable { index, store, .. } = self.durable;
        self.overlay
            .streams(streams, |streams| find_true_ends(index, store, streams))
    }

    /// Begins a commit whose first event goes to `position`. Returns its number.
    pub(super) fn begin_commit(&mut self, position: u64) -> u64 {
        self.front.commit += 1;
        self.encoder.begin_commit(self.front.commit, position);
        self.front.commit
    }

    /// Says how many events the commit has, which an import knows only at its end.
    pub(super) fn end_commit(&mut self, n_events: usize) {
        self.encoder.end_commit(n_events);
    }

    /// Begins a transaction. Returns what tells it from the others of the group.
    pub(super) fn begin_transaction(&mut self) -> u64 {
        self.n_transactions += 1;
        self.n_transactions
    }

    /// Returns the state as the group has changed it so far.
    pub(super) fn view(&mut self) -> &mut View {
        self.overlay.view(self.durable.store)
    }

    /// Returns the position that the next event gets.
    pub(super) fn next_position(&self) -> u64 {
        self.front.position + 1
    }

    /// Returns the number that the next commit gets.
    pub(super) fn next_commit(&self) -> u64 {
        self.front.commit + 1
    }

    /// Returns when the commands of the next commit run: by the wall clock, which may have been set
    /// back.
    pub(super) fn moment(&mut self) -> CommandMoment {
        CommandMoment {
            now: self.now.millis(),
            seed: self.random.u64(..),
            position: self.next_position(),
        }
    }

    /// Returns the durable state.
    pub(super) fn store(&self) -> &'a StateStore {
        self.durable.store
    }

    /// Returns the events at durable positions, as far as they hold one, in the same order.
    pub(super) fn durable_events(&self, positions: &[u64]) -> Result<Vec<Event>> {
        (self.durable.fetch)(positions)
    }

    /// Ends the changes of state of the commit of this number, which is in the last record.
    pub(super) fn end_state(&mut self, commit: u64) {
        let Some(view) = self.overlay.opened_view() else {
            return;
        };
        view.commit(|changes| {
            if !changes.is_empty() {
                self.encoder.put_state(commit, changes);
            }
        });
    }

    /// Appends an event to the last commit. All checks have been made and its stream is resolved.
    pub(super) fn append(
        &mut self,
        event: StagedEvent<'a>,
        commit: u64,
        place: &StagedPlace<'_>,
    ) -> Appended {
        let position = place.position;
        let id = match event.id {
            Some(id) => id,
            None => make_event_id(place.time.millis(), self.random.u64(..), position),
        };
        let in_stream = match place.stream {
            Some(stream) => self.overlay.append_to(stream, place.stream_position),
            None => InStream {
                position: place.stream_position.unwrap_or(0),
                group_hash: None,
                is_first: false,
            },
        };
        let item = EventItem {
            id,
            time: place.time,
            commit_offset: position.wrapping_sub(commit) as i64,
            stream: { event.stream.as_deref() }.map(|name| (name, in_stream.position)),
            event_type: &event.event_type,
            tags: &event.tags,
            metadata: event.metadata.as_deref(),
            tracking: place.tracking,
            data: &event.data,
            is_redacted: place.is_redacted,
        };
        let label = label::make(place.is_imported, in_stream.is_first, in_stream.group_hash);
        self.encoder.push(label, &item);
        let correlation = event.metadata.as_deref().and_then(correlation_category);
        self.front.position = position;
        let staged = Staged {
            event,
            id,
            position,
            commit,
            time: place.time,
            stream_position: in_stream.position,
            group_hash: in_stream.group_hash,
            is_new_stream: in_stream.is_first,
            correlation,
        };
        let appended = staged.appended();
        self.overlay.push(staged);
        appended
    }

    /// Makes room for these events, so that what the group holds is not moved as it grows.
    fn reserve(&mut self, events: &[StagedEvent<'_>]) {
        self.overlay.reserve(events.len());
        let n_bytes = events.iter().map(|event| event.size()).sum();
        self.encoder.reserve(events.len(), n_bytes);
    }

    /// Takes out the keys that the group touches.
    pub(crate) fn take_touched(&mut self) -> Option<TouchedKeys> {
        self.overlay.opened_view().map(View::take_touched)
    }

    /// Finishes the group. Returns where the log ends with it.
    pub(crate) fn finish(&mut self) -> Front {
        self.encoder.finish();
        self.front
    }

    /// Returns the group, which is finished.
    pub(crate) fn group(&self) -> &Group {
        self.encoder.group()
    }

    /// Returns the events of the group.
    pub(crate) fn events(&self) -> &[Staged<'a>] {
        &self.overlay.events()[self.n_events_before..]
    }

    /// Begins another group. It sees what is staged of those before it, durable or not.
    pub(super) fn begin_group(&mut self, now: Timestamp) {
        self.now = now;
        self.n_events_before = self.overlay.events().len();
    }

    /// Takes out the group, which is finished: others follow it.
    pub(super) fn take_group(&mut self) -> Group {
        self.encoder.take_group()
    }

    /// Returns the entries of the state that the group changes, which those that follow it see.
    pub(super) fn changed_entries(&mut self) -> ChangedEntries {
        let view = self.overlay.opened_view();
        view.map(View::take_changed).unwrap_or_default()
    }

    /// Makes groups durable and visible that are staged here, while the stage keeps nothing of the state
    /// from being changed in place.
    pub(super) fn while_landing<T>(&mut self, land: impl FnOnce() -> T) -> T {
        let store = self.durable.store;
        match self.overlay.opened_view() {
            Some(view) => view.while_landing(store, land),
            None => land(),
        }
    }

    /// Takes out what of the group is to be cleaned.
    pub(crate) fn take_to_clean(&mut self) -> ToClean {
        let view = self.overlay.opened_view();
        view.map(View::take_to_clean).unwrap_or_default()
    }

    /// Takes out the entries of the state that the group changes. It sees no more of the state after
    /// this.
    pub(crate) fn take_entries(&mut self) -> ChangedEntries {
        let view = self.overlay.take_view();
        view.map(View::into_staged).unwrap_or_default()
    }

    /// Returns the state of the generator of random bits, for the next group.
    pub(crate) fn random(&self) -> u64 {
        self.random.get_seed()
    }
}

/// Where these streams end, also if the index has forgotten them.
fn find_true_ends(
    index: &Index,
    store: &StateStore,
    streams: &[&str],
) -> Result<Vec<Option<StreamEnd>>> {
    let ends = find_ends(index, streams)?;
    if store.highest_floor() == 0 {
        return Ok(ends);
    }
    let ends = streams.iter().zip(ends);
    ends.map(|(stream, end)| true_end(store, stream, end))
        .collect()
}

/// Where the index has these streams end. Many are looked for on two threads.
fn find_ends(index: &Index, streams: &[&str]) -> Result<Vec<Option<StreamEnd>>> {
    index.ask_stream_ends(|ends| {
        if streams.len() < STREAMS_FOR_TWO_THREADS {
            return ends.find_all(streams);
        }
        let (front, back) = streams.split_at(streams.len() / 2);
        let (back, front) = both(true, || ends.find_all(back), || ends.find_all(front));
        let mut found = front?;
        found.append(&mut back?);
        Ok(found)
    })
}
