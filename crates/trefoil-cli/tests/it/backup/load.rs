//! Clients of all three protocols whose every commit changes events and state together, so that at
//! each single commit it can be said whether both are of it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value as Json, json};
use trefoil_grpc::{AppendCondition, AppendRequest, Event, Query, QueryItem, TrackingInfo};

use crate::dcb::Grpc;
use crate::harness::{ADMIN, Client, Resp, Server, Value};

/// How many rounds there are within the whole test suite.
const ROUNDS: u64 = 3;
/// Small parts, so that segments are compressed and their changes dropped all the time.
pub(super) const ARGUMENTS: [&str; 4] = [
    "--tail-events-max=2000",
    "--segment-size-max=512KiB",
    "--plain-segments=1",
    "--log-level=warn",
];
/// How many clients there are of each sort.
const CLIENTS: u64 = 2;
/// A section sells out; then there is the next one.
const SEATS_PER_SECTION: u64 = 400;

/// Where a server listens.
#[derive(Clone, Copy)]
struct Ports {
    http: u16,
    grpc: u16,
    resp: u16,
}

/// Returns how many rounds there are: `TREFOIL_SOAK_ROUNDS`, if that is set.
pub(super) fn rounds() -> u64 {
    let rounds = std::env::var("TREFOIL_SOAK_ROUNDS").ok();
    rounds.map_or(ROUNDS, |text| text.parse().unwrap())
}

/// Runs `work` under load. The load ends with it, or with the server.
pub(super) fn under_load<T>(server: &Server, round: u64, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    let ports = Ports {
        http: server.port,
        grpc: server.grpc_port,
        resp: server.resp_port,
    };
    thread::scope(|scope| {
        let end = EndOfLoad(&is_over);
        for number in 0..CLIENTS {
            let is_over = &is_over;
            let client = format!("{round}-{number}");
            for run in [http, resp, grpc, seats] {
                let client = client.clone();
                scope.spawn(move || run(ports, &client, is_over));
            }
        }
        let done = work();
        drop(end);
        done
    })
}

/// Ends the load, also when the test fails.
struct EndOfLoad<'a>(&'a AtomicBool);

