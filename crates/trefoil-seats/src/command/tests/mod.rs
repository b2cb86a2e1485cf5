//! Tests of the commands on seats.

mod answers;
mod document;
mod holds;
mod lessons;
mod random;
mod refusals;

use std::collections::BTreeMap;

use trefoil_state::testing::{World, text};
use trefoil_state::{Commands, Reply};

use crate::{SEATS, SeatValue, replay_seats};

/// When the tests begin, in milliseconds since 1970.
const NOW: u64 = 1_000_000;

/// Returns a world that knows seats.
fn new_world() -> World {
    World::new(Commands::redis().with(&SEATS))
}

/// Returns a world with section A-1 of event 1: three rows of four seats at 50 each.
fn world() -> World {
    let mut world = new_world();
    world.moment.now = NOW;
    world.run("SEATS.INIT 1 A-1 ROWS 3 SEATS 4 PRICE 50");
    world
}

/// Returns the types of all events so far.
fn types(world: &World) -> Vec<&str> {
    let events = world.events.iter();
    events.map(|event| event.event_type.as_str()).collect()
}

/// Checks that nothing contradicts anything, and that the events lead to what is stored.
fn assert_sound(world: &mut World, event: &str) {
    assert_eq!(text(&world.run(&format!("SEATS.CHECK {event}"))), "[]");
    let events = world.events.clone();
    let events = events
        .iter()
        .map(|event| (event.event_type.as_str(), event.data.bytes().as_ref()));
    let replayed = replay_seats(events).unwrap();
    let stored = stored(world, replayed.keys());
    assert_eq!(stored, replayed);
    let Reply::Array(keys) = world.run("KEYS *:*") else {
        panic!("no keys");
    };
    let is_of_section = |key: &&Reply| !text(key).contains("booking:");
    assert_eq!(keys.iter().filter(is_of_section).count(), replayed.len());
}

/// Returns what is stored under keys.
fn stored<'k>(
    world: &mut World,
    keys: impl Iterator<Item = &'k String>,
) -> BTreeMap<String, SeatValue> {
    let pairs = keys.map(|key| (key.clone(), value(world, key)));
    pairs.collect()
}

fn value(world: &mut World, key: &str) -> SeatValue {
    match text(&world.run(&format!("TYPE {key}"))).as_str() {
        "+string" => match world.run(&format!("GET {key}")) {
            Reply::Bulk(bytes) => SeatValue::String(bytes),
            other => panic!("{other:?}"),
        },
        "+hash" => match world.run(&format!("HGETALL {key}")) {
            Reply::Map(fields) => {
                let fields = fields.iter();
                SeatValue::Hash(
                    fields
                        .map(|(name, value)| (text(name), text(value)))
                        .collect(),
                )
            }
            other => panic!("{other:?}"),
        },
        "+zset" => match world.run(&format!("ZRANGEBYSCORE {key} 0 0")) {
            Reply::Array(members) => SeatValue::Members(members.iter().map(text).collect()),
            other => panic!("{other:?}"),
        },
        other => panic!("{key} is {other}"),
    }
}
