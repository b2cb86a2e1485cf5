//! `["stream.last", streamName, {type?}]`
//!
//! Answers the row of a stream's last event, optionally the last of one type, or `null`.

use super::Context;
use super::arguments::{options, stream_name, type_option};
use super::rows::{Shape, put_row};
use crate::error::Result;
use crate::json::Call;
use crate::response::{self, Answer};

pub(super) async fn run(context: Context<'_>, call: &Call<'_>) -> Result<Answer> {
    let stream = stream_name(call, "stream.last requires at least 1 argument: streamName")?;
    let [event_type] = options(call.argument(1), ["type"])?;
    let event_type = type_option(event_type)?;
    let last = context
        .database()
        .await?
        .last(&stream, event_type.as_deref())?;
    let Some(event) = last else {
        return Ok(response::json("null"));
    };
    let mut out = Vec::new();
    put_row(&mut out, &event, Shape::Stream);
    Ok(response::json(out))
}