impl Drop for EndOfLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Appends on the condition of a version, and counts in the same commit.
fn http(ports: Ports, name: &str, is_over: &AtomicBool) {
    let mut client = Client::new(ports.http, Some(ADMIN));
    for number in 0_i64.. {
        let stream = format!("http-{name}");
        let commit = json!(["commit", {
            "conditions": [{"stream": stream, "expectedVersion": number - 1}],
            "events": [{"stream": stream, "type": "Counted", "data": {"n": number}}],
            "state": [
                ["INCR", format!("count:{stream}")],
                ["RPUSH", format!("list:{stream}"), number.to_string()],
                ["SET", format!("value:{}", number % 500), "x".repeat(300)],
            ],
        }]);
        let Ok(answer) = client.try_rpc(&commit) else {
            return;
        };
        answer.ok();
        if is_over.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// The same as a transaction of Redis.
fn resp(ports: Ports, name: &str, is_over: &AtomicBool) {
    let Ok(mut client) = Resp::connect(ports.resp) else {
        return;
    };
    let stream = format!("resp-{name}");
    let (count, list) = (format!("count:{stream}"), format!("list:{stream}"));
    if client.try_call(&["AUTH", ADMIN]).is_err() {
        return;
    }
    while !is_over.load(Ordering::Relaxed) {
        let steps: [&[&str]; 5] = [
            &["MULTI"],
            &["EVENT.APPEND", &stream, "Counted", "{}"],
            &["INCR", &count],
            &["RPUSH", &list, "x"],
            &["EXEC"],
        ];
        for step in steps {
            match client.try_call(step) {
                Ok(reply) => assert!(!matches!(reply, Value::Error(_)), "{reply:?}"),
                Err(_) => return,
            }
        }
    }
}

/// Appends what nobody has appended before, and tracks a position with it.
fn grpc(ports: Ports, name: &str, is_over: &AtomicBool) {
    let Grpc { runtime, client } = &mut Grpc::connect(ports.grpc, ADMIN);
    for position in 1.. {
        let tag = format!("copy:{name}:{position}");
        let items = vec![QueryItem {
            types: Vec::new(),
            tags: vec![tag.clone()],
        }];
        let request = AppendRequest {
            events: vec![Event {
                event_type: "Copied".to_owned(),
                tags: vec![tag],
                data: b"1".to_vec().into(),
                ..Event::default()
            }],
            condition: Some(AppendCondition {
                fail_if_events_match: Some(Query { items }),
                after: None,
            }),
            tracking_info: Some(TrackingInfo {
                source: format!("upstream-{name}"),
                position,
            }),
        };
        let appended = runtime.block_on(client.append(request));
        if appended.is_err() || is_over.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Reserves, sells and releases seats.
fn seats(ports: Ports, name: &str, is_over: &AtomicBool) {
    let mut client = Client::new(ports.http, Some(ADMIN));
    for number in 0_u64.. {
        let section = format!("{name}-{}", number / (SEATS_PER_SECTION / 2));
        let booking = format!("{name}-{number}");
        let mut calls = Vec::new();
        if number % (SEATS_PER_SECTION / 2) == 0 {
            let rows = SEATS_PER_SECTION / 10;
            calls.push(json!(["seats.init", {"event": "e", "section": section, "rows": rows, "seatsPerRow": 10}]));
        }
        calls.push(json!(["seats.reserve", {"event": "e", "section": section, "booking": booking, "buyer": booking, "best": 2, "holdMs": 200}]));
        match number % 3 {
            0 => calls.push(json!(["seats.finalize", {"booking": booking}])),
            1 => calls.push(json!(["seats.release", {"booking": booking}])),
            _ => {}
        }
        for call in calls {
            // Who was too slow has lost the seats, which is no error here.
            if client.try_rpc(&call).is_err() {
                return;
            }
        }
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Checks a server that was restored from a backup: what it has is what the other one had at that
/// commit, and events and state are of the same commit. Returns how many events there were.
#[track_caller]
pub(super) fn check(restored: &Server, position: u64, original: &[String]) -> usize {
    let lines = super::exported(restored);
    let n_events = usize::try_from(position).unwrap();
    assert!(lines.len() >= n_events, "{} of {n_events}", lines.len());
    // Timers that are due may have run since.
    assert!(
        lines[..n_events] == original[..n_events],
        "the events are others"
    );
    let events: Vec<Json> = { lines[..n_events].iter() }
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut counted: HashMap<String, i64> = HashMap::new();
    let mut tracked: HashMap<String, u64> = HashMap::new();
    let (mut tags, mut n_reserved) = (HashSet::new(), 0);
    for event in &events {
        match event["type"].as_str().unwrap() {
            "Counted" => {
                let stream = event["stream"].as_str().unwrap();
                *counted.entry(stream.to_owned()).or_default() += 1;
            }
            "Copied" => {
                assert!(
                    tags.insert(event["tags"][0].clone()),
                    "{event} is there twice"
                );
                let source = event["tracking"]["source"].as_str().unwrap();
                let at = event["tracking"]["position"].as_u64().unwrap();
                tracked.insert(source.to_owned(), at);
            }
            "SeatsReserved" => n_reserved += 1,
            _ => {}
        }
    }
    let is_all = [counted.len(), tracked.len(), n_reserved];
    assert!(is_all.iter().all(|n| *n > 0), "{is_all:?}");
    let (mut client, mut resp) = (restored.client(), restored.resp());
    for (stream, n) in &counted {
        let count = resp.line(&format!("GET count:{stream}"));
        assert_eq!(count, Value::bulk(n.to_string()), "{stream}");
        assert_eq!(
            resp.line(&format!("LLEN list:{stream}")),
            Value::Integer(*n)
        );
    }
    for (source, at) in &tracked {
        assert_eq!(client.rpc(&json!(["events.tracking", source])).ok(), *at);
    }
    let violations = client.rpc(&json!(["seats.check", {"event": "e"}]));
    assert_eq!(violations.ok(), json!([]));
    n_events
}
