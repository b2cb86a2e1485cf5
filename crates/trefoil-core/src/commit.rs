//! A commit: events for any number of streams, and the conditions under which they are written.

use std::collections::HashSet;

use crate::limits::{
    COMMIT_BYTES_MAX, CONDITIONS_PER_COMMIT_MAX, EVENTS_PER_COMMIT_MAX, QUERY_TERMS_MAX,
    STREAM_NAME_BYTES_MAX,
};
use crate::{
    EVENTS_TOUCHED, Error, EventId, NewEvent, Query, Result, Source, Tracking, both, touch_bodies,
};

/// Events to append together, all or nothing, if every condition holds.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// What must be true before the events are written.
    pub conditions: Vec<Condition>,
    /// The events, in the order in which they get their positions.
    pub events: Vec<NewEvent>,
    /// How far the writer has come in another log.
    pub tracking: Option<Tracking>,
    /// What the ids of the events are good for.
    pub ids: Ids,
}

/// What the ids that clients give to events are good for. The nil UUID is no id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ids {
    /// An id names one event. A commit whose ids are all known is a repetition if its events are
    /// those that were written under them first; otherwise a known id is refused.
    #[default]
    Unique,
    /// Several events may have one id, as in UmaDB: it is stored whether it is known or not.
    Repeatable,
}

/// Something that must be true of the log for a commit to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// The stream, which the commit need not write to, is at this version; -1 means it does not
    /// exist.
    StreamVersion {
        /// The stream's name.
        stream: String,
        /// The position of the stream's last event, or -1.
        expected: i64,
    },
    /// No event matches, or none after a position. Events of the commit itself do not count.
    NoMatch {
        /// Where to look.
        source: Source,
        /// What must not be there.
        query: Query,
        /// Events up to this position do not count; `None`: all of them do.
        after: Option<u64>,
    },
}

impl Condition {
    /// Returns the condition that no event matches.
    pub fn no_match(query: Query) -> Self {
        Self::NoMatch {
            source: Source::All,
            query,
            after: None,
        }
    }

    /// Returns the condition that no event after `after` matches.
    pub fn no_match_after(query: Query, after: u64) -> Self {
        Self::NoMatch {
            source: Source::All,
            query,
            after: Some(after),
        }
    }

    /// Checks every limit on a condition.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::StreamVersion { stream, .. } => validate_stream_name(stream),
            Self::NoMatch { query, .. } => query.validate(),
        }
    }
}

/// What was written, or what had been written when the same commit was sent before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The number of the commit; every commit of a namespace has one, without gaps.
    pub commit: u64,
    /// The global position of the last event.
    pub position: u64,
    /// One entry per event, in order.
    pub events: Vec<Appended>,
    /// Whether this is the answer to a repetition: nothing was written this time.
    pub replayed: bool,
}

/// Where one event of a commit went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The event's id.
    pub id: EventId,
    /// The event's global position.
    pub position: u64,
    /// The event's position in its stream; `None` for an event without a stream.
    pub stream_position: Option<u64>,
}

