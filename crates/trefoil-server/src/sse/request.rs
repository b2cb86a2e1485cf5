//! What a subscription asks for: `stream=s | category=c | all=true`, `query=<json>` or any number
//! of `type=t` and `tag=t`, `position=n`, `consumer=m&size=n`, and for `/events` also
//! `correlation=c`, `as=objects` and the header `Last-Event-ID`.
//!
//! `consumerGroupMember` and `consumerGroupSize` are other words for `consumer` and `size`.
//!
//! `/subscribe?all=true` tells what comes, as in EventoDB: a position there leaves out what is before
//! it, and repeats nothing. `/events` sends everything from a position on.

use hyper::http::request::Parts;
use serde_json::value::RawValue;
use trefoil::limits::STREAM_NAME_BYTES_MAX;
use trefoil::{ConsumerGroup, Query as EventQuery, QueryItem, Selection, Source, StartAt};

use super::FeedKind;
use crate::criteria::Criteria;
use crate::query::QueryString;
use crate::rpc::rows::EventShape;

/// What is to be sent.
#[derive(Debug, Clone)]
pub(super) struct FeedRequest {
    read: Selection,
    /// How events are written.
    pub(super) shape: EventShape,
    /// Whether the past is left out.
    is_live_only: bool,
}

impl FeedRequest {
    /// Where the events stand.
    pub(super) fn source(&self) -> &Source {
        &self.read.source
    }

    /// Leaves out what is not after this position, and nothing else.
    pub(super) fn begin_after(&mut self, position: u64) {
        self.read.from = StartAt::Position(position.saturating_add(1));
        self.is_live_only = false;
    }

    /// The read of a subscription that begins when the log ends at `head`.
    pub(super) fn into_read(mut self, head: u64) -> Selection {
        if self.is_live_only {
            let wanted = match self.read.from {
                StartAt::Position(position) => position,
                _ => 0,
            };
            self.read.from = StartAt::Position(wanted.max(head + 1));
        }
        self.read
    }
}

/// The parameters of `/events`. Those of `/subscribe` are not checked, as in EventoDB.
const PARAMETERS: [&str; 13] = [
    "stream",
    "category",
    "all",
    "query",
    "type",
    "tag",
    "position",
    "consumer",
    "size",
    "consumerGroupMember",
    "consumerGroupSize",
    "correlation",
    "as",
];

/// Reads the query string; the error is the text of the answer.
pub(super) fn parse(parts: &Parts, kind: FeedKind) -> Result<FeedRequest, String> {
    let query = QueryString::of(&parts.uri);
    if kind == FeedKind::Event {
        query.only(&PARAMETERS)?;
    }
    let criteria = criteria(query)?;
    let position = match query.get("position") {
        None => None,
        Some(text) => {
            let number: i64 = text.parse().map_err(|_| "Invalid position parameter")?;
            Some(u64::try_from(number).unwrap_or(0))
        }
    };
    let is_stream = matches!(criteria.source, Source::Stream(_));
    // A client that asks for everything by name asks for new events.
    let mut is_live_only = is_all(query) && (position.is_none() || kind == FeedKind::Poke);
    let mut read = criteria.into_read();
    read.from = match position {
        Some(position) if is_stream => StartAt::StreamPosition(position),
        Some(position) => StartAt::Position(position),
        None => StartAt::Edge,
    };
    read.filter.group = group(query)?;
    let mut shape = EventShape::WHOLE_ROW;
    if kind == FeedKind::Event {
        let asked = shape.or_as_asked(query.get("as").as_deref(), "as");
        shape = asked.map_err(|failure| failure.message)?;
        read.filter.correlation = query.get("correlation").map(Into::into);
        if let Some(last) = last_event_id(parts)? {
            read.from = StartAt::Position(last.saturating_add(1));
            is_live_only = false;
        }
    }
    Ok(FeedRequest {
        read,
        shape,
        is_live_only,
    })
}

