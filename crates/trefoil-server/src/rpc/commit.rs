//! `["commit", {id?, conditions?: [{stream, expectedVersion}], events: [{stream?, type, data,
//! metadata?, tags?, id?}]}]`
//!
//! Appends events to any number of streams, all or nothing, if every condition holds, and answers
//! `{"commit", "globalPosition", "events": [{"id", "stream", "position", "globalPosition"}],
//! "state": []}`. With an `id`, events that have none get ids made of it, so that a commit that is
//! sent again is recognised. It goes beyond EventoDB.

use bytes::Bytes;
use serde_json::value::RawValue;
use trefoil::{Commit, Committed, Condition, Error, EventId, NewEvent, Payload};
use trefoil_core::limits::{CONDITIONS_PER_COMMIT_MAX, EVENTS_PER_COMMIT_MAX, TAGS_PER_EVENT_MAX};
use uuid::Uuid;

use super::Context;
use super::stream_write::{event_id, object, stored};
use crate::error::{Failure, Result};
use crate::json::{Call, elements, fields, number, present, put_id, put_number, put_string, text};
use crate::response::{self, Answer};

pub(super) async fn run(context: Context<'_>, call: &Call<'_>) -> Result<Answer> {
    let commit = parse(context.body, call)?;
    let streams: Vec<Option<String>> = commit
        .events
        .iter()
        .map(|event| event.stream.clone())
        .collect();
    let database = context.database().await?;
    let committed = database.commit_async(commit).await.map_err(failure)?;
    context.shared.metrics.count_commit(&committed);
    Ok(response::json(answer(&committed, &streams)))
}

/// As everywhere, but a conflict also says which condition failed.
fn failure(error: Error) -> Failure {
    let condition = match &error {
        Error::VersionConflict { condition, .. } => i64::try_from(*condition).ok(),
        _ => None,
    };
    let failure = Failure::from(error).while_doing("Failed to commit");
    match condition {
        Some(condition) => failure.with_number("condition", condition),
        None => failure,
    }
}

fn answer(committed: &Committed, streams: &[Option<String>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 + committed.events.len() * 128);
    out.extend_from_slice(b"{\"commit\":");
    put_number(&mut out, committed.commit);
    out.extend_from_slice(b",\"globalPosition\":");
    put_number(&mut out, committed.position);
    out.extend_from_slice(b",\"events\":[");
    for (index, (event, stream)) in committed.events.iter().zip(streams).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"id\":");
        put_id(&mut out, event.id);
        out.extend_from_slice(b",\"stream\":");
        put_string(&mut out, stream.as_deref().unwrap_or_default());
        out.extend_from_slice(b",\"position\":");
        put_number(&mut out, event.stream_position.map_or(-1, i128::from));
        out.extend_from_slice(b",\"globalPosition\":");
        put_number(&mut out, event.position);
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"state\":[]}");
    out
}

fn parse(body: &Bytes, call: &Call<'_>) -> Result<Commit> {
    let missing = "commit requires 1 argument: an object with events";
    let commit = call.argument(0).ok_or_else(|| Failure::invalid(missing))?;
    let [id, conditions, events, state] =
        fields(commit, ["id", "conditions", "events", "state"])
            .ok_or_else(|| Failure::invalid("commit must be an object"))?;
    if present(state).is_some() {
        return Err(Failure::invalid(
            "commit.state is not supported by this version",
        ));
    }
    let id = event_id(present(id), "commit.id")?;
    let conditions = list(
        present(conditions),
        "commit.conditions",
        CONDITIONS_PER_COMMIT_MAX,
    )?;
    let events = list(present(events), "commit.events", EVENTS_PER_COMMIT_MAX)?;
    if events.is_empty() {
        return Err(Failure::invalid(
            "commit.events must hold at least one event",
        ));
    }
    let conditions = conditions.into_iter().enumerate();
    let events = events.into_iter().enumerate();
    Ok(Commit {
        conditions: conditions
            .map(|(index, value)| condition(index, value))
            .collect::<Result<_>>()?,
        events: events
            .map(|(index, value)| event(body, id, index, value))
            .collect::<Result<_>>()?,
    })
}

fn list<'a>(value: Option<&'a RawValue>, name: &str, limit: usize) -> Result<Vec<&'a RawValue>> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let found = elements(value, limit);
    let found = found.ok_or_else(|| Failure::invalid(format!("{name} must be an array")))?;
    found.map_err(|count| Error::over_limit(&format!("length of {name}"), count, limit).into())
}

fn condition(index: usize, value: &RawValue) -> Result<Condition> {
    let name = format!("commit.conditions[{index}]");
    let [stream, expected, query] = fields(value, ["stream", "expectedVersion", "query"])
        .ok_or_else(|| Failure::invalid(format!("{name} must be an object")))?;
    if present(query).is_some() {
        return Err(Failure::invalid(format!(
            "{name}.query is not supported by this version"
        )));
    }
    let stream = stream.and_then(text).filter(|stream| !stream.is_empty());
    let stream = stream
        .ok_or_else(|| Failure::invalid(format!("{name}.stream must be a non-empty string")))?
        .into_owned();
    let expected = expected
        .and_then(number)
        .ok_or_else(|| Failure::invalid(format!("{name}.expectedVersion must be a number")))?;
    Ok(Condition::StreamVersion { stream, expected })
}

fn event(
    body: &Bytes,
    commit: Option<EventId>,
    index: usize,
    value: &RawValue,
) -> Result<NewEvent> {
    let name = format!("commit.events[{index}]");
    let invalid = |what: &str| Failure::invalid(format!("{name}{what}"));
    let names = ["stream", "type", "data", "metadata", "tags", "id"];
    let [stream, event_type, data, metadata, tag_list, id] =
        fields(value, names).ok_or_else(|| invalid(" must be an object"))?;
    let stream = match present(stream).map(text) {
        None => None,
        Some(Some(stream)) if !stream.is_empty() => Some(stream.into_owned()),
        Some(_) => return Err(invalid(".stream must be a non-empty string")),
    };
    let event_type = event_type.and_then(text).filter(|name| !name.is_empty());
    let event_type = event_type.ok_or_else(|| invalid(".type must be a non-empty string"))?;
    let data = data.ok_or_else(|| invalid(".data is missing"))?;
    let id = event_id(present(id), &format!("{name}.id"))?;
    let derived = || commit.map(|commit| Uuid::new_v5(&commit, index.to_string().as_bytes()));
    Ok(NewEvent {
        id: id.or_else(derived),
        stream,
        event_type: event_type.into_owned(),
        data: Payload::Json(stored(body, data, &format!("{name}.data"))?),
        metadata: object(body, present(metadata), &format!("{name}.metadata"))?,
        tags: tags(present(tag_list), &format!("{name}.tags"))?,
    })
}

fn tags(value: Option<&RawValue>, name: &str) -> Result<Vec<String>> {
    let tags = list(value, name, TAGS_PER_EVENT_MAX)?;
    let tag = |tag| text(tag).map(std::borrow::Cow::into_owned);
    let found: Option<Vec<String>> = tags.into_iter().map(tag).collect();
    found.ok_or_else(|| Failure::invalid(format!("{name} must be an array of strings")))
}
