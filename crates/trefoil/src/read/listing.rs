//! Listing streams, categories, types and tags by name, with what is known of each.

use trefoil_core::{Event, Result, Selection, Timestamp, limits};

use crate::database::engine::Engine;
use crate::index::{TermKind, TermSummary, names};
use crate::read::LogMoment;
use crate::removal::{RemovedCounts, n_kept, removed_in_category, stream_removal};
use crate::{Database, read};

/// A page of a listing by name.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct List {
    /// Only names that begin with this.
    pub prefix: String,
    /// Only names after this one, in byte order; empty for the first page.
    pub after: String,
    /// At most this many.
    pub limit: usize,
}

impl List {
    /// Returns the first page, of at most this many names.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Lists only names that begin with this.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Lists only names after this one: the last one of the page before.
    #[must_use]
    pub fn after(mut self, name: impl Into<String>) -> Self {
        self.after = name.into();
        self
    }
}

/// What is known of a stream without reading its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamInfo {
    /// The stream's name.
    pub stream: String,
    /// The position of its last event.
    pub version: u64,
    /// How many events it has.
    pub events: u64,
    /// The global position of its last event.
    pub last_position: u64,
    /// The time of its last event.
    pub last_activity: Timestamp,
}

/// What is known of a category without reading its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CategoryInfo {
    /// The category's name.
    pub category: String,
    /// How many events its streams have.
    pub events: u64,
    /// How many streams it has.
    pub streams: u64,
    /// The global position of its last event.
    pub last_position: u64,
    /// The time of its last event.
    pub last_activity: Timestamp,
}

/// What is known of a type or a tag without reading its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameInfo {
    /// The type or the tag.
    pub name: String,
    /// How many events have it.
    pub events: u64,
    /// The global position of the last one.
    pub last_position: u64,
}

impl Database {
    /// Types of events in byte order. The time it takes does not depend on how many events have
    /// them.
    pub fn types(&self, list: &List) -> Result<Vec<NameInfo>> {
        self.names(TermKind::Type, list)
    }

    /// Tags in byte order. The time it takes does not depend on how many events have them.
    pub fn tags(&self, list: &List) -> Result<Vec<NameInfo>> {
        self.names(TermKind::Tag, list)
    }

    fn names(&self, kind: TermKind, list: &List) -> Result<Vec<NameInfo>> {
        let found = self.ask(|engine| list_terms(engine, kind, list))?;
        let info = |(name, summary): (String, TermSummary)| NameInfo {
            name,
            events: summary.n,
            last_position: summary.last_position,
        };
        Ok(found.into_iter().map(info).collect())
    }

    /// Streams in byte order of their names. The time it takes does not depend on how many events
    /// they have.
    pub fn streams(&self, list: &List) -> Result<Vec<StreamInfo>> {
        self.ask(|engine| list_kept(engine, TermKind::Stream, list, stream_info))
    }

    /// Categories in byte order of their names. The time it takes does not depend on how many
    /// events they have.
    pub fn categories(&self, list: &List) -> Result<Vec<CategoryInfo>> {
        self.ask(|engine| list_kept(engine, TermKind::Category, list, category_info))
    }
}

fn list_terms(engine: &Engine, kind: TermKind, list: &List) -> Result<Vec<(String, TermSummary)>> {
    names::list(
        &engine.index.layers(),
        kind,
        &list.prefix,
        &list.after,
        list.limit,
    )
}

/// Lists the names of a kind that still have events. `info` says what is known of one.
fn list_kept<T>(
    engine: &Engine,
    kind: TermKind,
    list: &List,
    info: fn(&Engine, &str, &TermSummary) -> Result<Option<T>>,
) -> Result<Vec<T>> {
    let (mut kept, mut list) = (Vec::new(), list.clone());
    let limit = list.limit;
    loop {
        // The last name of a page is what the next one comes after, so it must not be the empty one.
        list.limit = (limit - kept.len()).max(2);
        let found = list_terms(engine, kind, &list)?;
        let is_last = found.len() < list.limit;
        for (name, summary) in found {
            if kept.len() < limit {
                kept.extend(info(engine, &name, &summary)?);
            }
            list.after = name;
        }
        if is_last || kept.len() >= limit {
            return Ok(kept);
        }
    }
}

fn stream_info(engine: &Engine, stream: &str, summary: &TermSummary) -> Result<Option<StreamInfo>> {
    let mut events = summary.n;
    if engine.store.highest_floor() > 0
        && let Some(removal) = stream_removal(&engine.store.read(), stream)?
    {
        events = n_kept(&engine.index.layers(), stream, summary, &removal)?;
    }
    if events == 0 {
        return Ok(None);
    }
    // The last event of a stream that has one is kept, unless it was removed just now.
    let last = last_of(engine, Selection::stream(stream))?;
    Ok(last.map(|(last_position, last_activity)| StreamInfo {
        stream: stream.to_owned(),
        version: summary.last_ordinal,
        events,
        last_position,
        last_activity,
    }))
}

fn category_info(
    engine: &Engine,
    category: &str,
    summary: &TermSummary,
) -> Result<Option<CategoryInfo>> {
    let removed = match engine.store.highest_floor() {
        0 => RemovedCounts::default(),
        _ => removed_in_category(&engine.store.read(), category)?,
    };
    let lost = engine.removal.lost.read().categories.get(category).copied();
    let lost = lost.unwrap_or_default();
    let Some((last_position, last_activity)) = last_of(engine, Selection::category(category))?
    else {
        return Ok(None);
    };
    Ok(Some(CategoryInfo {
        category: category.to_owned(),
        events: (summary.n + lost.events).saturating_sub(removed.events),
        streams: lost.n_streams(summary.new_streams, removed.streams),
        last_position,
        last_activity,
    }))
}

/// How many bytes of events are read at a time to find a time among them.
const FIRST_AT_BYTES: usize = 4 * 1024 * 1024;

/// Returns the first event whose time is at or after `time`.
pub(crate) fn first_at(engine: &Engine, time: Timestamp) -> Result<Option<Event>> {
    let mut next = engine.index.layers().seek_time(time)?;
    while let Some(from) = next {
        let read = Selection::all()
            .from_position(from)
            .limit(limits::BATCH_SIZE_DEFAULT);
        let page = read::execute(&LogMoment::new(engine), &read, FIRST_AT_BYTES)?;
        let mut events = page.events.into_iter();
        if let Some(event) = events.find(|event| event.time() >= time) {
            return Ok(Some(event));
        }
        next = page.next;
    }
    Ok(None)
}

/// Returns the position and the time of the last event that a read selects.
pub(crate) fn last_of(engine: &Engine, read: Selection) -> Result<Option<(u64, Timestamp)>> {
    let page = read::read_all(&LogMoment::new(engine), &read.backwards().limit(1))?;
    let last = page.events.first();
    Ok(last.map(|event| (event.position(), event.time())))
}
