//! A seat of a section, and the states it can be in.

use std::fmt;

use serde::{Deserialize, Serialize};
use trefoil_state::parse_integer;

use super::refusal;
use crate::Result;

/// What a seat is, as two bits say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeatState {
    Available = 0,
    Reserved = 1,
    Sold = 2,
    /// Nothing here makes a seat so, but a plain command may.
    Blocked = 3,
}

impl SeatState {
    /// Returns what the lowest two bits say.
    pub(super) fn of_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Available,
            1 => Self::Reserved,
            2 => Self::Sold,
            _ => Self::Blocked,
        }
    }
}

impl fmt::Display for SeatState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Available => "available",
            Self::Reserved => "reserved",
            Self::Sold => "sold",
            Self::Blocked => "blocked",
        })
    }
}

/// A seat: its row and its number in the row, both from 1 on. It is written `row-number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Seat {
    pub(crate) row: u32,
    pub(crate) number: u32,
}

impl Seat {
    /// Returns the seat that a text says.
    pub(crate) fn parse(text: &[u8]) -> Result<Self> {
        read(text).ok_or_else(|| refusal::no_seat_text(text))
    }

    /// Returns where it is among all seats, row after row.
    pub(super) fn index(self, seats_per_row: usize) -> usize {
        (self.row as usize - 1) * seats_per_row + self.number as usize - 1
    }

    /// Returns the seat at this place among all seats.
    pub(super) fn at(index: usize, seats_per_row: usize) -> Self {
        Self {
            row: (index / seats_per_row) as u32 + 1,
            number: (index % seats_per_row) as u32 + 1,
        }
    }
}

fn read(text: &[u8]) -> Option<Seat> {
    let dash = text.iter().position(|byte| *byte == b'-')?;
    let part = |text| {
        let number = parse_integer(text).filter(|number| *number > 0)?;
        u32::try_from(number).ok()
    };
    Some(Seat {
        row: part(&text[..dash])?,
        number: part(&text[dash + 1..])?,
    })
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.row, self.number)
    }
}

impl From<Seat> for String {
    fn from(seat: Seat) -> Self {
        seat.to_string()
    }
}

impl TryFrom<String> for Seat {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        read(text.as_bytes()).ok_or("not a seat")
    }
}
