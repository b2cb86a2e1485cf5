//! Whether everything that is remembered of seats agrees.
//!
//! The map is what is true; statistics, owners, the seats of buyers and bookings must say the same.
//! `SEATS.*` keeps it so; a plain command on the same keys may not.

use std::collections::{BTreeMap, BTreeSet};

use trefoil_state::{CommandError, Keyspace};

use super::booking::{Booking, Status};
use super::counts::SeatCounts;
use super::fields::all_integers;
use super::json;
use super::names::{EventNames, SectionNames, split_booking_key};
use super::owners::{Owner, owners_of_row};
use super::seat::{Seat, SeatState};
use super::section::{Section, sections};
use crate::Result;

/// The most violations that are told.
const VIOLATIONS_MAX: usize = 1000;

/// What was found in a section or several, and what is wrong with it.
#[derive(Debug, Default)]
struct Findings {
    counts: SeatCounts,
    /// How many seats each buyer has.
    buyers: BTreeMap<String, i64>,
    /// The bookings that have seats.
    bookings: BTreeSet<String>,
    violations: Vec<String>,
}

/// Returns what is wrong with an event and all its sections.
pub(crate) fn check_event(keyspace: &mut Keyspace<'_>, names: &EventNames) -> Result<Vec<String>> {
    let mut findings = Findings::default();
    for section in sections(keyspace, names)? {
        let names = SectionNames::new(names.clone(), &section)?;
        findings.examine(keyspace, &names)?;
    }
    findings.bookings_without_seats(keyspace, &names.prefix, |found| found.of == *names)?;
    let event = format!("event {}", names.event);
    let counts = SeatCounts::load(keyspace, names.stats_key())?;
    let sum = findings.counts;
    findings.compare_counts(&event, "sections", sum, counts);
    let buyers = all_integers(keyspace, &names.buyers_key())?;
    let everybody: BTreeSet<String> = findings
        .buyers
        .keys()
        .chain(buyers.keys())
        .cloned()
        .collect();
    for buyer in everybody {
        let found = findings.buyers.get(&buyer).copied().unwrap_or_default();
        let counted = buyers.get(&buyer).copied().unwrap_or_default();
        if found != counted {
            findings.note(format!(
                "{event}: buyer {buyer} has {found} seats, but {counted} are counted"
            ));
        }
    }
    Ok(findings.violations)
}

/// Returns what is wrong with a section.
pub(crate) fn check_section(keyspace: &Keyspace<'_>, names: &SectionNames) -> Result<Vec<String>> {
    let mut findings = Findings::default();
    findings.examine(keyspace, names)?;
    findings.bookings_without_seats(keyspace, &names.of.prefix, |found| found == names)?;
    Ok(findings.violations)
}

