//! Two servers on one storage: either answers over HTTP for all namespaces, and goes on when the other one
//! stops.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Storage;
use super::world::World;
use crate::harness::{ADMIN, Sse, connect};

/// Returns how many requests over HTTP another server has answered for this one.
fn forwarded(world: &World) -> u64 {
    let line = "trefoil_forwarded_requests_total{protocol=\"http\",outcome=\"answered\"} ";
    let answer = world.server().anonymous().get("/metrics");
    let count = { answer.text().lines() }.find_map(|found| found.strip_prefix(line));
    count.unwrap().parse().unwrap()
}

/// Returns first the one that has answered all that it was asked.
fn owner_and_other(first: World, second: World) -> (World, World) {
    match forwarded(&first) {
        0 => (first, second),
        _ => (second, first),
    }
}

#[test]
fn any_server_answers_and_goes_on_when_the_owner_stops() {
    let Some(storage) = Storage::on_s3() else {
        return;
    };
    let (first, second) = (World::start(&storage), World::start(&storage));
    let log = first.server().log();
    assert!(log.contains(" (other nodes)\n"), "{log}");
    for number in 0..5 {
        let world = if number % 2 == 0 { &first } else { &second };
        let written = world.server().client().write("a-1", &json!({"n": number}));
        assert_eq!(written, number + 1);
    }
    let (owner, entry) = owner_and_other(first, second);
    assert!(forwarded(&entry) > 0);
    let path = format!("/events?token={ADMIN}&category=a");
    let events = Sse::open(entry.server(), &path, &[]);
    assert_eq!(events.response.status, 200);
    for position in 1..=5 {
        assert_eq!(events.event().0, Some(position.to_string()));
    }
    owner.stop();
    let mut client = entry.server().client();
    for number in 5..8 {
        let written = client.write("a-1", &json!({"n": number}));
        assert_eq!(written, number + 1);
        assert_eq!(events.event().0, Some((number + 1).to_string()));
    }
    entry.stop();
}

/// Otherwise a client may send a request in the moment in which its idle connection is closed.
#[test]
fn a_server_that_hands_over_says_on_each_connection_that_it_ends() {
    let Some(storage) = Storage::on_s3() else {
        return;
    };
    let (first, second) = (World::start(&storage), World::start(&storage));
    for world in [&first, &second] {
        world.server().client().write("a-1", &json!({}));
    }
    let (owner, other) = owner_and_other(first, second);
    // An import goes on where it began, and so does the server.
    let mut import = connect(owner.server().port).unwrap();
    let head = format!(
        "POST /import HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {ADMIN}\r\n\
         transfer-encoding: chunked\r\n\r\n"
    );
    import.write_all(head.as_bytes()).unwrap();
    let line = json!({"id": "00000000-0000-4000-8000-000000000001", "stream": "b-1", "type": "E",
        "pos": 0, "gpos": 3, "data": {}, "meta": null, "time": "2025-01-15T10:00:00Z"});
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let sent = chunk(&format!("{line}\n"));
    import.write_all(sent.as_bytes()).unwrap();
    let mut client = owner.server().anonymous();
    assert_eq!(client.get("/health").header("connection"), None);
    owner.server().signal("TERM");
    let began = Instant::now();
    while client.get("/health").header("connection") != Some("close") {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "it never says so"
        );
    }
    import.write_all(chunk("").as_bytes()).unwrap();
    let mut answer = String::new();
    import.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(r#""done":true,"imported":1"#), "{answer}");
    owner.ends();
    assert_eq!(other.server().client().write("a-1", &json!({})), 4);
    other.stop();
}
