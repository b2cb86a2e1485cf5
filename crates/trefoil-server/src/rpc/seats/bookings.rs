//! Bookings: to make, to sell, to release, to look up.

use super::command::SeatsCommand;
use super::{arguments, run};
use crate::error::{Failure, Result};
use crate::json::RpcCall;
use crate::limits::WORDS_PER_COMMAND_MAX;
use crate::response::HttpAnswer;
use crate::rpc::Context;

/// `["seats.reserve", {event, section, booking, buyer, seats: […] | best, hold? | holdMs?, max?,
/// prefix?}]`
pub(in crate::rpc) async fn reserve(
    context: Context<'_>,
    call: &RpcCall<'_>,
) -> Result<HttpAnswer> {
    let method = "seats.reserve";
    let names = [
        "event", "section", "booking", "buyer", "seats", "best", "hold", "holdMs", "max", "prefix",
    ];
    let [
        event,
        section,
        booking,
        buyer,
        seats,
        best,
        hold,
        hold_ms,
        max,
        prefix,
    ] = arguments(call, method, names)?;
    if seats.is_some() == best.is_some() {
        let text = format!("{method} must have either seats or best");
        return Err(Failure::invalid(text));
    }
    if hold.is_some() && hold_ms.is_some() {
        let text = format!("{method} must have at most one of hold and holdMs");
        return Err(Failure::invalid(text));
    }
    let command = SeatsCommand::of(method)
        .id("event", event)?
        .id("section", section)?
        .id("booking", booking)?
        .id("buyer", buyer)?
        .seats("SEATS", "seats", seats, 1..=WORDS_PER_COMMAND_MAX)?
        .number("BEST", "best", best)?
        .number("HOLD", "hold", hold)?
        .number("HOLDMS", "holdMs", hold_ms)?
        .number("MAX", "max", max)?;
    run(context, command.with_prefix(prefix)?).await
}

/// `["seats.finalize", {booking, buyer, prefix?}]`
pub(in crate::rpc) async fn finalize(
    context: Context<'_>,
    call: &RpcCall<'_>,
) -> Result<HttpAnswer> {
    settle(context, call, "seats.finalize").await
}

/// `["seats.release", {booking, buyer, prefix?}]`
pub(in crate::rpc) async fn release(
    context: Context<'_>,
    call: &RpcCall<'_>,
) -> Result<HttpAnswer> {
    settle(context, call, "seats.release").await
}

async fn settle(
    context: Context<'_>,
    call: &RpcCall<'_>,
    method: &'static str,
) -> Result<HttpAnswer> {
    let [booking, buyer, prefix] = arguments(call, method, ["booking", "buyer", "prefix"])?;
    let command = SeatsCommand::of(method)
        .id("booking", booking)?
        .id("buyer", buyer)?;
    run(context, command.with_prefix(prefix)?).await
}

/// `["seats.booking", {booking, prefix?}]`
pub(in crate::rpc) async fn booking(
    context: Context<'_>,
    call: &RpcCall<'_>,
) -> Result<HttpAnswer> {
    let method = "seats.booking";
    let [booking, prefix] = arguments(call, method, ["booking", "prefix"])?;
    let command = SeatsCommand::of(method).id("booking", booking)?;
    run(context, command.with_prefix(prefix)?).await
}