impl Findings {
    fn note(&mut self, violation: String) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(violation);
        }
    }

    fn compare_counts(&mut self, what: &str, whose: &str, found: SeatCounts, counted: SeatCounts) {
        let pairs = [
            ("available", found.available, counted.available),
            ("reserved", found.reserved, counted.reserved),
            ("sold", found.sold, counted.sold),
            ("total", found.total, counted.total),
        ];
        for (name, found, counted) in pairs {
            if found != counted {
                self.note(format!(
                    "{what}: {found} seats of the {whose} are {name}, but {counted} are counted"
                ));
            }
        }
    }

    /// Looks at a section and adds what it finds.
    fn examine(&mut self, keyspace: &Keyspace<'_>, names: &SectionNames) -> Result<()> {
        let section = Section::load(keyspace, names)?;
        let what = format!("section {}", names.section);
        let bytes = section.bytes(keyspace)?;
        let grid = section.grid(&bytes);
        let [available, reserved, sold, blocked] = grid.count().map(|n| n as i64);
        let total = available + reserved + sold + blocked;
        let counts = SeatCounts {
            available,
            reserved,
            sold,
            total,
        };
        self.compare_counts(&what, "map", counts, section.totals.section);
        self.counts = self.counts.plus(counts);
        let mut bookings: BTreeMap<String, Vec<(Seat, SeatState, Owner)>> = BTreeMap::new();
        for row in 1..=section.config.rows as u32 {
            for (seat, state, owner) in self.row(keyspace, &section, &bytes, row)? {
                *self.buyers.entry(owner.buyer.clone()).or_default() += 1;
                let booking = bookings.entry(owner.booking.clone()).or_default();
                booking.push((seat, state, owner));
            }
        }
        for (booking, seats) in bookings {
            self.booking(keyspace, names, &booking, &seats)?;
            self.bookings.insert(booking);
        }
        Ok(())
    }

    /// Returns the seats of a row that somebody has, if that is as it should be.
    fn row(
        &mut self,
        keyspace: &Keyspace<'_>,
        section: &Section,
        bytes: &[u8],
        row: u32,
    ) -> Result<Vec<(Seat, SeatState, Owner)>> {
        let what = format!("section {}", section.names.section);
        let mut owners = owners_of_row(keyspace, &section.names, row)?;
        let mut owned = Vec::new();
        for number in 1..=section.config.seats_per_row as u32 {
            let seat = Seat { row, number };
            let index = seat.index(section.config.seats_per_row);
            let state = SeatState::of_bits(section.grid(bytes).state(index) as u8);
            // A row of available seats needs no look at any of them.
            let owner = match owners.is_empty() {
                true => None,
                false => owners.remove(number.to_string().as_bytes()),
            };
            match (state, owner.map(|owner| json::read(&owner))) {
                (SeatState::Available, None) => {}
                (SeatState::Blocked, _) => self.note(format!("{what}: seat {seat} is blocked")),
                (SeatState::Available, Some(_)) => {
                    self.note(format!(
                        "{what}: seat {seat} is available, but has an owner"
                    ));
                }
                (_, Some(Some(owner))) => owned.push((seat, state, owner)),
                (_, Some(None)) => {
                    self.note(format!("{what}: the owner of seat {seat} is not one"));
                }
                (_, None) => self.note(format!("{what}: seat {seat} is {state} without owner")),
            }
        }
        for name in owners.keys() {
            let name = String::from_utf8_lossy(name);
            self.note(format!("{what}: {row}-{name} has an owner, but is no seat"));
        }
        Ok(owned)
    }

    /// Compares a booking with the seats that it has.
    fn booking(
        &mut self,
        keyspace: &Keyspace<'_>,
        names: &SectionNames,
        id: &str,
        seats: &[(Seat, SeatState, Owner)],
    ) -> Result<()> {
        let booking = Booking::load(keyspace, &names.of.prefix, id)?;
        let is_sold = seats.iter().all(|(_, state, _)| *state == SeatState::Sold);
        let Some(booking) = booking else {
            // One that is sold is forgotten some time later.
            if !is_sold {
                self.note(format!("booking {id} has reserved seats, but is not there"));
            }
            return Ok(());
        };
        let state = state_of_seats(booking.status);
        let agrees = seats.iter().all(|(_, found, owner)| {
            Some(*found) == state && owner.buyer == booking.buyer && *names == booking.names
        });
        let found: BTreeSet<Seat> = seats.iter().map(|(seat, ..)| *seat).collect();
        let wanted: BTreeSet<Seat> = booking.seats.iter().copied().collect();
        if !agrees || found != wanted {
            self.note(format!("booking {id} does not agree with the seats it has"));
        }
        Ok(())
    }

    /// Looks for bookings in these places that should have seats and have none. Only a walk over
    /// all keys finds them: nothing leads from a section to its bookings but the seats.
    fn bookings_without_seats(
        &mut self,
        keyspace: &Keyspace<'_>,
        prefix: &str,
        is_here: impl Fn(&SectionNames) -> bool,
    ) -> Result<()> {
        for key in keyspace.keys() {
            let key = key?;
            let id = match split_booking_key(&key) {
                Some((of, id)) if of == prefix && !self.bookings.contains(id) => id,
                _ => continue,
            };
            let booking = match Booking::load(keyspace, prefix, id) {
                Ok(Some(booking)) if is_here(&booking.names) => booking,
                // What cannot be read says nothing of this place: others may have such keys too.
                Ok(_) | Err(CommandError::Refused(_)) => continue,
                Err(failure) => return Err(failure),
            };
            if let Some(state) = state_of_seats(booking.status) {
                self.note(format!("booking {id} is {state}, but has no seats"));
            }
        }
        Ok(())
    }
}

/// Returns the state of the seats of a booking; `None` if it has none any more.
fn state_of_seats(status: Status) -> Option<SeatState> {
    match status {
        Status::Reserved => Some(SeatState::Reserved),
        Status::Sold => Some(SeatState::Sold),
        Status::Released | Status::Expired => None,
    }
}
