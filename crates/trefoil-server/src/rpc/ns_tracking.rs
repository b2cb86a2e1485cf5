//! `["ns.tracking", {prefix?, limit?, cursor?}]`
//!
//! Answers a page of the sources of tracked positions of the token's namespace, `[{"source",
//! "position", "lag"}]`, by name, after `cursor`. The lag is how far the position is behind the head
//! of this namespace, or `null` if it is ahead of that: then it is one of another log. It goes beyond
//! EventoDB.

use super::Context;
use super::arguments::strict_list;
use crate::error::Result;
use crate::json::{ObjectWriter, RpcCall, put_array};
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let list = strict_list(call)?;
    let database = context.database().await?;
    let found = database.trackings_async(&list).await?;
    let head = database.head()?;
    let mut out = Vec::new();
    put_array(&mut out, found, |out, tracking| {
        let mut object = ObjectWriter::begin(out);
        object.text("source", &tracking.source);
        object.number("position", tracking.position);
        object.number_or_null("lag", head.checked_sub(tracking.position));
        object.end();
    });
    Ok(response::json(out))
}
