//! `["stream.write", streamName, {type, data, metadata?}, {id?, expectedVersion?}]`
//!
//! Appends one event and answers `{"globalPosition": g, "position": p}`. Data and metadata are
//! JSON objects and are kept byte for byte.

use bytes::Bytes;
use trefoil::{Commit, NewEvent, Payload};

use super::Context;
use super::arguments::{number_option, options, stream_name};
use crate::error::{Failure, Result};
use crate::json::{RpcCall, fields, is_object, present, put_number, text};
use crate::new_event::{event_id, stored, stored_object};
use crate::permit;
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let commit = parse(context.body, call)?;
    permit::events(&context.access.grant, &commit.events)?;
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

fn parse(body: &Bytes, call: &RpcCall<'_>) -> Result<Commit> {
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
    let metadata = stored_object(body, present(metadata), "message.metadata")?;
    let [id, expected] = options(call.argument(2), ["id", "expectedVersion"])?;
    let data = Payload::json(stored(body, data, "message.data")?);
    let mut event = NewEvent::of(event_type, data);
    event.id = event_id(id, "options.id")?;
    event.stream = Some(stream.clone().into_owned());
    event.metadata = metadata;
    let commit = Commit::new([event]);
    Ok(match number_option(expected, "options.expectedVersion")? {
        Some(expected) => commit.expect_version(stream, expected),
        None => commit,
    })
}
