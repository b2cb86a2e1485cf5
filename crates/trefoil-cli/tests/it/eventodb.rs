//! The part of EventoDB's conformance list that needs more than requests and answers: parallel
//! writes, subscriptions, and connections as its SDKs use them.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{ADMIN, Frame, Server, Sse};

fn poke(stream: &str, position: u64, global: u64) -> Value {
    json!({"stream": stream, "position": position, "globalPosition": global})
}

/// A server and the token of a new namespace in it.
fn server() -> (Server, String) {
    let server = Server::in_test_mode();
    let token = server.client().create_namespace("conformance");
    (server, token)
}

/// EDGE-005.
#[test]
fn edge_005_parallel_writes_to_one_stream_get_each_position_once() {
    let (server, token) = server();
    let positions: BTreeSet<u64> = thread::scope(|scope| {
        let write = || {
            let call = json!(["stream.write", "busy-1", {"type": "E", "data": {}}]);
            server.client_with(&token).rpc(&call).ok()["position"]
                .as_u64()
                .unwrap()
        };
        let threads: Vec<_> = (0..10).map(|_| scope.spawn(write)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(positions, (0..10).collect());
}

#[test]
fn sse_001_and_008_a_stream_is_followed() {
    let (server, token) = server();
    let stream = Sse::subscribe(&server, &token, "stream=sse-1");
    assert_eq!(
        stream.response.header("content-type"),
        Some("text/event-stream")
    );
    assert_eq!(stream.response.header("cache-control"), Some("no-cache"));
    let mut client = server.client_with(&token);
    client.write("other-1", &json!({}));
    client.write("sse-1", &json!({}));
    let Some(Frame::Event { event, data, .. }) = stream.next() else {
        panic!("no poke")
    };
    assert_eq!(event.as_deref(), Some("poke"));
    assert_eq!(
        serde_json::from_str::<Value>(&data).unwrap(),
        poke("sse-1", 0, 2)
    );
}

#[test]
fn sse_002_a_category_is_followed() {
    let (server, token) = server();
    let category = Sse::subscribe(&server, &token, "category=sse");
    let mut client = server.client_with(&token);
    client.write("sse-123", &json!({}));
    client.write("sseX-1", &json!({}));
    client.write("sse-9", &json!({}));
    assert_eq!(category.data(), poke("sse-123", 0, 1));
    assert_eq!(category.data(), poke("sse-9", 0, 3));
}

#[test]
fn sse_003_a_position_replays_from_there() {
    let (server, token) = server();
    let mut client = server.client_with(&token);
    client.write("before-1", &json!({}));
    for _ in 0..5 {
        client.write("sse-1", &json!({}));
    }
    let stream = Sse::subscribe(&server, &token, "stream=sse-1&position=3");
    let category = Sse::subscribe(&server, &token, "category=sse&position=5");
    client.write("sse-1", &json!({}));
    for (position, global) in [(3, 5), (4, 6), (5, 7)] {
        assert_eq!(stream.data(), poke("sse-1", position, global));
        assert_eq!(category.data(), poke("sse-1", position, global));
    }
}

#[test]
fn sse_004_without_a_token_nothing_is_followed() {
    let data = tempfile::TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    for (path, status) in [
        ("/subscribe?stream=a-1".to_owned(), 401),
        ("/subscribe?stream=a-1&token=nonsense".to_owned(), 401),
        (
            format!("/subscribe?stream=a-1&token={}", ADMIN.replace('0', "1")),
            403,
        ),
    ] {
        let refused = server.anonymous().get(&path);
        assert_eq!(refused.status, status, "{path}: {}", refused.text());
        assert!(refused.code().starts_with("AUTH_"));
    }
    let header = [("Authorization", &*format!("Bearer {ADMIN}"))];
    assert_eq!(
        Sse::open(&server, "/subscribe?stream=a-1", &header)
            .response
            .status,
        200
    );
}

#[test]
fn sse_005_and_009_members_of_a_group_share_the_streams_as_category_get_does() {
    let (server, token) = server();
    let members: Vec<Sse> = (0..2)
        .map(|member| {
            Sse::subscribe(
                &server,
                &token,
                &format!("category=sse&consumer={member}&size=2"),
            )
        })
        .collect();
    let mut client = server.client_with(&token);
    for id in ["1", "2", "3", "4", "1+copy"] {
        client.write(&format!("sse-{id}"), &json!({}));
    }
    client.write("sse", &json!({}));
    for (member, expected) in [(0, vec![1, 3, 5]), (1, vec![2, 4])] {
        let globals = expected
            .iter()
            .map(|_| members[member].data()["globalPosition"].clone());
        assert_eq!(globals.collect::<Vec<_>>(), expected);
        assert!(members[member].is_silent_for(Duration::from_millis(200)));
        let group = json!({"consumerGroup": {"member": member, "size": 2}});
        let read = client.rpc(&json!(["category.get", "sse", group])).ok();
        let globals: Vec<_> = read
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row[4].clone())
            .collect();
        assert_eq!(globals, expected);
    }
}

#[test]
fn sse_006_subscriptions_do_not_mix() {
    let (server, token) = server();
    let one = Sse::subscribe(&server, &token, "stream=one-1");
    let two = Sse::subscribe(&server, &token, "stream=two-1");
    let mut client = server.client_with(&token);
    client.write("one-1", &json!({}));
    client.write("two-1", &json!({}));
    assert_eq!(one.data(), poke("one-1", 0, 1));
    assert_eq!(two.data(), poke("two-1", 0, 2));
    assert!(one.is_silent_for(Duration::from_millis(100)));
}

/// A dropped connection is resumed from the position after the last poke.
#[test]
fn sse_007_a_dropped_subscriber_comes_back_where_it_was() {
    let (server, token) = server();
    let mut client = server.client_with(&token);
    let first = Sse::subscribe(&server, &token, "stream=sse-1");
    client.write("sse-1", &json!({}));
    assert_eq!(first.data()["position"], 0);
    drop(first);
    for _ in 0..3 {
        client.write("sse-1", &json!({}));
    }
    let again = Sse::subscribe(&server, &token, "stream=sse-1&position=1");
    client.write("sse-1", &json!({}));
    for position in 1..5 {
        assert_eq!(again.data()["position"], position);
    }
}

#[test]
fn sse_010_and_011_all_is_live_only_and_a_position_only_filters() {
    let (server, token) = server();
    let mut client = server.client_with(&token);
    client.write("old-1", &json!({}));
    let live = Sse::subscribe(&server, &token, "all=true");
    let old = Sse::subscribe(&server, &token, "all=true&position=0");
    let later = Sse::subscribe(&server, &token, "all=true&position=3");
    client.write("new-1", &json!({}));
    client.write("new-1", &json!({}));
    assert_eq!(live.data(), poke("new-1", 0, 2));
    assert_eq!(old.data(), poke("new-1", 0, 2));
    assert_eq!(later.data(), poke("new-1", 1, 3));
}

#[test]
fn sse_012_and_what_else_is_no_subscription() {
    let (server, token) = server();
    for (query, text) in [
        (
            "",
            "Either 'stream', 'category', or 'all=true' parameter required",
        ),
        (
            "all=true&stream=a",
            "Cannot combine 'all' with 'stream' or 'category'",
        ),
        (
            "stream=a&category=b",
            "Cannot specify both 'stream' and 'category'",
        ),
        ("stream=a&position=x", "Invalid position parameter"),
        ("category=a&consumer=x&size=2", "Invalid consumer parameter"),
        ("category=a&consumer=0&size=x", "Invalid size parameter"),
        (
            "category=a&consumer=2&size=2",
            "Invalid consumer group: member must be < size",
        ),
        (
            "category=a&consumer=1",
            "Invalid consumer group: member must be < size",
        ),
    ] {
        let refused = server
            .client_with(&token)
            .get(&format!("/subscribe?{query}"));
        assert_eq!(
            (refused.status, refused.text().trim_end()),
            (400, text),
            "{query}"
        );
    }
}

/// Imports are events like others to a subscriber, and a long backlog comes whole.
#[test]
fn a_backlog_longer_than_any_buffer_and_an_import_are_followed_without_a_gap() {
    let (server, token) = server();
    let mut client = server.client_with(&token);
    let lines = |range: std::ops::Range<u64>| -> String {
        let line = |n: u64| {
            json!({"id": format!("00000000-0000-4000-8000-{n:012}"), "stream": "long-1",
                "type": "E", "pos": n - 1, "gpos": n, "data": {}, "meta": null,
                "time": "2025-01-15T10:00:00Z"})
            .to_string()
                + "\n"
        };
        range.map(line).collect()
    };
    let imported = client.post("/import", lines(1..3001).as_bytes());
    assert!(
        imported.text().contains(r#""done":true,"imported":3000"#),
        "{}",
        imported.text()
    );
    let follower = Sse::subscribe(&server, &token, "category=long");
    let imported = client.post("/import", lines(3001..4001).as_bytes());
    assert!(
        imported.text().contains(r#""done":true"#),
        "{}",
        imported.text()
    );
    client.write("long-1", &json!({}));
    for global in 1..=4001u64 {
        assert_eq!(follower.data(), poke("long-1", global - 1, global));
    }
}
