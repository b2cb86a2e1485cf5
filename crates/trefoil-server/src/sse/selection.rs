//! What a subscription asks for:
//! `stream=s | category=c | all=true`, `position=n`, `consumer=m&size=n`, and for `/events` also
//! `type=t`, `correlation=c` and the header `Last-Event-ID`.
//!
//! `consumerGroupMember` and `consumerGroupSize` are other words for `consumer` and `size`.

use hyper::http::request::Parts;
use trefoil::{ConsumerGroup, From, Read, Source};
use trefoil_core::limits::STREAM_NAME_BYTES_MAX;

use super::Kind;
use crate::query::Query;

/// What is to be sent.
#[derive(Debug)]
pub(super) struct Selection {
    read: Read,
    /// Whether the past is left out.
    is_live_only: bool,
}

impl Selection {
    /// The read of a subscription that begins when the log ends at `head`.
    pub(super) fn into_read(mut self, head: u64) -> Read {
        if self.is_live_only {
            self.read.from = From::Position(head + 1);
        }
        self.read
    }
}

/// Reads the query string; the error is the text of the answer.
pub(super) fn parse(parts: &Parts, kind: Kind) -> Result<Selection, String> {
    let query = Query::of(&parts.uri);
    let source = source(query)?;
    let position = match query.get("position") {
        None => None,
        Some(text) => {
            let number: i64 = text.parse().map_err(|_| "Invalid position parameter")?;
            Some(u64::try_from(number).unwrap_or(0))
        }
    };
    let group = group(query)?;
    let is_stream = matches!(source, Source::Stream(_));
    let mut is_live_only = source == Source::All && position.is_none();
    let mut read = Read::all();
    read.source = source;
    read.from = match position {
        Some(position) if is_stream => From::StreamPosition(position),
        Some(position) => From::Position(position),
        None => From::Edge,
    };
    read.filter.group = group;
    if kind == Kind::Event {
        read.filter.event_type = query.get("type").map(Into::into);
        read.filter.correlation = query.get("correlation").map(Into::into);
        if let Some(last) = last_event_id(parts)? {
            read.from = From::Position(last.saturating_add(1));
            is_live_only = false;
        }
    }
    Ok(Selection { read, is_live_only })
}

fn source(query: Query<'_>) -> Result<Source, String> {
    let (stream, category) = (query.get("stream"), query.get("category"));
    let all = query.get("all").as_deref() == Some("true");
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
    match (stream, category) {
        (None, None) if all => Ok(Source::All),
        (None, None) => {
            Err("Either 'stream', 'category', or 'all=true' parameter required".to_owned())
        }
        _ if all => Err("Cannot combine 'all' with 'stream' or 'category'".to_owned()),
        (Some(_), Some(_)) => Err("Cannot specify both 'stream' and 'category'".to_owned()),
        (Some(stream), None) => Ok(Source::Stream(stream.into_owned())),
        (None, Some(category)) => Ok(Source::Category(category.into_owned())),
    }
}

fn group(query: Query<'_>) -> Result<Option<ConsumerGroup>, String> {
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
