//! `["position.at", time]`
//!
//! Answers the first global position whose event's time is at or after `time` (RFC 3339), or
//! `null` if there is none. It goes beyond EventoDB.

use trefoil::Timestamp;

use super::Context;
use crate::error::{Failure, Result};
use crate::json::{RpcCall, text};
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let missing = "position.at requires 1 argument: time";
    let time = call.argument(0).ok_or_else(|| Failure::invalid(missing))?;
    let time = text(time).and_then(|time| Timestamp::parse(&time));
    let time = time.ok_or_else(|| Failure::invalid("time must be an RFC 3339 time"))?;
    let position = context.database().await?.position_at(time)?;
    Ok(response::json(position.map_or_else(
        || "null".to_owned(),
        |found| found.to_string(),
    )))
}
