//! What becomes of a booking in the end: its seats are sold, released, or their hold runs out.

use trefoil_state::Keyspace;

use super::booking::{Booking, Status};
use super::events::emit_booking;
use super::owners::{owner, seats_of_buyer, set_owner, set_seats_of_buyer};
use super::refusal;
use super::seat::SeatState;
use super::section::Section;
use crate::Result;

/// Sells the seats that a buyer has reserved. A repetition changes nothing.
pub(crate) fn finalize(
    keyspace: &mut Keyspace<'_>,
    prefix: &str,
    booking: &str,
    buyer: &str,
) -> Result<Booking> {
    settle_as(keyspace, (prefix, booking), buyer, Status::Sold)
}

/// Gives back the seats that a buyer has reserved. A repetition changes nothing.
pub(crate) fn release(
    keyspace: &mut Keyspace<'_>,
    prefix: &str,
    booking: &str,
    buyer: &str,
) -> Result<Booking> {
    settle_as(keyspace, (prefix, booking), buyer, Status::Released)
}

fn settle_as(
    keyspace: &mut Keyspace<'_>,
    (prefix, id): (&str, &str),
    buyer: &str,
    status: Status,
) -> Result<Booking> {
    keyspace.run_due_timers()?;
    let booking = Booking::of_buyer(keyspace, prefix, id, buyer)?;
    match booking.status {
        done if done == status => Ok(booking),
        Status::Reserved if booking.is_overdue(keyspace.now()) => Err(refusal::expired(id)),
        Status::Reserved => Settlement::prepare(keyspace, booking)?.complete(keyspace, status),
        Status::Expired => Err(refusal::expired(id)),
        other => Err(refusal::wrong_status(id, other)),
    }
}

/// A reserved booking whose seats are really its own, with all that is to change with it.
#[derive(Debug)]
pub(super) struct Settlement {
    booking: Booking,
    section: Section,
    /// How many seats of the event the buyer has.
    n_owned: i64,
}

impl Settlement {
    /// Reads all that is to change, and checks that each seat is reserved by this booking.
    pub(super) fn prepare(keyspace: &Keyspace<'_>, booking: Booking) -> Result<Self> {
        let mut section = Section::load(keyspace, &booking.names)?;
        for seat in &booking.seats {
            let is_reserved = section.state(keyspace, *seat)? == SeatState::Reserved;
            let owner = owner(keyspace, &booking.names, *seat)?;
            let is_owner = owner
                .is_some_and(|owner| owner.booking == booking.id && owner.buyer == booking.buyer);
            if !is_reserved || !is_owner {
                return Err(refusal::seat_not_held(&booking.id, *seat));
            }
        }
        let n_owned = seats_of_buyer(keyspace, &booking.names.of, &booking.buyer)?;
        Ok(Self {
            booking,
            section,
            n_owned,
        })
    }

    /// Changes it all.
    pub(super) fn complete(self, keyspace: &mut Keyspace<'_>, status: Status) -> Result<Booking> {
        let mut booking = self.booking;
        let names = &booking.names;
        let to = match status {
            Status::Sold => SeatState::Sold,
            _ => SeatState::Available,
        };
        if to == SeatState::Available {
            set_owner(keyspace, names, &booking.seats, None)?;
            let n_owned = self.n_owned.saturating_sub(booking.seats.len() as i64);
            set_seats_of_buyer(keyspace, &names.of, &booking.buyer, n_owned)?;
        }
        let seats = &booking.seats;
        self.section
            .change(keyspace, seats, SeatState::Reserved, to)?;
        booking.status = status;
        booking.updated_at = keyspace.now();
        booking.last_position = emit_booking(keyspace, &booking)?;
        booking.settle(keyspace)?;
        Ok(booking)
    }
}
