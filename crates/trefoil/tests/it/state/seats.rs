//! Seats in a database: their state and their events are one commit, and holds outlive a restart.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::{bulk, look, memory, run, transaction};
use trefoil::seats::{SeatValue, replay_seats};
use trefoil::{Database, Event, Options, Query, QueryItem, Reply, Selection};

/// What an answer calls by this name.
fn entry(reply: &Reply, name: &str) -> Reply {
    let Reply::Map(entries) = reply else {
        panic!("{reply:?}");
    };
    let found = entries.iter().find(|(key, _)| *key == bulk(name));
    found.map(|(_, value)| value.clone()).unwrap()
}

fn types(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::event_type).collect()
}

/// Checks that nothing contradicts anything, and that the events lead to what is stored.
fn assert_sound(db: &Database, event: &str) {
    let check = look(db, &format!("SEATS.CHECK {event}"));
    assert_eq!(check, Reply::Array(Vec::new()));
    let events = db.read(&Selection::category("seats")).unwrap();
    let events = events
        .iter()
        .map(|event| (event.event_type(), event.data()));
    for (key, value) in replay_seats(events).unwrap() {
        match value {
            SeatValue::String(bytes) => {
                assert_eq!(look(db, &format!("GET {key}")), Reply::Bulk(bytes));
            }
            SeatValue::Hash(fields) => {
                let n = look(db, &format!("HLEN {key}"));
                assert_eq!(n, Reply::Integer(fields.len() as i64), "{key}");
                for (field, value) in fields {
                    let stored = look(db, &format!("HGET {key} {field}"));
                    assert_eq!(stored, bulk(&value), "{key} {field}");
                }
            }
            SeatValue::Members(members) => {
                let members = members.iter().map(|member| bulk(member)).collect();
                let stored = look(db, &format!("ZRANGE {key} 0 -1"));
                assert_eq!(stored, Reply::Array(members), "{key}");
            }
        }
    }
}

#[test]
fn a_reservation_and_its_event_are_one_commit() {
    let db = memory();
    run(&db, &["SEATS.INIT 1 A-1 ROWS 2 SEATS 3 PRICE 10"]);
    let executed = run(
        &db,
        &[
            "INCR visitors",
            "SEATS.RESERVE 1 A-1 b1 u1 BEST 2",
            "SEATS.RESERVE 1 A-1 b2 u2 SEATS 1-1",
            "SEATS.RESERVE 1 A-1 b3 u3 SEATS 1-3",
        ],
    );
    assert_eq!(executed.commit, Some(2));
    assert_eq!(executed.events.len(), 2);
    let taken = Reply::Error("SEATTAKEN seat 1-1 is reserved".into());
    assert_eq!(executed.replies[2], taken);
    for (reply, event) in [(1, 0), (3, 1)] {
        let position = Reply::Integer(executed.events[event].position as i64);
        assert_eq!(entry(&executed.replies[reply], "position"), position);
    }
    let stream = db.read(&Selection::stream("seats-1+A-1")).unwrap();
    let expected = ["SectionOpened", "SeatsReserved", "SeatsReserved"];
    assert_eq!(types(&stream), expected);
    let of_buyer = Query::from(QueryItem::any().tagged("buyer:u3"));
    let found = db.read(&Selection::query(of_buyer)).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].position(), executed.events[1].position);
    assert_sound(&db, "1");
}

#[test]
fn a_strict_transaction_that_fails_reserves_nothing() {
    let db = memory();
    run(&db, &["SEATS.INIT 1 A-1 ROWS 1 SEATS 2"]);
    let strict = transaction(&[
        "SEATS.RESERVE 1 A-1 b1 u1 BEST 2",
        "SEATS.RESERVE 1 A-1 b2 u2 BEST 1",
    ]);
    let failed = db.transact(strict).unwrap_err();
    let text = "NOSEATS 1 seats are wanted and 0 are available";
    assert!(failed.to_string().contains(text), "{failed}");
    assert_eq!(db.head().unwrap(), 1);
    assert_eq!(look(&db, "SEATS.BOOKING b1"), Reply::Nil);
    assert_sound(&db, "1");
}

