//! What every way to the events has in common: append under conditions, read by a query.

use serde_json::Value;
use trefoil::{EventId, Query, QueryItem, Selection};

/// An event to be appended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fact {
    pub(crate) kind: String,
    pub(crate) tags: Vec<String>,
    pub(crate) data: Value,
    pub(crate) id: Option<EventId>,
}

impl Fact {
    pub(crate) fn new(kind: &str, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            kind: kind.to_owned(),
            tags: tags.into_iter().map(Into::into).collect(),
            data: Value::Object(serde_json::Map::new()),
            id: None,
        }
    }

    pub(crate) fn with(mut self, data: Value) -> Self {
        self.data = data;
        self
    }
}

/// An event as it was read. Its id is told only if a client gave it, as all protocols can say that.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) position: u64,
    pub(crate) fact: Fact,
}

/// What a read answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) events: Vec<Seen>,
    /// Up to where the read saw everything; gRPC says something else if there was a limit.
    pub(crate) head: Option<u64>,
}

impl Answer {
    pub(crate) fn positions(&self) -> Vec<u64> {
        self.events.iter().map(|seen| seen.position).collect()
    }

    /// The position after which a condition on what was read has to look.
    pub(crate) fn after(&self) -> u64 {
        self.head.unwrap_or_default()
    }
}

/// No event, or none after a position, may match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unless {
    pub(crate) query: Query,
    pub(crate) after: Option<u64>,
}

impl Unless {
    pub(crate) fn any(query: &Query) -> Self {
        let (query, after) = (query.clone(), None);
        Self { query, after }
    }

    pub(crate) fn after(query: &Query, after: u64) -> Self {
        let (query, after) = (query.clone(), Some(after));
        Self { query, after }
    }
}

/// Why an append or a read did nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A condition failed: which one, and by which event, where the protocol has a place for that.
    Conflict {
        condition: Option<usize>,
        position: Option<u64>,
    },
    Invalid(String),
    /// The server is gone. What was asked may have been done.
    Gone(String),
}

/// One client of the events, by whatever way.
pub(crate) trait Store: Send {
    /// Appends all events or none and returns the position of the last.
    fn append(&mut self, facts: &[Fact], unless: &[Unless]) -> Result<u64, Refusal>;

    fn read(&mut self, read: &Selection) -> Result<Answer, Refusal>;

    /// How many conditions an append may have.
    fn conditions_max(&self) -> usize {
        usize::MAX
    }

    /// Reads everything that matches.
    fn all(&mut self, query: &Query) -> Answer {
        self.read(&Selection::query(query.clone())).unwrap()
    }
}

/// A query for one item: one of the types, all of the tags.
pub(crate) fn item(types: &[&str], tags: &[&str]) -> QueryItem {
    QueryItem {
        types: types.iter().map(|&name| name.to_owned()).collect(),
        tags: tags.iter().map(|&name| name.to_owned()).collect(),
    }
}
