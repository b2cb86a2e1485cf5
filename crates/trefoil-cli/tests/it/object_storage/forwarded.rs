//! Two servers on one storage: either answers over HTTP for all namespaces, and goes on when the other one
//! stops.

use serde_json::json;

use super::Storage;
use super::world::World;
use crate::harness::{ADMIN, Sse};

/// Returns how many requests over HTTP another server has answered for this one.
fn forwarded(world: &World) -> u64 {
    let line = "trefoil_forwarded_requests_total{protocol=\"http\",outcome=\"answered\"} ";
    let answer = world.server().anonymous().get("/metrics");
    let count = { answer.text().lines() }.find_map(|found| found.strip_prefix(line));
    count.unwrap().parse().unwrap()
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
    let (owner, entry) = match forwarded(&first) {
        0 => (first, second),
        _ => (second, first),
    };
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
