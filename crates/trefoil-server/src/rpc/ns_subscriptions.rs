//! `["ns.subscriptions", {limit?, cursor?}]`
//!
//! Answers a page of the open subscriptions of the token's namespace, the oldest first, after the id
//! `cursor`: `[{"id", "protocol", "endpoint", "since", "query", "position", "events", "lag",
//! "lagMs"}]`. It goes beyond EventoDB.

use trefoil::{OpenDatabase, Selection, Timestamp};

use super::Context;
use super::arguments::strict_limit;
use crate::error::Result;
use crate::json::{ObjectWriter, RpcCall, present, put_array, put_time};
use crate::limits::PAGE_BYTES;
use crate::response::{self, HttpAnswer};
use crate::service::reading;
use crate::strict;
use crate::subscriptions::OpenSubscription;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let [limit, cursor] = match present(call.argument(0)) {
        None => [None; 2],
        Some(options) => strict::object(options, "options", ["limit", "cursor"])?.map(present),
    };
    let limit = strict_limit(limit)?;
    let cursor = strict::optional_position(cursor, "cursor")?.unwrap_or(0);
    let shared = context.shared;
    let namespace = &context.access.namespace;
    let open = shared.subscriptions.list(namespace, cursor, limit);
    let database = context.database().await?;
    let now = shared.clock().now();
    let head = database.head()?;
    let reader = database.clone();
    let out = reading(&database, move || {
        let mut out = Vec::new();
        put_array(&mut out, open, |out, subscription| {
            put_subscription(out, &subscription, (&reader, head), now);
        });
        out
    });
    Ok(response::json(out.await?))
}

fn put_subscription(
    out: &mut Vec<u8>,
    subscription: &OpenSubscription,
    (database, head): (&OpenDatabase, u64),
    now: Timestamp,
) {
    let position = subscription.position();
    let lag = head.saturating_sub(position);
    let mut object = ObjectWriter::begin(out);
    object.number("id", subscription.id);
    object.text("protocol", subscription.protocol);
    object.text("endpoint", subscription.endpoint);
    put_time(object.field("since"), subscription.since);
    object.json("query", subscription.query.as_deref().unwrap_or("null"));
    object.number("position", position.min(head));
    object.number("events", subscription.events());
    object.number("lag", lag);
    let waiting = match lag {
        0 => Some(0),
        _ => {
            waiting_since(database, position).map(|time| now.millis().saturating_sub(time.millis()))
        }
    };
    object.number_or_null("lagMs", waiting);
    object.end();
}

/// Returns when the first event was written that a subscription has not got yet.
fn waiting_since(database: &OpenDatabase, position: u64) -> Option<Timestamp> {
    let next = Selection::all().from_position(position + 1).limit(1);
    let page = database.read_page(&next, PAGE_BYTES).ok()?;
    page.events.first().map(|event| event.time())
}
