//! Reserving seats: all that are wanted, or none.

use std::collections::HashSet;

use trefoil_state::Keyspace;

use super::booking::{Booking, Mode, Status};
use super::counts::SeatCounts;
use super::events::emit_booking;
use super::names::SectionNames;
use super::owners::{Owner, seats_of_buyer, set_owner, set_seats_of_buyer};
use super::refusal;
use super::seat::{Seat, SeatState};
use super::section::Section;
use crate::Result;

/// The seats that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SeatChoice {
    /// These.
    Seats(Vec<Seat>),
    /// This many of the best that are available.
    Best(usize),
}

/// What is wanted, by whom, and under which id.
#[derive(Debug)]
pub(crate) struct SeatRequest {
    pub(crate) names: SectionNames,
    pub(crate) booking: String,
    pub(crate) buyer: String,
    pub(crate) choice: SeatChoice,
    /// After how many milliseconds the seats return by themselves.
    pub(crate) hold: Option<u64>,
    /// How many seats the booking may have, instead of what the section says.
    pub(crate) max: Option<usize>,
}

/// Reserves seats. A repeated request gets the booking of the first one, and changes nothing.
pub(crate) fn reserve(keyspace: &mut Keyspace<'_>, request: SeatRequest) -> Result<Booking> {
    keyspace.run_due_timers()?;
    let prefix = &request.names.of.prefix;
    if let Some(booking) = Booking::load(keyspace, prefix, &request.booking)? {
        return match request.is_of(&booking) {
            true => Ok(booking),
            false => Err(refusal::booking_exists(&request.booking)),
        };
    }
    let mut section = Section::load(keyspace, &request.names)?;
    let n_owned = request.check_limits(keyspace, &section)?;
    let seats = match &request.choice {
        SeatChoice::Seats(seats) => available(keyspace, &mut section, seats)?,
        SeatChoice::Best(n) => best(keyspace, &section, *n)?,
    };
    let mut booking = request.into_booking(seats, section.config.price, keyspace.now());
    let names = &booking.names;
    set_owner(keyspace, names, &booking.seats, Some(&owner(&booking)))?;
    let n_owned = n_owned.saturating_add(booking.seats.len() as i64);
    set_seats_of_buyer(keyspace, &names.of, &booking.buyer, n_owned)?;
    let (from, to) = (SeatState::Available, SeatState::Reserved);
    booking.stats = section.change(keyspace, &booking.seats, from, to)?;
    booking.position = emit_booking(keyspace, &booking)?;
    booking.last_position = booking.position;
    booking.save(keyspace)?;
    Ok(booking)
}

/// Returns the owner that the seats of a booking get.
fn owner(booking: &Booking) -> Owner {
    Owner {
        buyer: booking.buyer.clone(),
        booking: booking.id.clone(),
        price: booking.price(),
        reserved_at: booking.created_at,
    }
}

impl SeatRequest {
    /// Returns whether a booking is what this request led to.
    fn is_of(&self, booking: &Booking) -> bool {
        let is_choice = match &self.choice {
            SeatChoice::Seats(seats) => booking.mode == Mode::Manual && *seats == booking.seats,
            SeatChoice::Best(n) => booking.mode == Mode::BestAvailable && *n == booking.seats.len(),
        };
        is_choice && self.names == booking.names && self.buyer == booking.buyer
    }

    fn n_wanted(&self) -> usize {
        match &self.choice {
            SeatChoice::Seats(seats) => seats.len(),
            SeatChoice::Best(n) => *n,
        }
    }

    /// Checks how many seats are wanted. Returns how many the buyer has.
    fn check_limits(&self, keyspace: &Keyspace<'_>, section: &Section) -> Result<i64> {
        let n_wanted = self.n_wanted();
        let limit = self.max.unwrap_or(section.config.max_per_booking);
        if n_wanted > limit {
            return Err(refusal::over_booking_limit(n_wanted, limit));
        }
        let n_owned = seats_of_buyer(keyspace, &self.names.of, &self.buyer)?;
        let limit = section.config.max_per_buyer;
        let n_then = n_owned.saturating_add(n_wanted as i64);
        if limit > 0 && n_then > limit as i64 {
            let buyer = &self.buyer;
            return Err(refusal::over_buyer_limit(buyer, n_owned, n_wanted, limit));
        }
        Ok(n_owned)
    }

    fn into_booking(self, seats: Vec<Seat>, price: i64, now: u64) -> Booking {
        let mode = match self.choice {
            SeatChoice::Seats(_) => Mode::Manual,
            SeatChoice::Best(_) => Mode::BestAvailable,
        };
        Booking {
            id: self.booking,
            buyer: self.buyer,
            names: self.names,
            status: Status::Reserved,
            mode,
            total_price: price.saturating_mul(seats.len() as i64),
            seats,
            created_at: now,
            updated_at: now,
            expires_at: self.hold.map(|hold| now.saturating_add(hold)),
            position: 0,
            last_position: 0,
            stats: SeatCounts::default(),
        }
    }
}

/// Returns the seats, if they are different seats of the section and all are available.
fn available(keyspace: &Keyspace<'_>, section: &mut Section, seats: &[Seat]) -> Result<Vec<Seat>> {
    let mut seen = HashSet::new();
    for seat in seats {
        section.config.index(*seat)?;
        if !seen.insert(seat) {
            return Err(refusal::seat_twice(*seat));
        }
    }
    for seat in seats {
        let state = section.state(keyspace, *seat)?;
        if state != SeatState::Available {
            return Err(refusal::seat_taken(*seat, state));
        }
    }
    Ok(seats.to_vec())
}

fn best(keyspace: &Keyspace<'_>, section: &Section, n: usize) -> Result<Vec<Seat>> {
    let bytes = section.bytes(keyspace)?;
    let best = section.grid(&bytes).best(n);
    let indexes = best.map_err(|n_available| refusal::no_seats(n, n_available))?;
    let seats_per_row = section.config.seats_per_row;
    let seats = indexes.iter().map(|index| Seat::at(*index, seats_per_row));
    Ok(seats.collect())
}
