//! Events that are known already: how a commit that is sent again is recognised.

use hashbrown::{HashMap, HashSet};
use trefoil_core::{
    Appended, Commit, Committed, Error, Event, EventId, Ids, NewEvent, Result, Tracking,
    located_position,
};

use super::stage::{Durable, Stage};
use super::staged::Staged;

/// How many ids are looked for together: those of most commits.
const IDS_TOGETHER: usize = 1024;

/// The first durable events that have certain ids.
type DurableIds = HashMap<EventId, Event>;

/// The first event that was stored under an id which a request brings again.
#[derive(Debug)]
pub(super) struct KnownEvent {
    pub(super) appended: Appended,
    commit: u64,
    /// Whether all that the client says of the two events is the same.
    is_same: bool,
}

impl KnownEvent {
    fn durable(event: &Event, new: &NewEvent) -> Self {
        let says_the_same = || {
            event.data() == new.data.bytes()
                && event.metadata() == new.metadata.as_deref()
                && has_same_tags(event.tags(), new)
        };
        Self {
            appended: Appended {
                id: event.id(),
                position: event.position(),
                stream_position: event.stream_position(),
            },
            commit: event.commit(),
            // Nobody knows any more what a redacted event said.
            is_same: event.stream() == new.stream.as_deref()
                && event.event_type() == new.event_type
                && (event.is_redacted() || says_the_same()),
        }
    }

    fn staged(staged: &Staged<'_>, new: &NewEvent) -> Self {
        let event: &NewEvent = &staged.event;
        Self {
            appended: staged.appended(),
            commit: staged.commit,
            is_same: event.stream == new.stream
                && event.event_type == new.event_type
                && event.data.bytes() == new.data.bytes()
                && event.metadata == new.metadata
                && has_same_tags(event.tags.iter().map(String::as_str), new),
        }
    }
}

/// The order of tags means nothing, and a client may not keep it.
fn has_same_tags<'a>(tags: impl Iterator<Item = &'a str> + Clone, new: &NewEvent) -> bool {
    let new_tags = new.tags.iter().map(String::as_str);
    if tags.clone().eq(new_tags.clone()) {
        return true;
    }
    let (mut tags, mut new_tags): (Vec<_>, Vec<_>) = (tags.collect(), new_tags.collect());
    tags.sort_unstable();
    new_tags.sort_unstable();
    tags == new_tags
}

/// The answer to a commit that was written before: every event is known, and in the same order.
pub(super) fn replayed(known: &[Option<KnownEvent>]) -> Option<Committed> {
    let is_same = |known: &Option<KnownEvent>| known.as_ref().is_some_and(|known| known.is_same);
    if !known.iter().all(is_same) {
        return None;
    }
    let mut events: Vec<Appended> = Vec::with_capacity(known.len());
    let mut commit = 0;
    for known in known.iter().flatten() {
        let is_in_order = events
            .last()
            .is_none_or(|before| before.position < known.appended.position);
        if !is_in_order {
            return None;
        }
        events.push(known.appended.clone());
        commit = known.commit;
    }
    let position = events.last()?.position;
    Some(Committed {
        commit,
        position,
        events,
        replayed: true,
    })
}

impl Stage<'_> {
    /// For each event of a commit the one that has its id already, if there is one; nothing if that
    /// does not matter.
    pub(super) fn known(&self, commit: &Commit) -> Result<Vec<Option<KnownEvent>>> {
        match commit.ids {
            Ids::Repeatable => Ok(Vec::new()),
            Ids::Unique => self.known_of(commit.events.iter()),
        }
    }

    /// For each event the one that has its id already, if there is one; nothing if none has an id.
    pub(super) fn known_of<'e>(
        &self,
        events: impl Iterator<Item = &'e NewEvent> + Clone,
    ) -> Result<Vec<Option<KnownEvent>>> {
        if events.clone().all(|event| event.id.is_none()) {
            return Ok(Vec::new());
        }
        let events: Vec<&NewEvent> = events.collect();
        let mut known = Vec::with_capacity(events.len());
        for some in events.chunks(IDS_TOGETHER) {
            let durable = self.find_durable(some.iter().filter_map(|event| event.id.as_ref()))?;
            known.extend(some.iter().map(|event| self.known_in(&durable, event)));
        }
        Ok(known)
    }

    /// The first event that has the id of this one, given the durable ones.
    fn known_in(&self, durable: &DurableIds, new: &NewEvent) -> Option<KnownEvent> {
        let id = new.id.as_ref()?;
        if let Some(event) = durable.get(id) {
            return Some(KnownEvent::durable(event, new));
        }
        let staged = self.overlay.event_with_id(id)?;
        Some(KnownEvent::staged(staged, new))
    }

    /// The first durable events that have these ids. All that may have one are fetched together.
    fn find_durable<'e>(&self, ids: impl Iterator<Item = &'e EventId>) -> Result<DurableIds> {
        let Durable { index, .. } = self.durable;
        let layers = index.layers();
        let (mut positions, mut wanted) = (Vec::new(), HashSet::new());
        for id in ids {
            let n_before = positions.len();
            positions.append(&mut layers.positions_of_id(index.id_hash(id))?);
            positions.extend(located_position(id).filter(|at| (1..=self.base).contains(at)));
            if positions.len() > n_before {
                wanted.insert(*id);
            }
        }
        let mut found = DurableIds::default();
        if wanted.is_empty() {
            return Ok(found);
        }
        positions.sort_unstable();
        positions.dedup();
        // A position that an id merely seems to carry need not exist.
        for event in self.durable_events(&positions)? {
            if wanted.contains(&event.id()) {
                found.entry(event.id()).or_insert(event);
            }
        }
        Ok(found)
    }

    /// Records the tracked position of a commit that was written before, if it is a new one.
    pub(super) fn track_again(&mut self, tracking: Option<&Tracking>) -> Result<()> {
        let Some(tracking) = tracking else {
            return Ok(());
        };
        let recorded = self.view().tracking(&tracking.source)?;
        if recorded.is_none_or(|recorded| recorded < tracking.position) {
            self.whole_or_not(|stage| stage.stage_commit(Vec::new(), Some(tracking), &[]))?;
        }
        Ok(())
    }
}

/// Every id must be new to the log.
pub(super) fn check_unknown(known: &[Option<KnownEvent>]) -> Result<()> {
    match known.iter().flatten().next() {
        Some(KnownEvent { appended, .. }) => Err(Error::DuplicateId {
            id: appended.id,
            position: appended.position,
        }),
        None => Ok(()),
    }
}
