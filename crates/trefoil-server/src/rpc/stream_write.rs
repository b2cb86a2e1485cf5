//! `["stream.write", streamName, {type, data, metadata?}, {id?, expectedVersion?}]`
//!
//! Appends one event and answers `{"globalPosition": g, "position": p}`. Data and metadata are
//! JSON objects and are kept byte for byte.

use bytes::Bytes;
use serde_json::value::RawValue;
use trefoil::{Commit, EventId, NewEvent, Payload, parse_event_id};
use trefoil_core::limits::JSON_DEPTH_MAX;

use super::Context;
use super::arguments::{number_option, options, stream_name, text_option};
use crate::error::{Failure, Result};
use crate::json::{Call, fields, is_object, is_shallow, present, put_number, text};
use crate::response::{self, Answer};

pub(super) async fn run(context: Context<'_>, call: &Call<'_>) -> Result<Answer> {
    let commit = parse(context.body, call)?;
    let database = context.database().await?;
    let committed = database.commit_async(commit).await;
    let committed =
        committed.map_err(|error| Failure::from(error).while_doing("Failed to write message"))?;
    context.shared.metrics.count_commit(&committed);
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(b"{\"globalPosition\":");
    put_number(&mut out, committed.position);
    out.extend_from_slice(b",\"position\":");
    let position = committed
        .events
        .first()
        .and_then(|event| event.stream_position);
    put_number(&mut out, position.map_or(-1, i128::from));
    out.push(b'}');
    Ok(response::json(out))
}

fn parse(body: &Bytes, call: &Call<'_>) -> Result<Commit> {
    let missing = "stream.write requires at least 2 arguments: streamName and message";
    let message = call.argument(1).ok_or_else(|| Failure::invalid(missing))?;
    let stream = stream_name(call, missing)?;
    let [event_type, data, metadata] = fields(message, ["type", "data", "metadata"])
        .ok_or_else(|| Failure::invalid("message must be an object"))?;
    let event_type = event_type.and_then(text).filter(|name| !name.is_empty());
    let event_type = event_type
        .ok_or_else(|| Failure::invalid("message.type must be a non-empty string"))?
        .into_owned();
    let data = data.filter(|data| is_object(data));
    let data = data.ok_or_else(|| Failure::invalid("message.data must be an object"))?;
    let metadata = object(body, present(metadata), "message.metadata")?;
    let [id, expected] = options(call.argument(2), ["id", "expectedVersion"])?;
    let event = NewEvent {
        id: event_id(id, "options.id")?,
        stream: Some(stream.clone().into_owned()),
        event_type,
        data: Payload::Json(stored(body, data, "message.data")?),
        metadata,
        tags: Vec::new(),
    };
    let commit = Commit::new([event]);
    Ok(match number_option(expected, "options.expectedVersion")? {
        Some(expected) => commit.expect_version(stream, expected),
        None => commit,
    })
}

/// The bytes of a value that is to be stored: a part of the request, not a copy.
pub(super) fn stored(body: &Bytes, value: &RawValue, name: &str) -> Result<Bytes> {
    if !is_shallow(value, JSON_DEPTH_MAX) {
        return Err(Failure::invalid(format!(
            "{name} is nested too deeply, the limit is {JSON_DEPTH_MAX}"
        )));
    }
    Ok(body.slice_ref(value.get().as_bytes()))
}

/// An object that is to be stored, if there is one.
pub(super) fn object(body: &Bytes, value: Option<&RawValue>, name: &str) -> Result<Option<Bytes>> {
    match value {
        None => Ok(None),
        Some(value) if is_object(value) => stored(body, value, name).map(Some),
        Some(_) => Err(Failure::invalid(format!("{name} must be an object"))),
    }
}

/// An event's id; an empty text means that the server makes one.
pub(super) fn event_id(value: Option<&RawValue>, name: &str) -> Result<Option<EventId>> {
    let Some(id) = text_option(value, name)?.filter(|id| !id.is_empty()) else {
        return Ok(None);
    };
    let id = parse_event_id(&id);
    id.map(Some)
        .ok_or_else(|| Failure::invalid(format!("{name} must be a UUID")))
}
