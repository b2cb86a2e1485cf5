//! Every error, over both protocols: the same word and the same text.

use std::thread;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::line::{Line, Protocol, Refusal};
use crate::harness::Server;

/// A method, its arguments, and how it is refused.
type Case = (&'static str, Json, Refusal);

/// The lines of `refusals.txt`.
fn cases() -> Vec<Case> {
    let lines = include_str!("refusals.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(case).collect()
}

fn case(line: &'static str) -> Case {
    let (request, refusal) = line.split_once(" => ").unwrap();
    let (method, given) = request.split_once(' ').unwrap();
    let (code, text) = refusal.split_once(' ').unwrap();
    let mut arguments = match method {
        "seats.reserve" => json!({"event": "e", "section": "A-1", "booking": "new", "buyer": "u"}),
        _ => json!({}),
    };
    let given: Map<String, Json> = serde_json::from_str(given).unwrap();
    arguments.as_object_mut().unwrap().extend(given);
    let refusal = Refusal {
        code: code.to_owned(),
        text: text.to_owned(),
    };
    (method, arguments, refusal)
}

/// Section A-1 with a booking in every status, all of buyer ada, and the small section S-1.
fn furnish(line: &mut Line) {
    for (section, rows, seats) in [("A-1", 3, 4), ("S-1", 1, 2)] {
        line.ok(
            "seats.init",
            &json!({"event": "e", "section": section, "rows": rows, "seatsPerRow": seats,
                "maxPerBuyer": 6}),
        );
    }
    for (booking, seats, hold) in [
        ("sold", json!(["1-1", "1-2"]), 600_000),
        ("held", json!(["2-1", "2-2"]), 600_000),
        ("released", json!(["3-1"]), 600_000),
        ("expired", json!(["3-2"]), 1),
    ] {
        line.ok(
            "seats.reserve",
            &json!({"event": "e", "section": "A-1", "booking": booking, "buyer": "ada",
                "seats": seats, "holdMs": hold}),
        );
    }
    line.ok(
        "seats.finalize",
        &json!({"booking": "sold", "buyer": "ada"}),
    );
    line.ok(
        "seats.release",
        &json!({"booking": "released", "buyer": "ada"}),
    );
    let expired = json!({"booking": "expired"});
    while line.ok("seats.booking", &expired)["status"] != "EXPIRED" {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_error_has_the_same_words_over_both_protocols() {
    let server = Server::in_test_mode();
    let mut lines = Protocol::BOTH.map(|protocol| Line::to(&server, protocol));
    furnish(&mut lines[0]);
    let event = json!({ "event": "e" });
    let before = lines[0].ok("seats.stats", &event);
    for (method, arguments, expected) in cases() {
        for line in &mut lines {
            let outcome = line.call(method, &arguments);
            assert_eq!(outcome, Err(expected.clone()), "{method} {arguments}");
        }
    }
    for line in &mut lines {
        assert_eq!(
            line.ok("seats.stats", &event),
            before,
            "nothing has changed"
        );
        assert_eq!(line.ok("seats.check", &event), json!([]));
    }
}

#[test]
fn an_answer_is_the_same_over_both_protocols() {
    let server = Server::in_test_mode();
    let mut lines = Protocol::BOTH.map(|protocol| Line::to(&server, protocol));
    furnish(&mut lines[1]);
    for (method, arguments) in [
        ("seats.sections", json!({"event": "e"})),
        ("seats.stats", json!({"event": "e"})),
        ("seats.stats", json!({"event": "e", "section": "A-1"})),
        ("seats.map", json!({"event": "e", "section": "A-1"})),
        (
            "seats.map",
            json!({"event": "e", "section": "A-1", "range": ["1-2", "3-3"]}),
        ),
        ("seats.booking", json!({"booking": "sold"})),
        ("seats.booking", json!({"booking": "nobody"})),
        ("seats.finalize", json!({"booking": "sold", "buyer": "ada"})),
        (
            "seats.release",
            json!({"booking": "released", "buyer": "ada"}),
        ),
        (
            "seats.reserve",
            json!({"event": "e", "section": "A-1", "booking": "b", "buyer": "bob", "best": 2}),
        ),
        (
            "seats.init",
            json!({"event": "e", "section": "A-1", "rows": 3, "seatsPerRow": 4}),
        ),
    ] {
        let answers = lines.each_mut().map(|line| line.ok(method, &arguments));
        assert_eq!(answers[0], answers[1], "{method} {arguments}");
    }
}
