//! What clients notice of a namespace that moves: nothing.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{TestCluster, TestNode, owner_and_others};
use crate::client::{Frames, rpc};

fn write(node: &TestNode, stream: &str) {
    let body = json!(["stream.write", stream, {"type": "T", "data": {}}]);
    let reply = rpc(node.server.address, &body.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// The number after a name in a frame.
fn number(frame: &str, name: &str) -> u64 {
    let rest = frame.split(name).nth(1);
    let rest = rest.unwrap_or_else(|| panic!("no {name} in {frame:?}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn a_subscription_goes_on_where_the_namespace_is() {
    let cluster = TestCluster::new();
    let nodes: Vec<TestNode> = ["a", "b", "c"].map(|name| cluster.node(name)).into();
    write(&nodes[0], "account-1");
    write(&nodes[0], "account-1");
    let (owner, mut others) = owner_and_others(nodes);
    let entry = others.pop().unwrap();
    let address = entry.server.address;
    let mut events = Frames::open(address, "/events?category=account");
    let mut stream = Frames::open(address, "/events?stream=account-1&position=1");
    // Nothing has come of these when the namespace moves.
    let mut live = Frames::open(address, "/events?all=true");
    let mut pokes = Frames::open(address, "/subscribe?all=true");
    let mut later = Frames::open(address, "/events?category=later");
    for frames in [&mut live, &mut pokes, &mut later] {
        assert_eq!(frames.next().unwrap(), ": ready");
    }
    for expected in 1..=2 {
        assert_eq!(number(&events.next_data().unwrap(), "id: "), expected);
    }
    assert_eq!(number(&stream.next_data().unwrap(), "id: "), 2);
    owner.stop();
    write(&others[0], "account-1");
    write(&entry, "account-1");
    write(&entry, "later-1");
    for frames in [&mut events, &mut stream, &mut live] {
        assert_eq!(number(&frames.next_data().unwrap(), "id: "), 3);
        assert_eq!(number(&frames.next_data().unwrap(), "id: "), 4);
    }
    assert_eq!(number(&pokes.next_data().unwrap(), "globalPosition\":"), 3);
    assert_eq!(number(&pokes.next_data().unwrap(), "globalPosition\":"), 4);
    assert_eq!(number(&later.next_data().unwrap(), "id: "), 5);
}

/// Writes over and over until it is over. Returns how often.
fn keep_writing(address: SocketAddr, number: usize, is_over: &AtomicBool) -> u64 {
    let body = json!(["stream.write", format!("c-{number}"), {"type": "T", "data": {}}]);
    let mut written = 0;
    while !is_over.load(Ordering::Relaxed) {
        let reply = rpc(address, &body.to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
        written += 1;
    }
    written
}

#[test]
fn a_planned_stop_fails_no_request() {
    let cluster = TestCluster::new();
    let nodes: Vec<TestNode> = ["a", "b", "c"].map(|name| cluster.node(name)).into();
    write(&nodes[0], "account-1");
    let (owner, others) = owner_and_others(nodes);
    let is_over = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|number| {
                let address = others[number % others.len()].server.address;
                let is_over = &is_over;
                scope.spawn(move || keep_writing(address, number, is_over))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        owner.stop();
        std::thread::sleep(Duration::from_millis(700));
        is_over.store(true, Ordering::Relaxed);
        let counts = clients.into_iter().map(|client| client.join().unwrap());
        counts.sum::<u64>()
    });
    assert!(written > 0);
    let head = rpc(others[0].server.address, r#"["events.head"]"#);
    let head: u64 = head.text().parse().unwrap();
    assert_eq!(head, written + 1);
}
