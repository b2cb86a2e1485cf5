//! Subscriptions: frames, replay, going live without a gap, and their end.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use trefoil_server::Config;

use crate::client::{Connection, Frames, bearer, bearer_of, request, rpc};
use crate::harness::TestServer;

fn write(address: SocketAddr, stream: &str) {
    let call = format!(r#"["stream.write","{stream}",{{"type":"T","data":{{}}}}]"#);
    let reply = rpc(address, &call);
    assert_eq!(reply.status, 200, "{}", reply.text());
}

fn poke(stream: &str, position: u64, global: u64) -> String {
    format!(
        "event: poke\ndata: {{\"stream\":\"{stream}\",\"position\":{position},\"globalPosition\":{global}}}"
    )
}

#[test]
fn a_stream_is_replayed_and_followed() {
    let server = TestServer::production();
    for stream in ["a-1", "a-2", "a-1"] {
        write(server.address, stream);
    }
    let mut frames = Frames::open(server.address, "/subscribe?stream=a-1");
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("connection", "keep-alive"),
        ("access-control-allow-origin", "*"),
        ("transfer-encoding", "chunked"),
    ] {
        assert!(
            frames
                .headers
                .contains(&(name.to_owned(), value.to_owned())),
            "{name}"
        );
    }
    assert_eq!(frames.next().unwrap(), ": ready");
    assert_eq!(frames.next().unwrap(), poke("a-1", 0, 1));
    assert_eq!(frames.next().unwrap(), poke("a-1", 1, 3));
    write(server.address, "a-1");
    assert_eq!(frames.next().unwrap(), poke("a-1", 2, 4));
    let mut later = Frames::open(server.address, "/subscribe?stream=a-1&position=2");
    assert_eq!(later.next_data().unwrap(), poke("a-1", 2, 4));
}

#[test]
fn a_category_is_replayed_beyond_a_thousand() {
    let server = TestServer::production();
    let events: Vec<String> = (0..2500)
        .map(|_| r#"{"stream":"a-1","type":"T","data":{}}"#.to_owned())
        .collect();
    let call = format!(r#"["commit",{{"events":[{}]}}]"#, events.join(","));
    assert_eq!(rpc(server.address, &call).status, 200);
    let mut frames = Frames::open(server.address, "/subscribe?category=a&position=101");
    for position in 100..2500 {
        assert_eq!(
            frames.next_data().unwrap(),
            poke("a-1", position, position + 1)
        );
    }
    write(server.address, "a-9");
    assert_eq!(frames.next_data().unwrap(), poke("a-9", 0, 2501));
}

#[test]
fn all_is_live_only_and_a_position_leaves_out_what_is_before_it() {
    let server = TestServer::production();
    write(server.address, "a-1");
    let ready = |path| {
        let mut frames = Frames::open(server.address, path);
        assert_eq!(frames.next().unwrap(), ": ready");
        frames
    };
    let mut live = ready("/subscribe?all=true");
    let mut from_zero = ready("/subscribe?all=true&position=0");
    let mut later = ready("/subscribe?all=true&position=3");
    write(server.address, "b-1");
    write(server.address, "b-1");
    for frames in [&mut live, &mut from_zero] {
        assert_eq!(frames.next_data().unwrap(), poke("b-1", 0, 2));
    }
    for frames in [&mut live, &mut from_zero, &mut later] {
        assert_eq!(frames.next_data().unwrap(), poke("b-1", 1, 3));
    }
    // The events themselves are sent from a position on.
    let mut replay = Frames::open(server.address, "/events?all=true&position=0");
    assert!(replay.next_data().unwrap().contains("a-1"));
}

#[test]
fn a_group_is_split_as_category_reads_split_it() {
    let server = TestServer::production();
    for id in 1..=8 {
        write(server.address, &format!("a-{id}+x"));
    }
    let mut seen = BTreeSet::new();
    for member in 0..2 {
        let call =
            format!(r#"["category.get","a",{{"consumerGroup":{{"member":{member},"size":2}}}}]"#);
        let rows: Vec<Vec<serde_json::Value>> =
            serde_json::from_slice(&rpc(server.address, &call).body).unwrap();
        assert!(!rows.is_empty());
        for words in [
            "consumer={m}&size=2",
            "consumerGroupMember={m}&consumerGroupSize=2",
        ] {
            let words = words.replace("{m}", &member.to_string());
            let mut frames =
                Frames::open(server.address, &format!("/subscribe?category=a&{words}"));
            for row in &rows {
                let (stream, global) = (row[1].as_str().unwrap(), row[4].as_u64().unwrap());
                assert_eq!(frames.next_data().unwrap(), poke(stream, 0, global));
                seen.insert(global);
            }
        }
    }
    assert_eq!(seen, (1..=8).collect());
}

#[test]
fn nothing_is_lost_between_past_and_present() {
    let server = TestServer::production();
    let address = server.address;
    let writer = std::thread::spawn(move || {
        for _ in 0..300 {
            write(address, "a-1");
        }
    });
    let readers: Vec<_> = (0..10)
        .map(|index| {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(index * 7));
                let mut frames = Frames::open(address, "/subscribe?category=a");
                for position in 0..300 {
                    assert_eq!(
                        frames.next_data().unwrap(),
                        poke("a-1", position, position + 1)
                    );
                }
            })
        })
        .collect();
    writer.join().unwrap();
    for reader in readers {
        reader.join().unwrap();
    }
}

