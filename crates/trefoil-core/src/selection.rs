//! Which events are read: where to look, from where, in which direction, how many, and what to
//! leave out.

use crate::limits::CONSUMER_GROUP_SIZE_MAX;
use crate::{Error, Query, Result};

/// Which events a read or a subscription looks at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// Every event of the namespace.
    All,
    /// The events of the streams of one category.
    Category(String),
    /// The events of one stream.
    Stream(String),
}

/// Where a read begins, inclusive in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// The first event forwards, the last one backwards.
    Edge,
    /// A global position.
    Position(u64),
    /// A position in the stream; only for [`Source::Stream`].
    StreamPosition(u64),
}

/// The order in which events are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Oldest first.
    #[default]
    Forwards,
    /// Newest first.
    Backwards,
}

/// One member of a consumer group; streams are split among the members by their cardinal id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumerGroup {
    /// This member, from 0.
    pub member: u64,
    /// The number of members.
    pub size: u64,
}

impl ConsumerGroup {
    /// Returns a member of a group; the member must be below the size.
    pub fn new(member: u64, size: u64) -> Result<Self> {
        if size == 0 || member >= size {
            return Err(Error::invalid(format!(
                "consumer group member {member} must be below the group's size {size}"
            )));
        }
        if size > CONSUMER_GROUP_SIZE_MAX {
            return Err(Error::invalid(format!(
                "consumer group size is {size}, the limit is {CONSUMER_GROUP_SIZE_MAX}"
            )));
        }
        Ok(Self { member, size })
    }
}

/// What events must have besides belonging to the source. Applied before the limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only events that this query matches.
    pub query: Query,
    /// Only events of this type.
    pub event_type: Option<String>,
    /// Only events whose metadata correlates them with a stream of this category.
    pub correlation: Option<String>,
    /// Only events of streams that belong to this member.
    pub group: Option<ConsumerGroup>,
}

/// Which events a read returns, or a subscription follows.
///
/// ```
/// use trefoil_core::Selection;
///
/// let some = Selection::stream("account-1").from_stream_position(5).limit(10);
/// let newest = Selection::category("account").of_type("Deposited").backwards().limit(1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Which events to look at.
    pub source: Source,
    /// Where to begin.
    pub from: StartAt,
    /// In which order.
    pub direction: Direction,
    /// At most how many events.
    pub limit: usize,
    /// What else they must have.
    pub filter: Filter,
    /// Reads as if the log ended at this position; `None`: where it does.
    pub as_of: Option<u64>,
}

impl Selection {
    fn new(source: Source) -> Self {
        Self {
            source,
            from: StartAt::Edge,
            direction: Direction::Forwards,
            limit: usize::MAX,
            filter: Filter::default(),
            as_of: None,
        }
    }

    /// Reads the events that a query matches.
    pub fn query(query: Query) -> Self {
        Self::all().matching(query)
    }

    /// Reads every event of the namespace.
    pub fn all() -> Self {
        Self::new(Source::All)
    }

    /// Reads the events of one category.
    pub fn category(name: impl Into<String>) -> Self {
        Self::new(Source::Category(name.into()))
    }

    /// Reads the events of one stream.
    pub fn stream(name: impl Into<String>) -> Self {
        Self::new(Source::Stream(name.into()))
    }

    /// Begins at a global position, inclusive.
    #[must_use]
    pub fn from_position(mut self, position: u64) -> Self {
        self.from = StartAt::Position(position);
        self
    }

    /// Begins at a position of the stream, inclusive.
    #[must_use]
    pub fn from_stream_position(mut self, position: u64) -> Self {
        self.from = StartAt::StreamPosition(position);
        self
    }

    /// Returns the newest first.
    #[must_use]
    pub fn backwards(mut self) -> Self {
        self.direction = Direction::Backwards;
        self
    }

    /// Returns at most this many events.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Returns only events that the query matches.
    #[must_use]
    pub fn matching(mut self, query: Query) -> Self {
        self.filter.query = query;
        self
    }

    /// Reads as if the log ended at this position.
    #[must_use]
    pub fn as_of(mut self, position: u64) -> Self {
        self.as_of = Some(position);
        self
    }

    /// Returns only events of this type.
    #[must_use]
    pub fn of_type(mut self, event_type: impl Into<String>) -> Self {
        self.filter.event_type = Some(event_type.into());
        self
    }

    /// Returns only events correlated with a stream of this category.
    #[must_use]
    pub fn correlated_with(mut self, category: impl Into<String>) -> Self {
        self.filter.correlation = Some(category.into());
        self
    }

    /// Returns only events of the streams that belong to this member of a consumer group.
    #[must_use]
    pub fn for_group(mut self, group: ConsumerGroup) -> Self {
        self.filter.group = Some(group);
        self
    }
}
