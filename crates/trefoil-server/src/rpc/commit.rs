//! `["commit", {id?, conditions?: [{stream, expectedVersion} | {query, after?}], tracking?: {source,
//! position}, events: [{stream?, type, data, metadata?, tags?, id?}]}]`
//!
//! Appends events to any number of streams, all or nothing, if every condition holds, and answers
//! `{"commit", "globalPosition", "events": [{"id", "stream", "position", "globalPosition"}],
//! "state": []}`. With an `id`, events that have none get ids made of it, so that a commit that is
//! sent again is recognised. With `tracking` there may be no events. It goes beyond EventoDB.

use bytes::Bytes;
use serde_json::value::RawValue;
use trefoil::{Commit, Committed, Condition, Error, Tracking};
use trefoil_core::limits::{CONDITIONS_PER_COMMIT_MAX, EVENTS_PER_COMMIT_MAX};

use super::Context;
use crate::criteria::Criteria;
use crate::error::{Failure, Result};
use crate::json::{Call, fields, number, present, put_id, put_number, put_string, text};
use crate::new_event::{self, event_id};
use crate::response::{self, Answer};
use crate::strict;

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
        Error::VersionConflict { condition, .. } => Some(*condition as u64),
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
    let names = ["id", "conditions", "events", "tracking", "state"];
    let [id, conditions, events, tracked, state] =
        fields(commit, names).ok_or_else(|| Failure::invalid("commit must be an object"))?;
    if present(state).is_some() {
        return Err(Failure::invalid(
            "commit.state is not supported by this version",
        ));
    }
    let id = event_id(present(id), "commit.id")?;
    let conditions = strict::list(
        present(conditions),
        "commit.conditions",
        CONDITIONS_PER_COMMIT_MAX,
    )?;
    let events = strict::list(present(events), "commit.events", EVENTS_PER_COMMIT_MAX)?;
    let tracking = present(tracked).map(tracking).transpose()?;
    if events.is_empty() && tracking.is_none() {
        return Err(Failure::invalid(
            "commit.events must hold at least one event",
        ));
    }
    let conditions = conditions.into_iter().enumerate();
    let events = events.into_iter().enumerate();
    Ok(Commit {
        tracking,
        conditions: conditions
            .map(|(index, value)| condition(value, &format!("commit.conditions[{index}]")))
            .collect::<Result<_>>()?,
        events: events
            .map(|(index, value)| {
                let what = format!("commit.events[{index}]");
                new_event::parse(body, value, &what, id.map(|id| (id, index)))
            })
            .collect::<Result<_>>()?,
    })
}

fn condition(value: &RawValue, what: &str) -> Result<Condition> {
    let names = ["stream", "expectedVersion", "query", "after"];
    let [stream, expected, query, after] = strict::object(value, what, names)?;
    let given = [stream, expected, query, after].map(present);
    match given {
        [stream, expected, None, None] => stream_version(stream, expected, what),
        [None, None, Some(query), after] => {
            let Criteria { source, query } = Criteria::parse(query, &format!("{what}.query"))?;
            let after = strict::optional_position(after, &format!("{what}.after"))?;
            Ok(Condition::NoMatch {
                source,
                query,
                after,
            })
        }
        _ => Err(Failure::invalid(format!(
            "{what} must have either stream and expectedVersion or query and after"
        ))),
    }
}

fn stream_version(
    stream: Option<&RawValue>,
    expected: Option<&RawValue>,
    what: &str,
) -> Result<Condition> {
    let stream = strict::name(stream, &format!("{what}.stream"))?;
    let expected = expected
        .and_then(number)
        .ok_or_else(|| Failure::invalid(format!("{what}.expectedVersion must be a number")))?;
    Ok(Condition::StreamVersion { stream, expected })
}

fn tracking(value: &RawValue) -> Result<Tracking> {
    let [source, position] = strict::object(value, "commit.tracking", ["source", "position"])?;
    let source = source.and_then(text);
    let source =
        source.ok_or_else(|| Failure::invalid("commit.tracking.source must be a string"))?;
    let position = strict::position(position, "commit.tracking.position")?;
    Ok(Tracking::new(source, position))
}