#[test]
fn a_silent_subscription_says_that_it_is_alive() {
    let keep_alive = Duration::from_millis(30);
    let server = TestServer::with(Config {
        keep_alive,
        ..Config::default()
    });
    for path in ["/subscribe?all=true", "/events?all=true"] {
        let mut frames = Frames::open(server.address, path);
        let got = [frames.next(), frames.next(), frames.next()].map(Option::unwrap);
        assert_eq!(got, [": ready", ": keep-alive", ": keep-alive"]);
    }
}

#[test]
fn a_subscription_outlives_the_idle_timeout() {
    let second = Duration::from_millis(300);
    let server = TestServer::with(Config {
        idle_timeout: second,
        head_timeout: second,
        ..Config::default()
    });
    let mut frames = Frames::open(server.address, "/subscribe?all=true");
    assert_eq!(frames.next().unwrap(), ": ready");
    std::thread::sleep(second * 3);
    write(server.address, "a-1");
    assert_eq!(frames.next_data().unwrap(), poke("a-1", 0, 1));
}

#[test]
fn events_are_sent_whole_and_can_be_resumed() {
    let server = TestServer::production();
    let id = "00000000-0000-4000-8000-00000000000";
    for (index, event_type) in ["A", "B", "A", "A"].iter().enumerate() {
        let metadata = if index == 2 {
            r#"{"correlationStreamName":"w-1"}"#
        } else {
            "{}"
        };
        let call = format!(
            "[\"stream.write\",\"a-1\",{{\"type\":\"{event_type}\",\"data\":{{\n\"n\": 1.0\r\n}},\"metadata\":{metadata}}},{{\"id\":\"{id}{index}\"}}]"
        );
        assert_eq!(rpc(server.address, &call).status, 200);
    }
    let mut frames = Frames::open(server.address, "/events?stream=a-1");
    let frame = frames.next_data().unwrap();
    let expected = format!(
        "id: 1\nevent: event\ndata: [\"{id}0\",\"a-1\",\"A\",0,1,{{ \"n\": 1.0  }},{{}},\""
    );
    assert!(frame.starts_with(&expected), "{frame}");
    assert!(frame.ends_with("Z\",[]]"), "{frame}");
    let first_id = |path: &str, headers: &str| {
        let headers = format!("{}{headers}", bearer());
        let frame = Frames::open_with(server.address, path, &headers)
            .next_data()
            .unwrap();
        frame.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        first_id("/events?all=true", "last-event-id: 2\r\n"),
        "id: 3"
    );
    assert_eq!(
        first_id("/events?stream=a-1&position=1", "last-event-id: 3\r\n"),
        "id: 4"
    );
    assert_eq!(first_id("/events?stream=a-1&position=1", ""), "id: 2");
    assert_eq!(first_id("/events?category=a&type=B", ""), "id: 2");
    assert_eq!(first_id("/events?category=a&correlation=w", ""), "id: 3");
    let headers = format!("{}last-event-id: x\r\n", bearer());
    let reply = request(server.address, "GET", "/events?all=true", &headers, b"");
    assert_eq!(
        (reply.status, reply.text()),
        (400, "Invalid Last-Event-ID header")
    );
}

