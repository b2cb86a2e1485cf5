//! `["event.redact", {globalPosition, tags?}]`
//!
//! Removes what an event says for ever: its data, its metadata and, with `tags`, its tags. Answers
//! `{"globalPosition": n, "redacted": true}`, or `false` if it was redacted so far before. It goes
//! beyond EventoDB.

use trefoil::OpenDatabase;

use super::Context;
use super::audit::{AuditedCall, NotingOrder};
use crate::error::{Failure, Result};
use crate::json::{ObjectWriter, RpcCall, present};
use crate::response::{self, HttpAnswer};
use crate::strict;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let missing = "event.redact requires 1 argument: {\"globalPosition\": n}";
    let event = call.argument(0).ok_or_else(|| Failure::invalid(missing))?;
    let names = ["globalPosition", "tags"];
    let [position, tags] = strict::object(event, "the event", names)?.map(present);
    let position = strict::position(position, "globalPosition")?;
    let drops_tags = strict::flag(tags, "tags")?;
    let database = context.database().await?;
    let namespace = context.access.namespace.as_str();
    let audited = AuditedCall::new(&context, "event.redact", namespace).with_details(|object| {
        object.number("globalPosition", position);
        object.flag("tags", drops_tags);
    });
    let redacted = redact(database, position, drops_tags);
    // It makes no room, and nobody may be able to do this without a trace.
    let order = NotingOrder::NoteFirst;
    audited.run_async(&context, order, redacted).await
}

async fn redact(database: OpenDatabase, position: u64, drops_tags: bool) -> Result<HttpAnswer> {
    let redacted = database.redact_async(position, drops_tags).await?;
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    object.number("globalPosition", position);
    object.flag("redacted", redacted);
    object.end();
    Ok(response::json(out))
}
