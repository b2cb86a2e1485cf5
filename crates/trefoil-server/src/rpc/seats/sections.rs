//! Sections: to open, to list, to count, to show and to check.

use super::command::SeatsCommand;
use super::{arguments, run};
use crate::error::{Failure, Result};
use crate::json::RpcCall;
use crate::response::HttpAnswer;
use crate::rpc::Context;

/// `["seats.init", {event, section, rows, seatsPerRow, price?, maxPerBooking?, maxPerBuyer?,
/// prefix?}]`
pub(in crate::rpc) async fn init(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let method = "seats.init";
    let names = [
        "event",
        "section",
        "rows",
        "seatsPerRow",
        "price",
        "maxPerBooking",
        "maxPerBuyer",
        "prefix",
    ];
    let [
        event,
        section,
        rows,
        seats,
        price,
        per_booking,
        per_buyer,
        prefix,
    ] = arguments(call, method, names)?;
    for (name, value) in [("rows", rows), ("seatsPerRow", seats)] {
        if value.is_none() {
            return Err(Failure::invalid(format!("{method}.{name} is missing")));
        }
    }
    let command = SeatsCommand::of(method)
        .id("event", event)?
        .id("section", section)?
        .number("ROWS", "rows", rows)?
        .number("SEATS", "seatsPerRow", seats)?
        .number("PRICE", "price", price)?
        .number("MAXBOOKING", "maxPerBooking", per_booking)?
        .number("MAXBUYER", "maxPerBuyer", per_buyer)?;
    run(context, command.with_prefix(prefix)?).await
}

/// `["seats.sections", {event, prefix?}]`
pub(in crate::rpc) async fn sections(
    context: Context<'_>,
    call: &RpcCall<'_>,
) -> Result<HttpAnswer> {
    let method = "seats.sections";
    let [event, prefix] = arguments(call, method, ["event", "prefix"])?;
    let command = SeatsCommand::of(method).id("event", event)?;
    run(context, command.with_prefix(prefix)?).await
}

/// `["seats.stats", {event, section?, prefix?}]`
pub(in crate::rpc) async fn stats(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    event_or_section(context, call, "seats.stats").await
}

/// `["seats.check", {event, section?, prefix?}]`
pub(in crate::rpc) async fn check(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    event_or_section(context, call, "seats.check").await
}

async fn event_or_section(
    context: Context<'_>,
    call: &RpcCall<'_>,
    method: &'static str,
) -> Result<HttpAnswer> {
    let [event, section, prefix] = arguments(call, method, ["event", "section", "prefix"])?;
    let command = SeatsCommand::of(method)
        .id("event", event)?
        .optional_id("section", section)?;
    run(context, command.with_prefix(prefix)?).await
}

/// `["seats.map", {event, section, row? | range?: [first, last], owners?, prefix?}]`
pub(in crate::rpc) async fn map(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let method = "seats.map";
    let names = ["event", "section", "row", "range", "owners", "prefix"];
    let [event, section, row, range, owners, prefix] = arguments(call, method, names)?;
    if row.is_some() && range.is_some() {
        let text = format!("{method} must have at most one of row and range");
        return Err(Failure::invalid(text));
    }
    let command = SeatsCommand::of(method)
        .id("event", event)?
        .id("section", section)?
        .number("ROW", "row", row)?
        .seats("RANGE", "range", range, 2..=2)?
        .flag("OWNERS", "owners", owners)?;
    run(context, command.with_prefix(prefix)?).await
}
