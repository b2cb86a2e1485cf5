//! Which events are wanted, whatever asks for them: a read, a subscription or a condition.

use trefoil_core::{Condition, Event, Query, Selection, Source, category};

/// What events must have. Everything here can be found by the index, and checked on an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matcher<'a> {
    pub(crate) source: &'a Source,
    pub(crate) query: &'a Query,
    pub(crate) event_type: Option<&'a str>,
    pub(crate) correlation: Option<&'a str>,
}

impl<'a> Matcher<'a> {
    /// Returns what a read selects, but for its consumer group.
    pub(crate) fn of_selection(read: &'a Selection) -> Self {
        Self {
            source: &read.source,
            query: &read.filter.query,
            event_type: read.filter.event_type.as_deref(),
            correlation: read.filter.correlation.as_deref(),
        }
    }

    /// Returns what a condition rules out, and after which position; `None` if it is no query.
    pub(crate) fn of_condition(condition: &'a Condition) -> Option<(Self, u64)> {
        let Condition::NoMatch {
            source,
            query,
            after,
        } = condition
        else {
            return None;
        };
        let matcher = Self {
            source,
            query,
            event_type: None,
            correlation: None,
        };
        Some((matcher, after.unwrap_or(0)))
    }

    /// Returns how many positions could be walked over in about the time that it takes to read an event
    /// and find out whether it is selected.
    pub(crate) fn effort(&self) -> usize {
        4 + self.query.n_terms() / 16
    }

    /// Returns whether it asks for something that an event loses when it is redacted.
    pub(crate) fn asks_for_terms(&self) -> bool {
        let mut items = self.query.items.iter();
        self.correlation.is_some() || items.any(|item| !item.tags.is_empty())
    }

    /// Returns whether an event is selected.
    pub(crate) fn matches(&self, event: &Event) -> bool {
        self.matches_parts(event.stream(), event.event_type(), event.tags())
            && self
                .correlation
                .is_none_or(|wanted| event.correlation().as_deref() == Some(wanted))
    }

    /// Returns whether an event of this stream, type and tags is selected as far as these go.
    pub(crate) fn matches_parts<'b>(
        &self,
        stream: Option<&str>,
        event_type: &str,
        tags: impl Iterator<Item = &'b str> + Clone,
    ) -> bool {
        let is_in_source = match self.source {
            Source::All => true,
            Source::Category(name) => stream.map(category) == Some(name),
            Source::Stream(name) => stream == Some(name),
        };
        is_in_source
            && self.event_type.is_none_or(|wanted| wanted == event_type)
            && self.query.matches(event_type, tags)
    }
}
