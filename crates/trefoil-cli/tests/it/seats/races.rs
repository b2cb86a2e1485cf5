//! Two who want the same at the same time, and holds that end meanwhile: one of them gets it, the
//! other is told so, and one event says which.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::line::{Line, Outcome, Protocol};
use super::replayed;
use crate::harness::Server;

const ROUNDS: usize = 60;
/// How many of the holds that are raced with do not end during the test.
const LONG_HOLDS: usize = 5;

/// A server with a section that has a row for each round.
fn house() -> Server {
    let server = Server::in_test_mode();
    open(&server);
    server
}

fn open(server: &Server) {
    let section = json!({"event": "e", "section": "A-1", "rows": ROUNDS, "seatsPerRow": 4});
    Line::to(server, Protocol::Resp).ok("seats.init", &section);
}

/// The reservation of the first two seats of a row.
fn reservation(booking: &str, buyer: &str, row: usize) -> Json {
    let seats = [format!("{row}-1"), format!("{row}-2")];
    json!({"event": "e", "section": "A-1", "booking": booking, "buyer": buyer, "seats": seats})
}

/// Sends requests at the same moment, each on a line of its own over one protocol or the other.
fn at_once(server: &Server, requests: &[(&'static str, Json)]) -> Vec<Outcome> {
    let start = Barrier::new(requests.len());
    thread::scope(|scope| {
        let send = |(number, (method, arguments)): (usize, &(&'static str, Json))| {
            let (start, arguments) = (&start, arguments.clone());
            let (method, protocol) = (*method, Protocol::BOTH[number % 2]);
            scope.spawn(move || {
                let mut line = Line::to(server, protocol);
                start.wait();
                line.call(method, &arguments)
            })
        };
        let threads: Vec<_> = requests.iter().enumerate().map(send).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

fn code(outcome: &Outcome) -> &str {
    match outcome {
        Ok(_) => "done",
        Err(refusal) => &refusal.code,
    }
}

/// How each booking ended, by the types of its events after the reservation; there is one of them.
#[track_caller]
fn endings(server: &Server) -> BTreeMap<String, String> {
    let mut endings = BTreeMap::new();
    for event in replayed::check(server) {
        if ["SectionOpened", "SeatsReserved"].contains(&event.event_type.as_str()) {
            continue;
        }
        let booking = event.data["booking"].as_str().unwrap().to_owned();
        let before = endings.insert(booking, event.event_type);
        assert_eq!(before, None, "{} ends twice", event.data);
    }
    endings
}

#[track_caller]
fn check_all(server: &Server) {
    let violations = Line::to(server, Protocol::Http).ok("seats.check", &json!({"event": "e"}));
    assert_eq!(violations, json!([]));
}

fn status(line: &mut Line, booking: &str) -> Json {
    line.ok("seats.booking", &json!({ "booking": booking }))["status"].clone()
}

#[test]
fn one_of_many_gets_a_seat() {
    let server = house();
    for row in 1..=20 {
        let requests: Vec<_> = (0..8)
            .map(|n| {
                (
                    "seats.reserve",
                    reservation(&format!("b{row}-{n}"), &format!("u{n}"), row),
                )
            })
            .collect();
        let outcomes = at_once(&server, &requests);
        let n_done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(n_done, 1, "{outcomes:?}");
        let are_clear = |outcome: &Outcome| ["done", "SEATTAKEN"].contains(&code(outcome));
        assert!(outcomes.iter().all(are_clear), "{outcomes:?}");
    }
    check_all(&server);
}

#[test]
fn a_request_that_is_sent_many_times_at_once_is_carried_out_once() {
    let server = house();
    for row in 1..=20 {
        let request = ("seats.reserve", reservation(&format!("b{row}"), "u", row));
        let outcomes = at_once(&server, &vec![request; 8]);
        assert!(outcomes[0].is_ok(), "{outcomes:?}");
        assert!(
            outcomes.iter().all(|outcome| *outcome == outcomes[0]),
            "{outcomes:?}"
        );
    }
    let events = replayed::check(&server);
    let n_reserved = events
        .iter()
        .filter(|event| event.event_type == "SeatsReserved")
        .count();
    assert_eq!(n_reserved, 20);
    check_all(&server);
}

#[test]
fn a_booking_is_either_sold_or_released() {
    let server = house();
    let mut line = Line::to(&server, Protocol::Resp);
    let mut expected = BTreeMap::new();
    for row in 1..=ROUNDS {
        let booking = format!("b{row}");
        line.ok("seats.reserve", &reservation(&booking, "u", row));
        let own = json!({"booking": booking, "buyer": "u"});
        let mut requests = [("seats.finalize", own.clone()), ("seats.release", own)];
        if row % 2 == 0 {
            requests.reverse();
        }
        let outcomes = at_once(&server, &requests);
        let winner = match [code(&outcomes[0]), code(&outcomes[1])] {
            ["done", "SEATSTATE"] => requests[0].0,
            ["SEATSTATE", "done"] => requests[1].0,
            other => panic!("{other:?}"),
        };
        let (ending, now) = match winner {
            "seats.finalize" => ("SeatsSold", "SOLD"),
            _ => ("SeatsReleased", "RELEASED"),
        };
        assert_eq!(status(&mut line, &booking), now);
        expected.insert(booking, ending.to_owned());
    }
    assert_eq!(endings(&server), expected);
    check_all(&server);
}

/// Settles bookings at about the time at which their holds end.
fn race_with_expiry(method: &'static str, done: (&str, &str)) {
    let server = house();
    let mut expected = BTreeMap::new();
    thread::scope(|scope| {
        let run = |row: usize| {
            let server = &server;
            scope.spawn(move || {
                let mut line = Line::to(server, Protocol::BOTH[row % 2]);
                let booking = format!("b{row}");
                let mut request = reservation(&booking, "u", row);
                // However slow the machine is, some come in time.
                let is_long = row <= LONG_HOLDS;
                request["holdMs"] = json!(if is_long { 600_000 } else { 2 * ROUNDS });
                let sent_at = Instant::now();
                line.ok("seats.reserve", &request);
                // From clearly before the end of the hold to clearly after it.
                let wait = Duration::from_millis(4 * row as u64);
                thread::sleep(wait.saturating_sub(sent_at.elapsed()));
                let own = json!({"booking": booking, "buyer": "u"});
                let outcome = line.call(method, &own);
                let again = line.call(method, &own);
                assert_eq!(outcome, again, "{booking}");
                (booking, outcome)
            })
        };
        let threads: Vec<_> = (1..=ROUNDS).map(run).collect();
        for thread in threads {
            let (booking, outcome) = thread.join().unwrap();
            let (ending, now) = match code(&outcome) {
                "done" => done,
                "EXPIRED" => ("HoldExpired", "EXPIRED"),
                other => panic!("{booking}: {other}"),
            };
            expected.insert(booking, (ending.to_owned(), now.to_owned()));
        }
    });
    // Whoever was refused may have come before the cleaning, which then does its work.
    let mut line = Line::to(&server, Protocol::Resp);
    for (booking, (_, now)) in &expected {
        wait_for(&mut line, booking, now);
    }
    let expected: BTreeMap<_, _> = { expected.into_iter() }
        .map(|(booking, (ending, _))| (booking, ending))
        .collect();
    assert_eq!(endings(&server), expected);
    let n_expired = expected
        .values()
        .filter(|ending| *ending == "HoldExpired")
        .count();
    let n_possible = 1..=ROUNDS - LONG_HOLDS;
    assert!(n_possible.contains(&n_expired), "{n_expired} have expired");
    check_all(&server);
}

#[track_caller]
fn wait_for(line: &mut Line, booking: &str, expected: &str) {
    let started = Instant::now();
    while status(line, booking) != expected {
        let is_soon = started.elapsed() < Duration::from_secs(10);
        assert!(
            is_soon,
            "{booking} is {} and not {expected}",
            status(line, booking)
        );
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_hold_that_ends_and_a_sale_do_not_both_happen() {
    race_with_expiry("seats.finalize", ("SeatsSold", "SOLD"));
}

#[test]
fn a_hold_that_ends_and_a_release_do_not_both_happen() {
    race_with_expiry("seats.release", ("SeatsReleased", "RELEASED"));
}

#[test]
fn nobody_is_refused_a_seat_whose_hold_has_run_out() {
    let server = house();
    let mut lines = Protocol::BOTH.map(|protocol| Line::to(&server, protocol));
    for row in 1..=ROUNDS {
        let mut first = reservation(&format!("first{row}"), "u1", row);
        first["holdMs"] = json!(5);
        lines[0].ok("seats.reserve", &first);
        // The hold began before the answer, so it has ended after as many milliseconds.
        thread::sleep(Duration::from_millis(5));
        let second = reservation(&format!("second{row}"), "u2", row);
        lines[row % 2].ok("seats.reserve", &second);
        assert_eq!(status(&mut lines[1], &format!("first{row}")), "EXPIRED");
    }
    let endings = endings(&server);
    assert_eq!(endings.len(), ROUNDS);
    assert!(endings.values().all(|ending| ending == "HoldExpired"));
    check_all(&server);
}

#[test]
fn holds_end_once_although_the_server_was_down() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    open(&server);
    let mut line = Line::to(&server, Protocol::Resp);
    for (row, hold) in (1..=20).zip([100, 400, 1500, 600_000].into_iter().cycle()) {
        let mut request = reservation(&format!("b{row}"), "u", row);
        request["holdMs"] = json!(hold);
        line.ok("seats.reserve", &request);
    }
    server.kill();
    // Some holds end before the server is back, some just then, some afterwards, some not at all.
    thread::sleep(Duration::from_millis(300));
    let server = Server::on(data.path(), &[]);
    let mut line = Line::to(&server, Protocol::Http);
    for row in 1..=20 {
        let booking = format!("b{row}");
        match row % 4 {
            0 => assert_eq!(status(&mut line, &booking), "RESERVED"),
            _ => wait_for(&mut line, &booking, "EXPIRED"),
        }
    }
    let endings = endings(&server);
    assert_eq!(endings.len(), 15);
    assert!(
        endings.values().all(|ending| ending == "HoldExpired"),
        "{endings:?}"
    );
    check_all(&server);
}