fn is_all(query: QueryString<'_>) -> bool {
    query.get("all").as_deref() == Some("true")
}

/// Which events are meant: by the query, or by types and tags, and by where they stand.
fn criteria(query: QueryString<'_>) -> Result<Criteria, String> {
    let terms = |name| {
        let found = query.get_all(name);
        found.ok_or_else(|| format!("Invalid {name} parameter"))
    };
    let item = QueryItem {
        types: terms("type")?,
        tags: terms("tag")?,
    };
    let mut criteria = match query.get("query") {
        None if item.is_any() => {
            return Ok(Criteria {
                source: source(query, None)?,
                query: EventQuery::all(),
            });
        }
        None => Criteria {
            source: Source::All,
            query: item.into(),
        },
        Some(_) if !item.is_any() => {
            return Err("Cannot combine 'query' with 'type' or 'tag'".to_owned());
        }
        Some(text) => parse_query(&text)?,
    };
    criteria.source = source(query, Some(criteria.source))?;
    let checked = criteria.query.validate();
    checked.map_err(|error| error.to_string())?;
    Ok(criteria)
}

fn parse_query(text: &str) -> Result<Criteria, String> {
    let value = serde_json::from_str::<&RawValue>(text);
    let value = value.map_err(|error| format!("query is not JSON: {error}"))?;
    Criteria::parse(value, "query").map_err(|failure| failure.message)
}

/// Where the events stand; `given` is what a query says of it, if there is a query.
fn source(query: QueryString<'_>, given: Option<Source>) -> Result<Source, String> {
    let (stream, category) = (query.get("stream"), query.get("category"));
    let all = is_all(query);
    let name = stream
        .as_deref()
        .or(category.as_deref())
        .unwrap_or_default();
    if name.len() > STREAM_NAME_BYTES_MAX {
        let length = name.len();
        return Err(format!(
            "Name length is {length}, the limit is {STREAM_NAME_BYTES_MAX}"
        ));
    }
    let in_query = matches!(given, Some(Source::Stream(_) | Source::Category(_)));
    match (stream, category) {
        (None, None) if all && in_query => {
            Err("Cannot combine 'all' with the stream or category of 'query'".to_owned())
        }
        (None, None) if all => Ok(Source::All),
        (None, None) => given.ok_or_else(|| {
            "Either 'stream', 'category', or 'all=true' parameter required".to_owned()
        }),
        _ if all => Err("Cannot combine 'all' with 'stream' or 'category'".to_owned()),
        (Some(_), Some(_)) => Err("Cannot specify both 'stream' and 'category'".to_owned()),
        _ if in_query => Err("'stream' or 'category' is specified twice: see 'query'".to_owned()),
        (Some(stream), None) => Ok(Source::Stream(stream.into_owned())),
        (None, Some(category)) => Ok(Source::Category(category.into_owned())),
    }
}

fn group(query: QueryString<'_>) -> Result<Option<ConsumerGroup>, String> {
    let number = |names: [&str; 2], error: &str| match names.iter().find_map(|name| query.get(name))
    {
        None => Ok(0),
        Some(text) => text.parse::<u64>().map_err(|_| error.to_owned()),
    };
    let member = number(
        ["consumer", "consumerGroupMember"],
        "Invalid consumer parameter",
    )?;
    let size = number(["size", "consumerGroupSize"], "Invalid size parameter")?;
    if member == 0 && size == 0 {
        return Ok(None);
    }
    if member >= size {
        return Err("Invalid consumer group: member must be < size".to_owned());
    }
    ConsumerGroup::new(member, size)
        .map(Some)
        .map_err(|error| error.to_string())
}

/// The position after which a client that was cut off goes on.
fn last_event_id(parts: &Parts) -> Result<Option<u64>, String> {
    let Some(value) = parts.headers.get("last-event-id") else {
        return Ok(None);
    };
    let position = value
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse().ok());
    position
        .map(Some)
        .ok_or_else(|| "Invalid Last-Event-ID header".to_owned())
}
