//! The operations that are measured over RESP, as bytes that are made before.
//!
//! - Strings: 100,000 keys with values of 32 bytes.
//! - Seats: a venue of 100 sections with 50,000 seats each, under the keys of a ticketing system: two
//!   bits per seat in one map per section, a hash of statistics per section, a hash of owners per
//!   row.

use clap::ValueEnum;
use fastrand::Rng;

use super::requests::Requests;

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Operation {
    /// Sets a string.
    Set,
    /// Reads a string.
    Get,
    /// Adds to a field of a hash.
    Hincrby,
    /// Sets a field of a hash.
    Hset,
    /// Sets two bits of a string.
    Bitfield,
    /// Reserves a seat as one transaction: its state, the statistics, its owner.
    Reserve,
    /// The same, with an event appended by the same transaction.
    ReserveEvent,
}

/// How many keys the strings have.
const KEYS: u64 = 100_000;
const VALUE_BYTES: usize = 32;
/// How many operations are made before the measurement; they are repeated as often as need be.
const OPERATIONS: usize = 100_000;

/// The venue.
const SECTIONS: u64 = 100;
const ROWS: u64 = 1000;
const SEATS_PER_ROW: u64 = 50;
/// The states of a seat that is not available.
pub(crate) const RESERVED: &[u8] = b"1";
const SOLD: &[u8] = b"2";
/// How many seats a section has.
pub(crate) const SEATS: u64 = ROWS * SEATS_PER_ROW;

impl Operation {
    pub(crate) const ALL: [Self; 7] = [
        Self::Set,
        Self::Get,
        Self::Hincrby,
        Self::Hset,
        Self::Bitfield,
        Self::Reserve,
        Self::ReserveEvent,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Set => "SET of 32 bytes",
            Self::Get => "GET of 32 bytes",
            Self::Hincrby => "HINCRBY",
            Self::Hset => "HSET of an owner",
            Self::Bitfield => "BITFIELD SET u2 on maps of 50,000 seats",
            Self::Reserve => "Reservation as MULTI/EXEC",
            Self::ReserveEvent => "Reservation as MULTI/EXEC with its event",
        }
    }

    /// Whether only Trefoil can do it.
    pub(crate) fn has_events(self) -> bool {
        self == Self::ReserveEvent
    }

    /// Operations as bytes to send, the same for every system. The second half writes other values to
    /// the same places as the first, so every write changes something, however often all are sent:
    /// systems differ in what they do for a write that changes nothing.
    pub(crate) fn requests(self) -> Requests {
        let mut requests = Requests::new();
        for half in [0, 1] {
            let mut random = Rng::with_seed(self as u64);
            let mut values = Rng::with_seed(half);
            let first = half as usize * OPERATIONS / 2;
            for number in first..first + OPERATIONS / 2 {
                self.put(&mut requests, &mut random, &mut values, number);
            }
        }
        requests
    }

    fn put(self, requests: &mut Requests, random: &mut Rng, values: &mut Rng, number: usize) {
        let is_second_half = number >= OPERATIONS / 2;
        match self {
            Self::Set => put_set(requests, values, &key(random.u64(..KEYS))),
            Self::Get => requests.command(&[b"GET", key(random.u64(..KEYS)).as_bytes()]),
            Self::Hincrby => {
                let seat = Seat::any(random);
                requests.command(&[b"HINCRBY", seat.stats().as_bytes(), b"reserved", b"1"]);
            }
            Self::Hset => {
                let seat = Seat::any(random);
                seat.put_owner(requests, owner(number).as_bytes());
            }
            Self::Bitfield => {
                let (seat, first) = (Seat::any(random), random.u64(..4));
                let state = (first + u64::from(is_second_half)) % 4;
                seat.put_state(requests, state.to_string().as_bytes());
            }
            Self::Reserve | Self::ReserveEvent => {
                let seat = Seat::any(random);
                let state = if is_second_half { SOLD } else { RESERVED };
                let booking = (number, state);
                put_reservation(requests, &[seat], booking, self.has_events());
            }
        }
        requests.end_operation();
    }
}

/// Every key once, for those that are read.
pub(crate) fn preparation() -> Requests {
    let mut random = Rng::with_seed(1);
    let mut requests = Requests::new();
    for number in 0..KEYS {
        put_set(&mut requests, &mut random, &key(number));
        requests.end_operation();
    }
    for number in 0..SECTIONS {
        let seat = Seat {
            section: number,
            number: SEATS - 1,
        };
        seat.put_state(&mut requests, b"0");
        let (event, section) = ("1", seat.section());
        requests.command(&[
            b"HSET",
            seat.stats().as_bytes(),
            b"section_id",
            section.as_bytes(),
            b"event_id",
            event.as_bytes(),
            b"available",
            SEATS.to_string().as_bytes(),
            b"reserved",
            b"0",
            b"sold",
            b"0",
            b"total",
            SEATS.to_string().as_bytes(),
            b"updated_at",
            b"1759730000",
        ]);
        requests.end_operation();
    }
    requests
}

fn key(number: u64) -> String {
    format!("key:{number:012}")
}

