//! The seats of a section, to be shown.

use std::ops::RangeInclusive;

use trefoil_state::Keyspace;

use super::json;
use super::owners::{Owner, owners_of_row};
use super::seat::{Seat, SeatState};
use super::section::Section;
use crate::Result;

/// A seat as it is shown.
#[derive(Debug)]
pub(crate) struct MappedSeat {
    /// 0: available, 1: reserved, 2: sold.
    pub(crate) state: usize,
    /// Who has it, if that is to be shown.
    pub(crate) owner: Option<Option<Owner>>,
}

impl Section {
    /// Returns the seats of some rows, from one number to another.
    pub(crate) fn rows(
        &self,
        keyspace: &Keyspace<'_>,
        rows: RangeInclusive<u32>,
        numbers: RangeInclusive<u32>,
        with_owners: bool,
    ) -> Result<Vec<Vec<MappedSeat>>> {
        let bytes = self.bytes(keyspace)?;
        let grid = self.grid(&bytes);
        let row = |row: u32| {
            let owners = match with_owners {
                true => Some(owners_of_row(keyspace, &self.names, row)?),
                false => None,
            };
            let seat = |number: u32| {
                let seat = Seat { row, number };
                let state = grid.state(seat.index(self.config.seats_per_row));
                let owner = owners.as_ref().map(|owners| {
                    let is_owned = state != SeatState::Available as usize;
                    let owner = owners.get(number.to_string().as_bytes());
                    owner
                        .filter(|_| is_owned)
                        .and_then(|owner| json::read(owner))
                });
                MappedSeat { state, owner }
            };
            Ok(numbers.clone().map(seat).collect())
        };
        rows.map(row).collect()
    }
}
