//! `["events.get", globalPosition | id, {as?}]`
//!
//! Answers one event, by its global position or by its id, or `null`. It goes beyond EventoDB.

use serde_json::value::RawValue;
use trefoil::{EventId, parse_event_id};

use super::Context;
use super::arguments::shape_option;
use super::rows::{EventShape, put_event};
use crate::error::{Failure, Result};
use crate::json::{RpcCall, present, text};
use crate::response::{self, HttpAnswer};
use crate::strict;

/// Which event is meant.
enum EventAddress {
    Position(u64),
    Id(EventId),
}

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let missing = "events.get requires at least 1 argument: globalPosition or id";
    let address = call.argument(0).ok_or_else(|| Failure::invalid(missing))?;
    let address = parse(address)?;
    let [shape] = match present(call.argument(1)) {
        None => [None],
        Some(options) => strict::object(options, "options", ["as"])?.map(present),
    };
    let shape = shape_option(shape, EventShape::WHOLE_ROW)?;
    let database = context.database().await?;
    let event = database.soon(move |database| match &address {
        EventAddress::Position(position) => database.event_at(*position),
        EventAddress::Id(id) => database.event_with_id(id),
    });
    let Some(event) = event.await? else {
        return Ok(response::json("null"));
    };
    let mut out = Vec::new();
    put_event(&mut out, &event, shape);
    Ok(response::json(out))
}

fn parse(value: &RawValue) -> Result<EventAddress> {
    if let Some(id) = text(value) {
        let wrong = || Failure::invalid("the id of an event must be a UUID");
        return Ok(EventAddress::Id(parse_event_id(&id).ok_or_else(wrong)?));
    }
    let position = strict::position(Some(value), "globalPosition")?;
    Ok(EventAddress::Position(position))
}
