//! A venue: 100 sections of 100 rows of 100 seats, and who wants which of them.

use anyhow::Result;
use fastrand::Rng;

use crate::resp::server::{Server, System, ask};
use crate::resp::wire::put_command;

const SECTIONS: usize = 100;
const ROWS: usize = 100;
/// How many seats a row has.
pub(super) const ROW_SEATS: usize = 100;
const SECTION_SEATS: usize = ROWS * ROW_SEATS;
/// Two bits per seat.
const SECTION_BYTES: usize = SECTION_SEATS / 4;

/// A venue of which nothing is reserved yet.
pub(super) struct Venue {
    pub(super) event: String,
    /// How many adjacent seats are wanted together.
    pub(super) seats: usize,
    /// The first seats of all blocks, in the order in which they are wanted.
    blocks: Vec<u32>,
}

/// Seats next to each other in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) section: usize,
    /// The number of the first seat in the section.
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Block {
    pub(super) fn section(self) -> String {
        format!("S{}", self.section + 1)
    }

    /// The row, counted from 1.
    pub(super) fn row(self) -> usize {
        self.first / ROW_SEATS + 1
    }

    /// The numbers of the seats in their row, counted from 1.
    pub(super) fn seats(self) -> impl Iterator<Item = usize> {
        let first = self.first % ROW_SEATS + 1;
        first..first + self.count
    }

    /// The numbers of the seats in their section, counted from 0.
    pub(super) fn numbers(self) -> impl Iterator<Item = usize> {
        self.first..self.first + self.count
    }
}

impl Venue {
    /// Opens the sections of a venue with a number of its own.
    pub(super) fn open(server: &Server, number: usize, seats: usize) -> Result<Self> {
        let venue = Self::new(format!("E{number}"), seats);
        let mut socket = server.connect()?;
        for section in 0..SECTIONS {
            let section = Block {
                section,
                first: 0,
                count: 0,
            }
            .section();
            let (mut request, replies) = (Vec::new(), venue.opening(server.system, &section));
            for words in &replies {
                let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
                put_command(&mut request, &words);
            }
            ask(&mut socket, &request, replies.len())?;
        }
        Ok(venue)
    }

    fn new(event: String, seats: usize) -> Self {
        let per_row = ROW_SEATS / seats;
        let n_blocks = (SECTIONS * ROWS * per_row) as u32;
        let first = |block: u32| {
            let (row, place) = (block as usize / per_row, block as usize % per_row);
            (row * ROW_SEATS + place * seats) as u32
        };
        let mut blocks: Vec<u32> = (0..n_blocks).map(first).collect();
        let mut random = Rng::with_seed(seats as u64);
        for last in (1..blocks.len()).rev() {
            blocks.swap(last, random.usize(..last + 1));
        }
        Self {
            event,
            seats,
            blocks,
        }
    }

    /// The commands that open a section.
    fn opening(&self, system: System, section: &str) -> Vec<Vec<String>> {
        let words = |text: String| text.split(' ').map(str::to_owned).collect();
        let event = &self.event;
        match system {
            System::Trefoil => vec![words(format!(
                "SEATS.INIT {event} {section} ROWS {ROWS} SEATS {ROW_SEATS} PRICE 2800 \
                 MAXBOOKING {}",
                self.seats
            ))],
            System::Redis | System::Valkey => vec![
                words(format!(
                    "SETBIT seats_bf:{event}:{section} {} 0",
                    SECTION_BYTES * 8 - 1
                )),
                words(format!(
                    "HSET section_config:{event}:{section} rows {ROWS} seats_per_row {ROW_SEATS}"
                )),
                words(format!(
                    "HSET section_stats:{event}:{section} section_id {section} event_id {event} \
                     available {SECTION_SEATS} reserved 0 sold 0 total {SECTION_SEATS}"
                )),
                words(format!(
                    "HINCRBY event_stats:{event} available {SECTION_SEATS}"
                )),
                words(format!("ZADD event_sections:{event} 0 {section}")),
            ],
        }
    }

    /// The seats that are wanted at a place in the order; `None` if all are sold.
    pub(super) fn block(&self, place: usize) -> Option<Block> {
        let first = *self.blocks.get(place)? as usize;
        Some(Block {
            section: first / SECTION_SEATS,
            first: first % SECTION_SEATS,
            count: self.seats,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_seat_is_wanted_twice_and_no_block_crosses_a_row() {
        for seats in [1, 3, 4] {
            let venue = Venue::new("E1".to_owned(), seats);
            let mut wanted = HashSet::new();
            for place in 0.. {
                let Some(block) = venue.block(place) else {
                    break;
                };
                assert!(block.section < SECTIONS);
                assert!(block.seats().all(|seat| (1..=ROW_SEATS).contains(&seat)));
                for number in block.numbers() {
                    assert_eq!(number / ROW_SEATS + 1, block.row());
                    assert!(wanted.insert((block.section, number)));
                }
            }
            assert_eq!(wanted.len(), SECTIONS * ROWS * (ROW_SEATS / seats) * seats);
        }
    }
}
