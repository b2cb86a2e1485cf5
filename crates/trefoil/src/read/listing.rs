//! Listing streams, categories, types and tags by name, with what is known of each.

use trefoil_core::{Result, Timestamp};

use crate::database::engine::Engine;
use crate::index::{TermKind, TermSummary, names};
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
        self.ask(|engine| {
            let info = |(stream, summary): (String, TermSummary)| {
                Ok(StreamInfo {
                    stream,
                    version: summary.last_ordinal,
                    events: summary.n,
                    last_position: summary.last_position,
                    last_activity: time_of(engine, summary.last_position)?,
                })
            };
            let found = list_terms(engine, TermKind::Stream, list)?;
            found.into_iter().map(info).collect()
        })
    }

    /// Categories in byte order of their names. The time it takes does not depend on how many
    /// events they have.
    pub fn categories(&self, list: &List) -> Result<Vec<CategoryInfo>> {
        self.ask(|engine| {
            let info = |(category, summary): (String, TermSummary)| {
                Ok(CategoryInfo {
                    category,
                    events: summary.n,
                    streams: summary.new_streams,
                    last_position: summary.last_position,
                    last_activity: time_of(engine, summary.last_position)?,
                })
            };
            let found = list_terms(engine, TermKind::Category, list)?;
            found.into_iter().map(info).collect()
        })
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

fn time_of(engine: &Engine, position: u64) -> Result<Timestamp> {
    Ok(read::fetch(engine.storage.as_ref(), position)?.time())
}