fn wait_for_status(db: &Database, booking: &str, status: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let line = format!("HGET booking:{booking} status");
    while look(db, &line) != bulk(status) {
        assert!(Instant::now() < deadline, "{booking} never became {status}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_hold_outlives_a_restart_and_ends_once() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Database::open(directory.path(), &Options::default()).unwrap();
    let db = open();
    run(
        &db,
        &[
            "SEATS.INIT 1 A-1 ROWS 1 SEATS 4",
            "SEATS.RESERVE 1 A-1 short u1 BEST 2 HOLDMS 300",
            "SEATS.RESERVE 1 A-1 long u2 BEST 1 HOLD 3600",
            "SEATS.RESERVE 1 A-1 sold u3 BEST 1 HOLDMS 300",
            "SEATS.FINALIZE sold u3",
        ],
    );
    db.close().unwrap();
    let db = open();
    wait_for_status(&db, "short", "EXPIRED");
    db.checkpoint().unwrap();
    db.close().unwrap();
    let db = open();
    let executed = run(&db, &["SEATS.RESERVE 1 A-1 next u4 SEATS 1-1 1-2"]);
    assert_eq!(entry(&executed.replies[0], "status"), bulk("RESERVED"));
    let events = db.read(&Selection::stream("seats-1+A-1")).unwrap();
    let n_expired = types(&events)
        .iter()
        .filter(|found| **found == "HoldExpired")
        .count();
    assert_eq!(n_expired, 1);
    assert_eq!(look(&db, "HGET booking:long status"), bulk("RESERVED"));
    assert_eq!(look(&db, "HGET booking:sold status"), bulk("SOLD"));
    assert_sound(&db, "1");
}

/// Buys seats until all 400 are sold: some by a hold that may run out, others are released again.
fn buy(db: &Database, buyer: usize) {
    for attempt in 0.. {
        let (seats, hold) = match attempt % 3 {
            0 => ("BEST 1", ""),
            1 => ("BEST 3", " HOLDMS 20"),
            _ => ("BEST 2", ""),
        };
        let id = format!("b{buyer}-{attempt}");
        let request = format!(
            "SEATS.RESERVE 1 A-{} {id} u{buyer} {seats}{hold}",
            attempt % 2
        );
        let reply = run(db, &[&request]).replies.remove(0);
        if let Reply::Error(text) = &reply {
            assert!(text.starts_with("NOSEATS"), "{text}");
            if look(db, "HGET event_stats:1 sold") == bulk("400") {
                return;
            }
            continue;
        }
        let again = run(db, &[&request]).replies.remove(0);
        assert_eq!(reply, again);
        match attempt % 7 {
            5 => run(db, &[&format!("SEATS.RELEASE {id} u{buyer}")]),
            _ => run(db, &[&format!("SEATS.FINALIZE {id} u{buyer}")]),
        };
    }
}

/// The seats that an event names, with their section.
fn seats(event: &Event) -> Vec<String> {
    let data: serde_json::Value = serde_json::from_slice(event.data()).unwrap();
    let seats = data["seats"].as_array().unwrap().iter();
    seats
        .map(|seat| format!("{} {seat}", data["section"]))
        .collect()
}

#[test]
fn a_venue_sells_out_and_every_seat_is_sold_once() {
    let db = memory();
    run(
        &db,
        &[
            "SEATS.INIT 1 A-0 ROWS 10 SEATS 20",
            "SEATS.INIT 1 A-1 ROWS 10 SEATS 20",
        ],
    );
    std::thread::scope(|scope| {
        for buyer in 0..8 {
            let db = &db;
            scope.spawn(move || buy(db, buyer));
        }
    });
    let sold = db.read(&Selection::category("seats").of_type("SeatsSold"));
    let sold: Vec<String> = sold.unwrap().iter().flat_map(seats).collect();
    assert_eq!(sold.len(), 400);
    assert_eq!(sold.iter().collect::<HashSet<_>>().len(), 400);
    assert_sound(&db, "1");
}
