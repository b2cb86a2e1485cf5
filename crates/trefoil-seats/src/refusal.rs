//! Why a command on seats is refused. The first word is for programs, the rest for people.

use trefoil_state::CommandError;

use super::booking::Status;
use super::names::{EventNames, SectionNames};
use super::seat::{Seat, SeatState};

/// How much of a wrong argument is repeated.
const QUOTED_CHARS_MAX: usize = 40;

pub(super) fn seat_taken(seat: Seat, state: SeatState) -> CommandError {
    CommandError::because(format!("SEATTAKEN seat {seat} is {state}"))
}

pub(super) fn no_seat_text(text: &[u8]) -> CommandError {
    let text = String::from_utf8_lossy(text);
    let text: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    let text = text.escape_default();
    CommandError::because(format!(
        "BADSEAT '{text}' is not a seat: one is written row-number, such as 3-7"
    ))
}

pub(super) fn no_seat(seat: Seat, rows: usize, seats_per_row: usize) -> CommandError {
    CommandError::because(format!(
        "BADSEAT there is no seat {seat}: the section has {rows} rows of {seats_per_row} seats"
    ))
}

pub(super) fn seat_twice(seat: Seat) -> CommandError {
    CommandError::because(format!("BADSEAT seat {seat} is named twice"))
}

pub(super) fn no_seats(wanted: usize, available: usize) -> CommandError {
    CommandError::because(format!(
        "NOSEATS {wanted} seats are wanted and {available} are available"
    ))
}

pub(super) fn over_booking_limit(wanted: usize, limit: usize) -> CommandError {
    CommandError::because(format!(
        "LIMIT {wanted} seats are wanted and a booking has at most {limit}"
    ))
}

pub(super) fn over_buyer_limit(buyer: &str, has: i64, wanted: usize, limit: usize) -> CommandError {
    CommandError::because(format!(
        "LIMIT buyer {buyer} has {has} seats, wants {wanted} more, and may have at most {limit}"
    ))
}

pub(super) fn not_owner(booking: &str, buyer: &str) -> CommandError {
    CommandError::because(format!(
        "NOTOWNER booking {booking} is not one of buyer {buyer}"
    ))
}

pub(super) fn wrong_status(booking: &str, status: Status) -> CommandError {
    let status = status.name().to_ascii_lowercase();
    CommandError::because(format!("SEATSTATE booking {booking} is {status}"))
}

pub(super) fn seat_not_held(booking: &str, seat: Seat) -> CommandError {
    CommandError::because(format!(
        "SEATSTATE seat {seat} is not reserved by booking {booking}"
    ))
}

pub(super) fn section_in_use() -> CommandError {
    CommandError::refused(
        "SEATSTATE seats of the section are reserved or sold: it can get more rows, but not \
         fewer, and no other number of seats per row",
    )
}

pub(super) fn no_booking(booking: &str) -> CommandError {
    CommandError::because(format!("NOBOOKING there is no booking {booking}"))
}

pub(super) fn booking_exists(booking: &str) -> CommandError {
    CommandError::because(format!(
        "BOOKINGEXISTS booking {booking} is one of another request"
    ))
}

pub(super) fn expired(booking: &str) -> CommandError {
    CommandError::because(format!("EXPIRED the hold of booking {booking} has run out"))
}

pub(super) fn no_sections(names: &EventNames) -> CommandError {
    let event = &names.event;
    CommandError::because(format!("NOSECTION event {event} has no sections"))
}

pub(super) fn no_section(names: &SectionNames) -> CommandError {
    let (section, event) = (&names.section, &names.of.event);
    CommandError::because(format!(
        "NOSECTION there is no section {section} of event {event}"
    ))
}

/// Returns the refusal of a key that holds something else, because a plain command put it there.
pub(super) fn not_ours(key: &[u8], what: &str) -> CommandError {
    let key = String::from_utf8_lossy(key);
    CommandError::because(format!("ERR {what} under {key} is not as it should be"))
}