impl Commit {
    /// Returns a commit without conditions.
    pub fn new(events: impl IntoIterator<Item = NewEvent>) -> Self {
        Self {
            conditions: Vec::new(),
            events: events.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Adds a condition.
    #[must_use]
    pub fn with_condition(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Adds the condition that no event matches `query`.
    #[must_use]
    pub fn fail_if_any(self, query: Query) -> Self {
        self.with_condition(Condition::no_match(query))
    }

    /// Adds the condition that no event after the position `after` matches `query`.
    #[must_use]
    pub fn fail_if_new(self, query: Query, after: u64) -> Self {
        self.with_condition(Condition::no_match_after(query, after))
    }

    /// Records with the events how far the writer has come in another log. Then there may be no
    /// events at all.
    #[must_use]
    pub fn with_tracking(mut self, tracking: Tracking) -> Self {
        self.tracking = Some(tracking);
        self
    }

    /// Adds the condition that `stream` is at version `expected` (-1: does not exist).
    #[must_use]
    pub fn expect_version(self, stream: impl Into<String>, expected: i64) -> Self {
        let stream = stream.into();
        self.with_condition(Condition::StreamVersion { stream, expected })
    }

    /// Allows ids that other events have.
    #[must_use]
    pub fn with_repeatable_ids(mut self) -> Self {
        self.ids = Ids::Repeatable;
        self
    }

    /// Settles what was left open in its events.
    pub fn settle(&mut self) {
        self.events.iter_mut().for_each(NewEvent::settle);
    }

    /// Checks every limit that does not depend on what is stored.
    pub fn validate(&self, data_bytes_max: usize) -> Result<()> {
        if self.events.is_empty() && self.tracking.is_none() {
            return Err(Error::invalid("a commit must have at least one event"));
        }
        if self.events.len() > EVENTS_PER_COMMIT_MAX {
            let n = self.events.len();
            return Err(Error::over_limit(
                "number of events",
                n,
                EVENTS_PER_COMMIT_MAX,
            ));
        }
        validate_conditions(&self.conditions)?;
        if let Some(tracking) = &self.tracking {
            tracking.validate()?;
        }
        if self.ids == Ids::Unique {
            validate_ids(self.events.iter().filter_map(|event| event.id))?;
        }
        validate_events(&self.events, data_bytes_max)?;
        let bytes: usize = self.events.iter().map(NewEvent::size).sum();
        if bytes > COMMIT_BYTES_MAX {
            return Err(Error::over_limit(
                "bytes of a commit",
                bytes,
                COMMIT_BYTES_MAX,
            ));
        }
        Ok(())
    }
}

/// Checks every limit on the conditions of a commit.
pub fn validate_conditions(conditions: &[Condition]) -> Result<()> {
    let n = conditions.len();
    if n > CONDITIONS_PER_COMMIT_MAX {
        let limit = CONDITIONS_PER_COMMIT_MAX;
        return Err(Error::over_limit("number of conditions", n, limit));
    }
    conditions.iter().try_for_each(Condition::validate)?;
    let n_terms = |condition: &Condition| match condition {
        Condition::NoMatch { query, .. } => query.n_terms(),
        Condition::StreamVersion { .. } => 0,
    };
    let n: usize = conditions.iter().map(n_terms).sum();
    if n > QUERY_TERMS_MAX {
        let what = "number of types and tags in all conditions";
        return Err(Error::over_limit(what, n, QUERY_TERMS_MAX));
    }
    Ok(())
}

/// Checks that no two events are given the same id.
pub fn validate_ids(ids: impl Iterator<Item = EventId>) -> Result<()> {
    let mut ids = ids.filter(|id| !id.is_nil());
    let Some(first) = ids.next() else {
        return Ok(());
    };
    let mut seen: HashSet<EventId> = HashSet::new();
    let is_repeated = |id: &EventId| *id == first || !seen.insert(*id);
    match ids.find(is_repeated) {
        Some(id) => Err(Error::RepeatedId(id)),
        None => Ok(()),
    }
}

/// From this many events on it pays to check them on two threads: JSON is read byte by byte.
const EVENTS_FOR_TWO_THREADS: usize = 512;

fn validate_events(events: &[NewEvent], data_bytes_max: usize) -> Result<()> {
    let check = |events: &[NewEvent]| {
        events.chunks(EVENTS_TOUCHED).try_for_each(|some| {
            touch_bodies(some.iter());
            some.iter()
                .try_for_each(|event| event.validate(data_bytes_max))
        })
    };
    let (front, back) = events.split_at(events.len() / 2);
    let pays = events.len() >= EVENTS_FOR_TWO_THREADS;
    let (back, front) = both(pays, || check(back), || check(front));
    front.and(back)
}

/// Checks the length of a stream name.
pub fn validate_stream_name(stream: &str) -> Result<()> {
    if stream.is_empty() {
        return Err(Error::invalid("streamName must be a non-empty string"));
    }
    if stream.len() > STREAM_NAME_BYTES_MAX {
        return Err(Error::over_limit(
            "stream name length",
            stream.len(),
            STREAM_NAME_BYTES_MAX,
        ));
    }
    Ok(())
}
