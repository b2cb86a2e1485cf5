//! What must be, may be and must not be stored, from what the sellers were told.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::seller::{RESERVED, ROW, SOLD, Sent};
use crate::harness::{Resp, Value};

/// How many events are read at once.
const PAGE: usize = 1_000;

#[derive(Default)]
pub(super) struct Books {
    /// The state of each seat: the one that was acknowledged, and the one that may have followed.
    seats: BTreeMap<u64, (u64, Option<u64>)>,
    /// The states of seats, from the events that were read.
    told: BTreeMap<u64, u64>,
    n_events: usize,
    pub(super) n_acknowledged: usize,
    /// How many transactions took effect although nobody was told.
    pub(super) n_survivors: usize,
}

impl std::fmt::Debug for Books {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            n_acknowledged: told,
            n_survivors: others,
            ..
        } = self;
        write!(
            f,
            "{told} transactions acknowledged, {others} more took effect"
        )
    }
}

impl Books {
    pub(super) fn take(&mut self, sent: Vec<Sent>) {
        for Sent {
            seat,
            state,
            is_acknowledged,
        } in sent
        {
            let entry = self.seats.entry(seat).or_default();
            match is_acknowledged {
                true => *entry = (state, None),
                false => entry.1 = Some(state),
            }
            self.n_acknowledged += usize::from(is_acknowledged);
        }
    }

    /// Holds what is stored against the books, and settles what was open.
    pub(super) fn check(&mut self, client: &mut Resp) {
        self.read_events(client);
        let states = bits(client);
        let metadata = metadata(client);
        for (seat, (acknowledged, open)) in &mut self.seats {
            let state = states.get(seat).copied().unwrap_or_default();
            let is_possible = state == *acknowledged || Some(state) == *open;
            assert!(
                is_possible,
                "seat {seat} is {state}, not {acknowledged} or {open:?}"
            );
            let told = self.told.get(seat).copied().unwrap_or_default();
            assert_eq!(told, state, "the events of seat {seat}");
            let noted = metadata.get(seat).copied().unwrap_or_default();
            assert_eq!(noted, state, "the metadata of seat {seat}");
            self.n_survivors += usize::from(state != *acknowledged);
            (*acknowledged, *open) = (state, None);
        }
        for seat in states.keys().chain(metadata.keys()).chain(self.told.keys()) {
            assert!(self.seats.contains_key(seat), "seat {seat} is from nowhere");
        }
        self.check_statistics(client, &states);
    }

    fn check_statistics(&self, client: &mut Resp, states: &BTreeMap<u64, u64>) {
        let statistics = client.line("HMGET stats available reserved sold");
        let number = |value: &Value| match value {
            Value::NilBulk => 0,
            value => String::from_utf8_lossy(value.bytes()).parse().unwrap(),
        };
        let numbers: Vec<i64> = statistics.elements().unwrap().iter().map(number).collect();
        let count = |state| states.values().filter(|found| **found == state).count() as i64;
        let expected = [-(states.len() as i64), count(RESERVED), count(SOLD)];
        assert_eq!(numbers, expected, "available, reserved, sold");
    }

    /// Reads the events that are new; a seat is reserved once and then sold once.
    fn read_events(&mut self, client: &mut Resp) {
        loop {
            let (from, count) = (self.n_events.to_string(), PAGE.to_string());
            let words = ["EVENT.READ", "section-1", "FROM", &from, "COUNT", &count];
            let page = client.call(&words);
            let events = page.elements().unwrap();
            for event in events {
                let data: Json = serde_json::from_slice(data(event)).unwrap();
                let seat = data["seat"].as_u64().unwrap();
                let state = self.told.entry(seat).or_default();
                *state += 1;
                assert_eq!(data["state"], *state, "the events of seat {seat}");
            }
            self.n_events += events.len();
            if events.len() < PAGE {
                return;
            }
        }
    }
}

/// The body of an event, which is a list of names and values.
fn data(event: &Value) -> &[u8] {
    let fields = event.elements().unwrap();
    let mut pairs = fields
        .chunks(2)
        .filter(|pair| pair[0] == Value::bulk("data"));
    pairs.next().unwrap()[1].bytes()
}

/// The states of all seats that are not available, from their bits.
fn bits(client: &mut Resp) -> BTreeMap<u64, u64> {
    let bytes = client.line("GETRANGE seats 0 -1");
    let bytes = bytes.bytes().iter();
    let states = bytes.flat_map(|byte| [6, 4, 2, 0].map(|shift| u64::from(byte >> shift & 3)));
    (0..).zip(states).filter(|(_, state)| *state != 0).collect()
}

/// The states of all seats that have metadata.
fn metadata(client: &mut Resp) -> BTreeMap<u64, u64> {
    let mut states = BTreeMap::new();
    for key in client.line("KEYS seat_meta:*").elements().unwrap() {
        let row: u64 = number(&key.bytes()["seat_meta:".len()..]);
        let all = client.call(&[b"HGETALL", key.bytes()]);
        for pair in all.elements().unwrap().chunks(2) {
            let data: Json = serde_json::from_slice(pair[1].bytes()).unwrap();
            let seat = row * ROW + number(pair[0].bytes());
            assert_eq!(data["seat"], seat);
            states.insert(seat, data["state"].as_u64().unwrap());
        }
    }
    states
}

fn number(digits: &[u8]) -> u64 {
    String::from_utf8_lossy(digits).parse().unwrap()
}