fn put_set(requests: &mut Requests, values: &mut Rng, key: &str) {
    let digits = b"0123456789abcdef";
    let value: Vec<u8> = (0..VALUE_BYTES)
        .map(|_| digits[values.usize(..16)])
        .collect();
    requests.command(&[b"SET", key.as_bytes(), &value]);
}

/// A seat of the venue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seat {
    pub(crate) section: u64,
    pub(crate) number: u64,
}

impl Seat {
    pub(crate) fn any(random: &mut Rng) -> Self {
        Self {
            section: random.u64(..SECTIONS),
            number: random.u64(..SEATS),
        }
    }

    fn section(self) -> String {
        let letter = char::from(b'A' + (self.section / 10) as u8);
        format!("{letter}-{}", self.section % 10 + 1)
    }

    pub(crate) fn states(self) -> String {
        format!("seats_bf:1:{}", self.section())
    }

    pub(crate) fn stats(self) -> String {
        format!("section_stats:1:{}", self.section())
    }

    fn row(self) -> u64 {
        self.number / SEATS_PER_ROW + 1
    }

    fn owners(self) -> String {
        format!("seat_meta:1:{}:{}", self.section(), self.row())
    }

    fn place(self) -> String {
        format!("#{}", self.number)
    }

    fn put_state(self, requests: &mut Requests, state: &[u8]) {
        let (key, place) = (self.states(), self.place());
        requests.command(&[
            b"BITFIELD",
            key.as_bytes(),
            b"SET",
            b"u2",
            place.as_bytes(),
            state,
        ]);
    }

    fn put_owner(self, requests: &mut Requests, owner: &[u8]) {
        let (owners, field) = (self.owners(), (self.number % SEATS_PER_ROW + 1).to_string());
        requests.command(&[b"HSET", owners.as_bytes(), field.as_bytes(), owner]);
    }

    pub(crate) fn put_get(self, requests: &mut Requests) {
        let (key, place) = (self.states(), self.place());
        requests.command(&[b"BITFIELD", key.as_bytes(), b"GET", b"u2", place.as_bytes()]);
    }
}

/// The booking with a number, and who made it.
fn ids(number: usize) -> (String, String) {
    let buyer = format!("buyer:{}", number % 1000);
    (format!("booking:{number}"), buyer)
}

/// What is kept of the owner of a seat.
fn owner(number: usize) -> String {
    let (booking, buyer) = ids(number);
    format!(
        r#"{{"buyer_id":"{buyer}","booking_id":"{booking}","price":2800,"reserved_at":1759730000}}"#
    )
}

/// Reserves seats of one section as one transaction: by a booking with a number, which brings them
/// into a state.
pub(crate) fn put_reservation(
    requests: &mut Requests,
    seats: &[Seat],
    (number, state): (usize, &[u8]),
    has_event: bool,
) {
    let Some(first) = seats.first() else { return };
    let (stats, count) = (first.stats(), seats.len().to_string());
    let (booking, buyer) = ids(number);
    requests.command(&[b"MULTI"]);
    for seat in seats {
        seat.put_state(requests, state);
    }
    let less = format!("-{count}");
    requests.command(&[b"HINCRBY", stats.as_bytes(), b"available", less.as_bytes()]);
    requests.command(&[b"HINCRBY", stats.as_bytes(), b"reserved", count.as_bytes()]);
    for seat in seats {
        seat.put_owner(requests, owner(number).as_bytes());
    }
    if has_event {
        let section = first.section();
        let stream = format!("seats-1:{section}");
        let data = format!(
            r#"{{"booking":"{booking}","buyer":"{buyer}","seats":["{}-{}"],"price":2800}}"#,
            first.row(),
            first.number % SEATS_PER_ROW + 1
        );
        let section = format!("section:1:{section}");
        requests.command(&[
            b"EVENT.APPEND",
            stream.as_bytes(),
            b"SeatsReserved",
            data.as_bytes(),
            b"TAG",
            b"event:1",
            b"TAG",
            section.as_bytes(),
            b"TAG",
            booking.as_bytes(),
            b"TAG",
            buyer.as_bytes(),
        ]);
    }
    requests.command(&[b"EXEC"]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_half_writes_other_values_to_the_same_places() {
        for operation in Operation::ALL {
            let requests = operation.requests();
            let (mut same, mut others) = (0, 0);
            for number in 0..OPERATIONS / 2 {
                let [first, second] =
                    [number, number + OPERATIONS / 2].map(|number| requests.operation(number));
                match first == second {
                    true => same += 1,
                    false => others += 1,
                }
                // The key comes first, and is as long.
                let key = first.len().min(30);
                assert_eq!(first[..key], second[..key], "{operation:?}");
            }
            // What is read is not changed, and what is counted always is.
            let is_same = matches!(operation, Operation::Get | Operation::Hincrby);
            let expected = if is_same {
                (OPERATIONS / 2, 0)
            } else {
                (0, OPERATIONS / 2)
            };
            assert_eq!((same, others), expected, "{operation:?}");
        }
    }
}
