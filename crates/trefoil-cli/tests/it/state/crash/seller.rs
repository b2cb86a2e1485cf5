//! A client that reserves and sells seats until the server is gone, and remembers what it was told.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::{Resp, Server, Value, encode};

pub(super) const RESERVED: u64 = 1;
pub(super) const SOLD: u64 = 2;
/// How many seats a row has.
pub(super) const ROW: u64 = 100;
/// How many seats a seller has for one round.
const SEATS: u64 = 400;

/// One step of a seat's life, and whether it was acknowledged.
pub(super) struct Sent {
    pub(super) seat: u64,
    pub(super) state: u64,
    pub(super) is_acknowledged: bool,
}

pub(super) struct Seller {
    client: Resp,
    first: u64,
}

impl Seller {
    /// Every seller has seats of its own in each round.
    pub(super) fn new(server: &Server, round: u64, number: usize) -> Self {
        Self {
            client: server.resp(),
            first: (round * super::SELLERS as u64 + number as u64) * SEATS,
        }
    }

    pub(super) fn run(mut self, stop: &AtomicBool) -> Vec<Sent> {
        let mut sent = Vec::new();
        for seat in self.first..self.first + SEATS {
            let last = if seat.is_multiple_of(3) {
                SOLD
            } else {
                RESERVED
            };
            for state in RESERVED..=last {
                if stop.load(Ordering::SeqCst) {
                    return sent;
                }
                let is_acknowledged = self.advance(seat, state).is_ok();
                sent.push(Sent {
                    seat,
                    state,
                    is_acknowledged,
                });
                if !is_acknowledged {
                    return sent;
                }
            }
        }
        sent
    }

    /// Reserves a free seat or sells a reserved one: one transaction, sent as one packet.
    fn advance(&mut self, seat: u64, state: u64) -> io::Result<()> {
        let (from, to, event) = match state {
            RESERVED => ("available", "reserved", "Reserved"),
            _ => ("reserved", "sold", "Sold"),
        };
        let place = format!("#{seat}");
        let value = state.to_string();
        let row = format!("seat_meta:{}", seat / ROW);
        let number = (seat % ROW).to_string();
        let data = format!(r#"{{"seat":{seat},"state":{state}}}"#);
        let commands: [&[&str]; 7] = [
            &["MULTI"],
            &["BITFIELD", "seats", "SET", "u2", &place, &value],
            &["HINCRBY", "stats", from, "-1"],
            &["HINCRBY", "stats", to, "1"],
            &["HSET", &row, &number, &data],
            &["EVENT.APPEND", "section-1", event, &data],
            &["EXEC"],
        ];
        let mut request = Vec::new();
        commands
            .iter()
            .for_each(|words| encode(words, &mut request));
        self.client.send(&request)?;
        let mut last = Value::Null;
        for _ in commands {
            last = self.client.receive()?;
        }
        let replies = last.elements().unwrap_or_else(|| panic!("EXEC: {last:?}"));
        let before = Value::Array(vec![Value::Integer(state as i64 - 1)]);
        assert_eq!(replies[0], before, "the seat was in the state before");
        assert_eq!(replies[4].elements().map(<[_]>::len), Some(2), "{last:?}");
        Ok(())
    }
}