/// The global positions of the next `count` events, and their tags.
fn tagged(frames: &mut Frames, count: usize) -> Vec<(u64, String)> {
    let next = |_| {
        let frame = frames.next_data().unwrap();
        let data = frame.lines().find_map(|line| line.strip_prefix("data: "));
        let row: serde_json::Value = serde_json::from_str(data.unwrap()).unwrap();
        let tags = row[8].as_array().unwrap().iter();
        let tags: Vec<&str> = tags.map(|tag| tag.as_str().unwrap()).collect();
        (row[4].as_u64().unwrap(), tags.join(" "))
    };
    (0..count).map(next).collect()
}

fn append(address: SocketAddr, stream: &str, event_type: &str, tags: &[&str]) {
    let event = serde_json::json!({"stream": stream, "type": event_type, "data": {}, "tags": tags});
    let mut event = event;
    if stream.is_empty() {
        event["stream"].take();
    }
    let call = serde_json::json!(["commit", {"events": [event]}]);
    assert_eq!(rpc(address, &call.to_string()).status, 200);
}

#[test]
fn a_query_is_followed_from_the_past_into_the_present() {
    let server = TestServer::production();
    let address = server.address;
    let append_all = || {
        append(address, "", "A", &["x"]);
        append(address, "s-1", "A", &["x", "y"]);
        append(address, "", "B", &["y"]);
        append(address, "", "C", &[]);
    };
    append_all();
    let all = r#"/events?query={"items":[{"types":["B"]},{"tags":["y","x"]}]}"#;
    let mut cases = [
        (all, vec![2, 3, 6, 7]),
        ("/events?tag=x", vec![1, 2, 5, 6]),
        ("/events?tag=x&tag=y", vec![2, 6]),
        ("/events?type=B&type=C", vec![3, 4, 7, 8]),
        ("/events?type=A&tag=x&category=s", vec![2, 6]),
        ("/events?tag=x&stream=s-1&position=1", vec![6]),
        ("/events?tag=x&position=2", vec![2, 5, 6]),
        ("/events?all=true&tag=y", vec![6, 7]),
        (r#"/events?query={"stream":"s-1"}&position=1"#, vec![6]),
        (r#"/events?query={"category":"s"}"#, vec![2, 6]),
    ]
    .map(|(path, expected)| {
        let mut frames = Frames::open(address, path);
        assert_eq!(frames.next().unwrap(), ": ready", "{path}");
        (path, expected, frames)
    });
    append_all();
    for (path, expected, frames) in &mut cases {
        let seen = tagged(frames, expected.len());
        let positions: Vec<u64> = seen.iter().map(|(position, _)| *position).collect();
        assert_eq!(positions, *expected, "{path}");
        for (position, tags) in seen {
            let expected = ["", "x", "x y", "y"][(position % 4) as usize];
            assert_eq!(tags, expected, "{path}");
        }
    }
}

#[test]
fn a_followed_query_is_resumed_and_pokes_too() {
    let server = TestServer::production();
    let address = server.address;
    for n in 0..6 {
        append(
            address,
            "",
            "A",
            if n % 2 == 0 { &["even"] } else { &["odd"] },
        );
    }
    let headers = format!("{}last-event-id: 2\r\n", bearer());
    for path in ["/events?tag=odd", "/events?tag=odd&all=true"] {
        let mut frames = Frames::open_with(address, path, &headers);
        assert_eq!(
            tagged(&mut frames, 2),
            [(4, "odd".into()), (6, "odd".into())]
        );
    }
    let mut pokes = Frames::open(address, "/subscribe?tag=even&position=2");
    for position in [3, 5] {
        let expected = format!(
            "event: poke\ndata: {{\"stream\":\"\",\"position\":-1,\"globalPosition\":{position}}}"
        );
        assert_eq!(pokes.next_data().unwrap(), expected);
    }
}

#[test]
fn a_subscription_ends_with_its_namespace() {
    let server = TestServer::test_mode();
    let secret = "1".repeat(64);
    let token = format!("ns_ZnJlc2g_{secret}");
    let mut frames = Frames::open_with(server.address, "/subscribe?all=true", &bearer_of(&token));
    assert_eq!(frames.next().unwrap(), ": ready");
    assert_eq!(rpc(server.address, r#"["ns.delete","fresh"]"#).status, 200);
    assert_eq!(frames.next_data(), None);
}

#[test]
fn a_subscription_ends_when_everything_is_cleared() {
    let server = TestServer::production();
    let mut frames = Frames::open(server.address, "/subscribe?all=true");
    assert_eq!(frames.next().unwrap(), ": ready");
    let reply = request(server.address, "POST", "/import?force=true", &bearer(), b"");
    assert_eq!(reply.status, 200);
    assert_eq!(frames.next_data(), None);
}

fn metric(address: SocketAddr, name: &str) -> u64 {
    let reply = request(address, "GET", "/metrics", "", b"");
    let mut lines = reply.text().lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap().parse().unwrap()
}

fn subscribers(address: SocketAddr) -> u64 {
    metric(address, "trefoil_subscribers")
}

#[test]
fn an_append_wakes_whom_it_concerns_and_the_others_are_not_behind() {
    const SUBSCRIBERS: u64 = 100;
    const APPENDS: u64 = 50;
    let server = TestServer::production();
    let address = server.address;
    let open = |number: u64| {
        let mut frames = Frames::open(address, &format!("/subscribe?category=own{number}"));
        assert_eq!(frames.next().unwrap(), ": ready");
        frames
    };
    let mut all: Vec<Frames> = (0..SUBSCRIBERS).map(open).collect();
    // Each of them is told of one event, and waits for the next one then.
    for (frames, number) in all.iter_mut().zip(0..) {
        write(address, &format!("own{number}-1"));
        assert_eq!(
            frames.next_data().unwrap(),
            poke(&format!("own{number}-1"), 0, number + 1)
        );
    }
    let wakes = || metric(address, "trefoil_subscription_wakes_total");
    let waiting = Instant::now();
    while metric(address, "trefoil_subscription_lag_events") > 0 {
        assert!(waiting.elapsed() < Duration::from_secs(30), "one is behind");
        std::thread::sleep(Duration::from_millis(5));
    }
    let before = wakes();
    for _ in 0..APPENDS {
        write(address, "nobody-1");
    }
    let chosen = 42;
    write(address, &format!("own{chosen}-1"));
    let position = SUBSCRIBERS + APPENDS + 1;
    assert_eq!(
        all[chosen].next_data().unwrap(),
        poke(&format!("own{chosen}-1"), 1, position)
    );
    assert_eq!(wakes(), before + 1);
    let listed = rpc(address, r#"["ns.subscriptions",{"limit":1000}]"#);
    let listed: serde_json::Value = serde_json::from_slice(&listed.body).unwrap();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), SUBSCRIBERS as usize);
    for subscription in listed {
        let is_chosen = subscription["query"]["category"] == format!("own{chosen}");
        // It may not have come back yet from what it was told.
        assert!(is_chosen || subscription["lag"] == 0, "{subscription}");
        assert!(is_chosen || subscription["position"] == position);
    }
}

fn wait_for_subscribers(address: SocketAddr, expected: u64) {
    let started = Instant::now();
    while subscribers(address) != expected {
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "still {}",
            subscribers(address)
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_client_that_goes_is_noticed_at_once() {
    let server = TestServer::production();
    let frames = Frames::open(server.address, "/subscribe?all=true");
    wait_for_subscribers(server.address, 1);
    drop(frames);
    wait_for_subscribers(server.address, 0);
}

#[test]
fn a_client_that_does_not_read_hinders_nobody() {
    let server = TestServer::production();
    let mut lazy = Connection::open(server.address);
    lazy.send("GET", "/events?all=true&position=0", &bearer(), b"");
    let data = "x".repeat(100_000);
    for _ in 0..300 {
        let call = format!(r#"["stream.write","a-1",{{"type":"T","data":{{"x":"{data}"}}}}]"#);
        assert_eq!(rpc(server.address, &call).status, 200);
    }
    let mut frames = Frames::open(server.address, "/subscribe?category=a");
    for position in 0..300 {
        assert_eq!(
            frames.next_data().unwrap(),
            poke("a-1", position, position + 1)
        );
    }
    // It gets everything when it reads after all.
    let (status, _) = lazy.head();
    assert_eq!(status, 200);
    let mut bytes = 0;
    while bytes < 300 * 100_000 {
        bytes += lazy.chunk().unwrap().len();
    }
}
