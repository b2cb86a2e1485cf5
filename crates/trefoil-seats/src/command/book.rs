//! Bookings: to make, to sell, to release, to look up.

use bytes::Bytes;
use trefoil_state::{ArgumentReader, Keyspace, Reply, SYNTAX};

use super::options::{end, next, number, section, split};
use super::replies;
use crate::Result;
use crate::limits::{SEAT_HOLD_MILLIS_MAX, SEATS_PER_BOOKING_MAX};
use crate::{self as seats, Booking, Seat, SeatChoice, SeatRequest, check_id};

const BOOKING_MAX: i64 = SEATS_PER_BOOKING_MAX as i64;
const HOLD_MAX: i64 = SEAT_HOLD_MILLIS_MAX as i64;

/// `SEATS.RESERVE event section booking buyer SEATS seat [seat …] | BEST n
/// [HOLD seconds | HOLDMS milliseconds] [MAX n] [PREFIX p]`
pub(super) fn reserve(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (mut rest, prefix) = split(arguments, 7)?;
    let names = section(&mut rest, prefix)?;
    let booking = check_id("booking", next(&mut rest)?)?;
    let buyer = check_id("buyer", next(&mut rest)?)?;
    let choice = choice(&mut rest)?;
    let (hold, max) = options(rest)?;
    let request = SeatRequest {
        names,
        booking,
        buyer,
        choice,
        hold,
        max,
    };
    let booking = seats::reserve(keyspace, request)?;
    Ok(replies::reserved(&booking))
}

fn choice(rest: &mut ArgumentReader<'_>) -> Result<SeatChoice> {
    if rest.take("BEST") {
        return number(rest, "BEST", 1..=BOOKING_MAX).map(SeatChoice::Best);
    }
    if !rest.take("SEATS") {
        return Err(SYNTAX);
    }
    let mut seats = vec![Seat::parse(next(rest)?)?];
    while let Some(word) = rest.all().first()
        && !["HOLD", "HOLDMS", "MAX"]
            .iter()
            .any(|option| word.eq_ignore_ascii_case(option.as_bytes()))
    {
        seats.push(Seat::parse(next(rest)?)?);
    }
    Ok(SeatChoice::Seats(seats))
}

/// After how many milliseconds the hold ends, and how many seats there may be.
fn options(mut rest: ArgumentReader<'_>) -> Result<(Option<u64>, Option<usize>)> {
    let (mut hold, mut max) = (None, None);
    while !rest.is_empty() {
        if hold.is_none() && rest.take("HOLD") {
            let seconds: u64 = number(&mut rest, "HOLD", 1..=HOLD_MAX / 1000)?;
            hold = Some(seconds * 1000);
        } else if hold.is_none() && rest.take("HOLDMS") {
            hold = Some(number(&mut rest, "HOLDMS", 1..=HOLD_MAX)?);
        } else if rest.take("MAX") {
            max = Some(number(&mut rest, "MAX", 1..=BOOKING_MAX)?);
        } else {
            return Err(SYNTAX);
        }
    }
    Ok((hold, max))
}

/// `SEATS.FINALIZE booking buyer [PREFIX p]`
pub(super) fn finalize(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (prefix, booking, buyer) = owned(arguments)?;
    let booking = seats::finalize(keyspace, &prefix, &booking, &buyer)?;
    Ok(replies::settled(&booking))
}

/// `SEATS.RELEASE booking buyer [PREFIX p]`
pub(super) fn release(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (prefix, booking, buyer) = owned(arguments)?;
    let booking = seats::release(keyspace, &prefix, &booking, &buyer)?;
    Ok(replies::settled(&booking))
}

/// Returns a prefix, a booking and a buyer.
fn owned(arguments: &[Bytes]) -> Result<(String, String, String)> {
    let (mut rest, prefix) = split(arguments, 3)?;
    let booking = check_id("booking", next(&mut rest)?)?;
    let buyer = check_id("buyer", next(&mut rest)?)?;
    end(&rest)?;
    Ok((prefix, booking, buyer))
}

/// `SEATS.BOOKING booking [PREFIX p]`
pub(super) fn booking(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let (mut rest, prefix) = split(arguments, 2)?;
    let id = check_id("booking", next(&mut rest)?)?;
    end(&rest)?;
    let booking = Booking::load(keyspace, &prefix, &id)?;
    Ok(booking.as_ref().map_or(Reply::Nil, replies::booking))
}
