//! The map of a section, and whether everything agrees.

use std::ops::RangeInclusive;

use bytes::Bytes;
use trefoil_state::{ArgumentReader, CommandError, Keyspace, Reply, SYNTAX};

use super::options::{end, next, number, section, split};
use super::replies::{entry, number as answer_number};
use crate::Result;
use crate::limits::SEATS_PER_SECTION_MAX;
use crate::{self as seats, EventNames, MappedSeat, Seat, Section, SectionNames};

/// Which seats are shown: all between two corners.
#[derive(Debug)]
struct MapPart {
    rows: RangeInclusive<u32>,
    numbers: RangeInclusive<u32>,
}

/// `SEATS.MAP event section [ROW n | RANGE seat seat] [OWNERS] [PREFIX p]`
pub(super) fn map(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (mut rest, prefix) = split(arguments, 3)?;
    let names = section(&mut rest, prefix)?;
    let section = Section::load(keyspace, &names)?;
    let (part, with_owners) = options(rest, &section)?;
    let rows = section.rows(keyspace, part.rows, part.numbers, with_owners)?;
    let row = |seats: Vec<MappedSeat>| Reply::Array(seats.into_iter().map(seat).collect());
    Ok(Reply::Map(vec![
        answer_number("rows", section.config.rows),
        answer_number("seats_per_row", section.config.seats_per_row),
        entry("seats", Reply::Array(rows.into_iter().map(row).collect())),
    ]))
}

fn seat(seat: MappedSeat) -> Reply {
    let state = Reply::Integer(seat.state as i64);
    match seat.owner {
        None => state,
        Some(None) => Reply::Array(vec![state, Reply::Nil, Reply::Nil]),
        Some(Some(owner)) => {
            let (buyer, booking) = (Reply::bulk(owner.buyer), Reply::bulk(owner.booking));
            Reply::Array(vec![state, buyer, booking])
        }
    }
}

/// Returns the part that is to be shown, and whether with owners.
fn options(mut rest: ArgumentReader<'_>, section: &Section) -> Result<(MapPart, bool)> {
    const ROW_MAX: i64 = SEATS_PER_SECTION_MAX as i64;
    let config = &section.config;
    let (last_row, last_number) = (config.rows as u32, config.seats_per_row as u32);
    let mut part = MapPart {
        rows: 1..=last_row,
        numbers: 1..=last_number,
    };
    let mut with_owners = false;
    while !rest.is_empty() {
        if rest.take("ROW") {
            let row = number(&mut rest, "ROW", 1..=ROW_MAX)?;
            config.index(Seat { row, number: 1 })?;
            part.rows = row..=row;
        } else if rest.take("RANGE") {
            let first = Seat::parse(next(&mut rest)?)?;
            let last = Seat::parse(next(&mut rest)?)?;
            part = corners(first, last)?;
            config.index(last)?;
        } else if rest.take("OWNERS") {
            with_owners = true;
        } else {
            return Err(SYNTAX);
        }
    }
    Ok((part, with_owners))
}

fn corners(first: Seat, last: Seat) -> Result<MapPart> {
    if first.row > last.row || first.number > last.number {
        return Err(CommandError::because(format!(
            "BADSEAT the range from {first} to {last} is empty"
        )));
    }
    Ok(MapPart {
        rows: first.row..=last.row,
        numbers: first.number..=last.number,
    })
}

/// `SEATS.CHECK event [section] [PREFIX p]`
pub(super) fn check(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (mut rest, prefix) = split(arguments, 2)?;
    let event = EventNames::new(prefix, next(&mut rest)?)?;
    let violations = match rest.word() {
        None => seats::check_event(keyspace, &event)?,
        Some(section) => {
            end(&rest)?;
            let names = SectionNames::new(event, section)?;
            seats::check_section(keyspace, &names)?
        }
    };
    Ok(Reply::Array(
        violations.into_iter().map(Reply::bulk).collect(),
    ))
}
