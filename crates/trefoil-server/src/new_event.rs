//! Events to be appended, in JSON: `{"stream"?, "type", "data", "metadata"?, "tags"?, "id"?}`.
//!
//! Data and metadata are kept byte for byte: what is stored is a part of the request, not a copy.

use bytes::Bytes;
use serde_json::value::RawValue;
use trefoil::limits::{JSON_DEPTH_MAX, TAGS_PER_EVENT_MAX};
use trefoil::{EventId, Json, NewEvent, Payload, parse_event_id};
use uuid::Uuid;

use crate::error::{Failure, Result};
use crate::json::{is_object, is_shallow, present, text};
use crate::strict;

/// Reads an event out of `body`; `what` is how errors call it. An event without an id gets one
/// that is made of its index and the id of the commit, if that has one.
pub(crate) fn parse(
    body: &Bytes,
    value: &RawValue,
    what: &str,
    commit: Option<(EventId, usize)>,
) -> Result<NewEvent> {
    let names = ["stream", "type", "data", "metadata", "tags", "id"];
    let [stream, event_type, data, metadata, tags, id] = strict::object(value, what, names)?;
    let field = |name: &str| format!("{what}.{name}");
    let stream = present(stream).map(|stream| strict::name(Some(stream), &field("stream")));
    let stream = stream.transpose()?;
    let event_type = strict::name(event_type, &field("type"))?;
    let data = data.ok_or_else(|| Failure::invalid(format!("{what}.data is missing")))?;
    let id = event_id(present(id), &field("id"))?;
    let derived = || commit.map(|(id, index)| Uuid::new_v5(&id, index.to_string().as_bytes()));
    let data = Payload::json(stored(body, data, &field("data"))?);
    let mut event = NewEvent::of(event_type, data);
    event.id = id.or_else(derived);
    event.stream = stream;
    event.metadata = stored_object(body, present(metadata), &field("metadata"))?;
    event.tags = parse_tags(present(tags), &field("tags"))?;
    Ok(event)
}

/// Tags. An empty one is a mistake, but for clients of UmaDB.
fn parse_tags(value: Option<&RawValue>, what: &str) -> Result<Vec<String>> {
    let tags = strict::texts(value, what, TAGS_PER_EVENT_MAX)?;
    match tags.iter().any(String::is_empty) {
        true => Err(Failure::invalid("a tag must be a non-empty string")),
        false => Ok(tags),
    }
}

/// The bytes of a value that is to be stored.
pub(crate) fn stored(body: &Bytes, value: &RawValue, what: &str) -> Result<Json> {
    if !is_shallow(value.get().as_bytes(), JSON_DEPTH_MAX) {
        return Err(Failure::invalid(format!(
            "{what} is nested too deeply, the limit is {JSON_DEPTH_MAX}"
        )));
    }
    Ok(Json::found_in(body, value))
}

/// An object that is to be stored, if there is one.
pub(crate) fn stored_object(
    body: &Bytes,
    value: Option<&RawValue>,
    what: &str,
) -> Result<Option<Json>> {
    match value {
        None => Ok(None),
        Some(value) if is_object(value) => stored(body, value, what).map(Some),
        Some(_) => Err(Failure::invalid(format!("{what} must be an object"))),
    }
}

/// An event's id; an empty text means that the server makes one.
pub(crate) fn event_id(value: Option<&RawValue>, what: &str) -> Result<Option<EventId>> {
    let Some(value) = value else { return Ok(None) };
    let id = text(value).ok_or_else(|| Failure::invalid(format!("{what} must be a string")))?;
    if id.is_empty() {
        return Ok(None);
    }
    let id = parse_event_id(&id);
    id.map(Some)
        .ok_or_else(|| Failure::invalid(format!("{what} must be a UUID")))
}
