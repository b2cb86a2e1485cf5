//! The keys of seats, compared with what their events lead to.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use trefoil::seats::{SeatValue, replay_seats};

use crate::harness::{Client, Resp, Server, Value};

/// How many events are read at a time.
const PAGE: usize = 5000;
/// How long holds that are due may take to end.
const STILL: Duration = Duration::from_secs(20);

/// An event of a section.
pub(super) struct SeatEvent {
    pub(super) event_type: String,
    pub(super) data: Json,
}

/// Compares all keys of seats with what replaying the events leads to, and returns the events.
/// Nobody else may write; holds may end meanwhile.
#[track_caller]
pub(super) fn check(server: &Server) -> Vec<SeatEvent> {
    let (mut client, mut resp) = (server.client(), server.resp());
    let started = Instant::now();
    loop {
        let head = head(&mut client);
        let events = events(&mut client);
        let stored = keys(&mut resp);
        if head == self::head(&mut client) {
            compare(&events, &stored);
            return events;
        }
        assert!(started.elapsed() < STILL, "holds do not come to an end");
        thread::sleep(Duration::from_millis(5));
    }
}

fn head(client: &mut Client) -> u64 {
    client.rpc(&json!(["events.head"])).ok().as_u64().unwrap()
}

/// The events of all sections.
pub(super) fn events(client: &mut Client) -> Vec<SeatEvent> {
    let mut events = Vec::new();
    let mut position = 1;
    loop {
        let page = json!(["category.get", "seats", {"position": position, "batchSize": PAGE}]);
        let rows = client.rpc(&page).ok();
        let rows = rows.as_array().unwrap();
        events.extend(rows.iter().map(|row| SeatEvent {
            event_type: row[2].as_str().unwrap().to_owned(),
            data: row[5].clone(),
        }));
        match rows.last() {
            Some(last) if rows.len() == PAGE => position = last[4].as_u64().unwrap() + 1,
            _ => return events,
        }
    }
}

/// What is stored under every key but bookings.
fn keys(resp: &mut Resp) -> BTreeMap<String, SeatValue> {
    let names = resp.line("KEYS *");
    let names = names.elements().unwrap().iter().map(text);
    let names: Vec<String> = names.filter(|name| !name.starts_with("booking:")).collect();
    let mut stored = BTreeMap::new();
    for name in names {
        let value = match name.split(':').next().unwrap() {
            "seats_bf" => SeatValue::String(resp.call(&["GET", &name]).bytes().to_vec().into()),
            "event_sections" => {
                let members = resp.call(&["ZRANGE", &name, "0", "-1"]);
                let members: BTreeSet<String> =
                    members.elements().unwrap().iter().map(text).collect();
                SeatValue::Members(members)
            }
            _ => SeatValue::Hash(hash(resp, &name)),
        };
        stored.insert(name, value);
    }
    stored
}

fn hash(resp: &mut Resp, name: &str) -> BTreeMap<String, String> {
    let fields = resp.call(&["HGETALL", name]);
    let fields: Vec<String> = fields.elements().unwrap().iter().map(text).collect();
    let pairs = fields.chunks(2);
    pairs
        .map(|pair| (pair[0].clone(), pair[1].clone()))
        .collect()
}

fn text(value: &Value) -> String {
    String::from_utf8(value.bytes().to_vec()).unwrap()
}

#[track_caller]
fn compare(events: &[SeatEvent], stored: &BTreeMap<String, SeatValue>) {
    let data: Vec<String> = events.iter().map(|event| event.data.to_string()).collect();
    let types = events.iter().map(|event| event.event_type.as_str());
    let replayed = replay_seats(types.zip(data.iter().map(String::as_bytes))).unwrap();
    for (name, value) in &replayed {
        assert_eq!(stored.get(name), Some(value), "{name}");
    }
    let others: Vec<&String> = stored
        .keys()
        .filter(|name| !replayed.contains_key(*name))
        .collect();
    assert!(others.is_empty(), "no event leads to {others:?}");
}
