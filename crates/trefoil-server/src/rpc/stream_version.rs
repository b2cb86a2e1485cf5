//! `["stream.version", streamName]`
//!
//! Answers the position of a stream's last event, or `null` if there is no such stream.

use super::Context;
use super::arguments::stream_name;
use crate::error::Result;
use crate::json::RpcCall;
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let stream = stream_name(call, "stream.version requires 1 argument: streamName")?;
    context.access.grant.require_stream(Some(&stream))?;
    let database = context.database().await?;
    let version = match database.may_wait() {
        true => database.version_async(&stream).await?,
        false => database.version(&stream)?,
    };
    Ok(response::json(version.map_or_else(
        || "null".to_owned(),
        |version| version.to_string(),
    )))
}
