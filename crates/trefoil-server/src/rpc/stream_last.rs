//! `["stream.last", streamName, {type?, tags?, as?}]`
//!
//! Answers the row of a stream's last event, optionally the last of one type, or `null`. `tags`
//! (whether the row ends with the tags) and `as` go beyond EventoDB.

use super::Context;
use super::arguments::{flag_option, options, shape_option, stream_name, type_option};
use super::rows::{EventShape, put_event};
use crate::error::Result;
use crate::json::RpcCall;
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let stream = stream_name(call, "stream.last requires at least 1 argument: streamName")?;
    context.access.grant.require_stream(Some(&stream))?;
    let [event_type, tags, shape] = options(call.argument(1), ["type", "tags", "as"])?;
    let event_type = type_option(event_type)?;
    let usual = EventShape::Row {
        has_stream: false,
        has_tags: flag_option(tags, "options.tags")?,
    };
    let shape = shape_option(shape, usual)?;
    let (database, stream) = (context.database().await?, stream.to_string());
    let event_type = event_type.map(|event_type| event_type.to_string());
    let last = database.soon(move |database| database.last(&stream, event_type.as_deref()));
    let Some(event) = last.await? else {
        return Ok(response::json("null"));
    };
    let mut out = Vec::new();
    put_event(&mut out, &event, shape);
    Ok(response::json(out))
}
