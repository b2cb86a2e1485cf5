//! Sections: to open, to list, to count.

use bytes::Bytes;
use trefoil_state::{ArgumentReader, CommandError, Keyspace, Reply, SYNTAX};

use super::options::{end, next, number, section, split};
use super::replies::{self, entry, number as answer_number, text};
use crate::Result;
use crate::limits::{SEAT_PRICE_MAX, SEATS_PER_BOOKING_MAX, SEATS_PER_SECTION_MAX};
use crate::{self as seats, CountedSeats, EventNames, SectionNames, SectionOpening};

const SEATS_MAX: i64 = SEATS_PER_SECTION_MAX as i64;

/// `SEATS.INIT event section ROWS n SEATS n [PRICE n] [MAXBOOKING n] [MAXBUYER n] [PREFIX p]`
pub(super) fn init(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (mut rest, prefix) = split(arguments, 7)?;
    let names = section(&mut rest, prefix)?;
    let opening = opening(rest)?;
    let opened = seats::open(keyspace, &names, &opening)?;
    let config = opened.config;
    Ok(Reply::Map(vec![
        text("event", &names.of.event),
        text("section", &names.section),
        answer_number("rows", config.rows),
        answer_number("seats_per_row", config.seats_per_row),
        answer_number("price", config.price),
        answer_number("max_per_booking", config.max_per_booking),
        answer_number("max_per_buyer", config.max_per_buyer),
        entry("created", Reply::flag(opened.is_new)),
    ]))
}

fn opening(mut rest: ArgumentReader<'_>) -> Result<SectionOpening> {
    const BOOKING_MAX: i64 = SEATS_PER_BOOKING_MAX as i64;
    let (mut rows, mut seats_per_row) = (None, None);
    let (mut price, mut max_per_booking, mut max_per_buyer) = (None, None, None);
    while !rest.is_empty() {
        if rest.take("ROWS") {
            rows = Some(number(&mut rest, "ROWS", 1..=SEATS_MAX)?);
        } else if rest.take("SEATS") {
            seats_per_row = Some(number(&mut rest, "SEATS", 1..=SEATS_MAX)?);
        } else if rest.take("PRICE") {
            price = Some(number(&mut rest, "PRICE", 0..=SEAT_PRICE_MAX)?);
        } else if rest.take("MAXBOOKING") {
            max_per_booking = Some(number(&mut rest, "MAXBOOKING", 1..=BOOKING_MAX)?);
        } else if rest.take("MAXBUYER") {
            max_per_buyer = Some(number(&mut rest, "MAXBUYER", 0..=SEATS_MAX)?);
        } else {
            return Err(SYNTAX);
        }
    }
    let (Some(rows), Some(seats_per_row)) = (rows, seats_per_row) else {
        return Err(SYNTAX);
    };
    let opening = SectionOpening {
        rows,
        seats_per_row,
        price,
        max_per_booking,
        max_per_buyer,
    };
    check_size(&opening)?;
    Ok(opening)
}

fn check_size(opening: &SectionOpening) -> Result<()> {
    let n = opening.rows.saturating_mul(opening.seats_per_row);
    if n > SEATS_PER_SECTION_MAX {
        return Err(CommandError::because(format!(
            "ERR a section of {n} seats is over the limit of {SEATS_PER_SECTION_MAX}"
        )));
    }
    Ok(())
}

/// `SEATS.SECTIONS event [PREFIX p]`
pub(super) fn sections(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (mut rest, prefix) = split(arguments, 2)?;
    let names = EventNames::new(prefix, next(&mut rest)?)?;
    end(&rest)?;
    let sections = seats::sections(keyspace, &names)?;
    Ok(Reply::Array(
        sections.into_iter().map(Reply::Bulk).collect(),
    ))
}

/// `SEATS.STATS event [section] [PREFIX p]`
pub(super) fn stats(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (mut rest, prefix) = split(arguments, 2)?;
    let event = EventNames::new(prefix, next(&mut rest)?)?;
    let Some(section) = rest.word() else {
        let counted = CountedSeats::of_event(keyspace, &event)?;
        return Ok(answer(&counted, vec![text("event", &event.event)]));
    };
    end(&rest)?;
    let names = SectionNames::new(event, section)?;
    let counted = CountedSeats::of_section(keyspace, &names)?;
    let ids = vec![
        text("event", &names.of.event),
        text("section", &names.section),
    ];
    Ok(answer(&counted, ids))
}

fn answer(counted: &CountedSeats, mut ids: Vec<replies::ReplyEntry>) -> Reply {
    ids.extend(replies::counts(&counted.counts));
    ids.push(answer_number("updated_at", counted.updated_at));
    Reply::Map(ids)
}
