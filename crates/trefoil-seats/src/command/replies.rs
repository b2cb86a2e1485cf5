//! The replies about bookings and counts.

use trefoil_state::Reply;

use crate::{Booking, Seat, SeatCounts, Status};

/// What something is called, and what it is.
pub(super) type ReplyEntry = (Reply, Reply);

/// Returns an entry of a map.
pub(super) fn entry(name: &'static str, value: Reply) -> ReplyEntry {
    (Reply::bulk(name), value)
}

/// Returns an entry that is text.
pub(super) fn text(name: &'static str, value: &str) -> ReplyEntry {
    entry(name, Reply::bulk(value.to_owned()))
}

fn integer(value: impl TryInto<i64>) -> Reply {
    Reply::Integer(value.try_into().unwrap_or(i64::MAX))
}

/// Returns an entry that is a number.
pub(super) fn number(name: &'static str, value: impl TryInto<i64>) -> ReplyEntry {
    entry(name, integer(value))
}

/// Returns how many seats are in which state.
pub(super) fn counts(counts: &SeatCounts) -> Vec<ReplyEntry> {
    vec![
        number("available", counts.available),
        number("reserved", counts.reserved),
        number("sold", counts.sold),
        number("total", counts.total),
    ]
}

fn seats(seats: &[Seat]) -> ReplyEntry {
    let seats = seats.iter().map(|seat| Reply::bulk(seat.to_string()));
    entry("seats", Reply::Array(seats.collect()))
}

fn expires_at(booking: &Booking) -> ReplyEntry {
    entry("expires_at", booking.expires_at.map_or(Reply::Nil, integer))
}

/// Returns what a reservation replies, the first time and every time after.
pub(super) fn reserved(booking: &Booking) -> Reply {
    Reply::Map(vec![
        text("booking", &booking.id),
        text("status", Status::Reserved.name()),
        seats(&booking.seats),
        number("total_price", booking.total_price),
        expires_at(booking),
        number("position", booking.position),
        entry("stats", Reply::Map(counts(&booking.stats))),
    ])
}

/// Returns what selling and releasing reply.
pub(super) fn settled(booking: &Booking) -> Reply {
    Reply::Map(vec![
        text("booking", &booking.id),
        text("status", booking.status.name()),
        seats(&booking.seats),
        number("position", booking.last_position),
    ])
}

/// Returns all that is remembered of a booking.
pub(super) fn booking(booking: &Booking) -> Reply {
    Reply::Map(vec![
        text("booking", &booking.id),
        text("buyer", &booking.buyer),
        text("event", &booking.names.of.event),
        text("section", &booking.names.section),
        text("status", booking.status.name()),
        text("mode", booking.mode.name()),
        seats(&booking.seats),
        number("total_price", booking.total_price),
        number("created_at", booking.created_at),
        number("updated_at", booking.updated_at),
        expires_at(booking),
        number("position", booking.position),
        number("last_position", booking.last_position),
    ])
}
