//! Queries: which events are meant, by their types and tags.

use crate::limits::{EVENT_TYPE_BYTES_MAX, QUERY_ITEMS_MAX, QUERY_TERMS_MAX, TAG_BYTES_MAX};
use crate::{Error, Event, Result};

/// Events by type and tags: those that at least one item matches. A query without items matches
/// every event.
///
/// ```
/// use trefoil_core::{Query, QueryItem};
///
/// let course = QueryItem::any().of_type("CourseDefined").tagged("course:c1");
/// let student = QueryItem::any().tagged("student:s1");
/// let query = Query::from(course).or(student);
/// assert!(query.matches("Enrolled", ["course:c1", "student:s1"]));
/// assert!(!query.matches("Enrolled", ["course:c1"]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Query {
    /// The items, any of which has to match.
    pub items: Vec<QueryItem>,
}

/// One alternative of a query: events whose type is one of the types and that have all the tags.
/// No types means any type, no tags means no demand on tags.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct QueryItem {
    /// The types, one of which the event must have.
    pub types: Vec<String>,
    /// The tags, all of which the event must have.
    pub tags: Vec<String>,
}

impl Query {
    /// Returns a query that matches every event.
    pub fn all() -> Self {
        Self::default()
    }

    /// Adds an alternative.
    #[must_use]
    pub fn or(mut self, item: QueryItem) -> Self {
        self.items.push(item);
        self
    }

    /// Returns whether every event matches, whatever its type and tags.
    pub fn is_all(&self) -> bool {
        self.items.is_empty() || self.items.iter().any(QueryItem::is_any)
    }

    /// Returns whether an event of this type with these tags matches.
    pub fn matches<'a>(
        &self,
        event_type: &str,
        tags: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
    ) -> bool {
        let tags = tags.into_iter();
        let is_matched = |item: &QueryItem| item.matches(event_type, &tags);
        self.items.is_empty() || self.items.iter().any(is_matched)
    }

    /// Returns whether a stored event matches.
    pub fn matches_event(&self, event: &Event) -> bool {
        self.matches(event.event_type(), event.tags())
    }

    /// Checks every limit on a query.
    pub fn validate(&self) -> Result<()> {
        let n = self.items.len();
        if n > QUERY_ITEMS_MAX {
            return Err(Error::over_limit(
                "number of query items",
                n,
                QUERY_ITEMS_MAX,
            ));
        }
        let n = self.n_terms();
        if n > QUERY_TERMS_MAX {
            let what = "number of types and tags in a query";
            return Err(Error::over_limit(what, n, QUERY_TERMS_MAX));
        }
        self.items.iter().try_for_each(QueryItem::validate)
    }

    /// Returns how many types and tags the query names.
    pub fn n_terms(&self) -> usize {
        let of_item = |item: &QueryItem| item.types.len() + item.tags.len();
        self.items.iter().map(of_item).sum()
    }
}

impl From<QueryItem> for Query {
    fn from(item: QueryItem) -> Self {
        Self { items: vec![item] }
    }
}

impl FromIterator<QueryItem> for Query {
    fn from_iter<I: IntoIterator<Item = QueryItem>>(items: I) -> Self {
        Self {
            items: items.into_iter().collect(),
        }
    }
}

impl QueryItem {
    /// Returns an item that matches every event, to be narrowed.
    pub fn any() -> Self {
        Self::default()
    }

    /// Allows a type. Without any, every type is allowed.
    #[must_use]
    pub fn of_type(mut self, event_type: impl Into<String>) -> Self {
        self.types.push(event_type.into());
        self
    }

    /// Demands a tag.
    #[must_use]
    pub fn tagged(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Returns whether every event matches.
    pub fn is_any(&self) -> bool {
        self.types.is_empty() && self.tags.is_empty()
    }

    fn matches<'a>(
        &self,
        event_type: &str,
        tags: &(impl Iterator<Item = &'a str> + Clone),
    ) -> bool {
        let has_type =
            self.types.is_empty() || self.types.iter().any(|wanted| wanted == event_type);
        let has_tag = |wanted: &String| tags.clone().any(|tag| tag == wanted);
        has_type && self.tags.iter().all(has_tag)
    }

    fn validate(&self) -> Result<()> {
        let lengths = [
            ("type", &self.types, EVENT_TYPE_BYTES_MAX),
            ("tag", &self.tags, TAG_BYTES_MAX),
        ];
        for (what, names, limit) in lengths {
            if let Some(name) = names.iter().find(|name| name.len() > limit) {
                let what = format!("length of a {what} in a query");
                return Err(Error::over_limit(&what, name.len(), limit));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_alternatives_and_tags_are_demands() {
        let item = QueryItem::any()
            .of_type("A")
            .of_type("B")
            .tagged("x")
            .tagged("y");
        let query = Query::from(item);
        assert!(query.matches("A", ["y", "z", "x"]));
        assert!(query.matches("B", ["x", "y"]));
        assert!(!query.matches("C", ["x", "y"]));
        assert!(!query.matches("A", ["x"]));
        assert!(!query.matches("A", ["x", "ynot"]));
    }

    #[test]
    fn no_items_and_an_item_without_demands_match_everything() {
        for query in [Query::all(), Query::all().or(QueryItem::any())] {
            assert!(query.is_all());
            assert!(query.matches("A", []));
        }
    }
}
