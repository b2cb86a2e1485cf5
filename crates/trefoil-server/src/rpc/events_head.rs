//! `["events.head"]`
//!
//! Answers the global position of the last event, 0 if there is none. It goes beyond EventoDB.

use super::Context;
use crate::error::Result;
use crate::json::RpcCall;
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, _: &RpcCall<'_>) -> Result<HttpAnswer> {
    let head = context.database().await?.head()?;
    Ok(response::json(head.to_string()))
}
