//! `["events.tracking", source]`
//!
//! Answers the position that a commit last recorded for a source of events elsewhere, or `null`.
//! It goes beyond EventoDB.

use trefoil::limits::TRACKING_SOURCE_BYTES_MAX;

use super::Context;
use super::arguments::check_length;
use crate::error::{Failure, Result};
use crate::json::{RpcCall, text};
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let missing = "events.tracking requires 1 argument: source";
    let source = call.argument(0).ok_or_else(|| Failure::invalid(missing))?;
    let source = text(source).ok_or_else(|| Failure::invalid("source must be a string"))?;
    let what = "length of a tracking source";
    check_length(what, &source, TRACKING_SOURCE_BYTES_MAX)?;
    let source = source.into_owned();
    let database = context.database().await?;
    let position = database.tracking_async(&source).await?;
    Ok(response::json(position.map_or_else(
        || "null".to_owned(),
        |position| position.to_string(),
    )))
}
