//! What a release writes into its data directory: something of everything that is stored.

use serde_json::json;
use tokio::runtime::Runtime;
use trefoil_grpc::{AppendRequest, Client, Connect, Event, MetadataEntry, TrackingInfo};

use super::large;
use crate::harness::{ADMIN, Resp, Server, Value};

/// The namespace in which holds end, and so events follow.
pub(super) const BOX_OFFICE: &str = "box-office";
/// The namespace of which something is removed, which is used with a token that was added.
const REMOVING: &str = "tenant-b";
/// An event whose seats are held for some seconds, and the booking that holds them.
pub(super) const SOON_EVENT: &str = "soon";
pub(super) const SOON_BOOKING: &str = "soon-booking";
/// An event whose seats are held for most of a year.
pub(super) const LATER_EVENT: &str = "later";

/// The sources of tracked positions.
pub(super) const SOURCES: [&str; 2] = ["upstream", "quiet"];

/// How many transactions have an id, in each namespace that has events.
pub(super) const TRANSACTIONS: i64 = 20;

/// A token that a user brought along.
const BROUGHT: &str = "a key that was brought along";
/// In the year 2200, in milliseconds.
pub(super) const FAR: &str = "7258118400000";
const HOLD_SECONDS: &str = "25";
const HOLD_MOST_OF_A_YEAR: &str = "31000000";

/// Writes all of it; returns the namespaces and their tokens.
pub(super) fn write(server: &Server) -> Vec<(String, String)> {
    let mut admin = server.client();
    let brought = json!({"token": BROUGHT, "description": "moved here", "metadata": {"tier": 2}});
    let brought = json!(["ns.create", "tenant-a", brought]);
    admin.rpc(&brought).ok();
    let own = |id: &str| (id.to_owned(), server.client().create_namespace(id));
    let named = |id: &str| {
        let (_, token) = own(id);
        let create = json!(["token.create", {"name": "app", "expires": "2200-01-01T00:00:00Z"}]);
        let created = server.client_with(&token).rpc(&create).ok();
        (id.to_owned(), created["token"].as_str().unwrap().to_owned())
    };
    let namespaces = vec![
        ("default".to_owned(), ADMIN.to_owned()),
        ("tenant-a".to_owned(), BROUGHT.to_owned()),
        named(REMOVING),
        own("empty"),
        own(BOX_OFFICE),
    ];
    for (id, token) in &namespaces {
        match id.as_str() {
            "empty" => {}
            BOX_OFFICE => sell(server, token),
            "default" => {
                fill(server, token);
                change(server, token);
            }
            REMOVING => {
                fill(server, token);
                remove(server, token);
            }
            _ => fill(server, token),
        }
    }
    namespaces
}

/// Events of every kind, keys and transactions.
fn fill(server: &Server, token: &str) {
    streams(server, token);
    tags(server, token);
    bytes(server, token);
    let mut redis = connect(server, token);
    keys(&mut redis);
    transactions(&mut redis);
}

pub(super) fn connect(server: &Server, token: &str) -> Resp {
    let mut connection = Resp::connect(server.resp_port).unwrap();
    assert_eq!(connection.call(&["AUTH", token]), Value::ok());
    connection
}

fn streams(server: &Server, token: &str) {
    let mut client = server.client_with(token);
    for n in 0..150 {
        let stream = format!("account-{}", n % 7);
        let mut message = json!({"type": format!("Type{}", n % 3), "data": {"n": n}});
        if n % 4 == 0 {
            message["id"] = json!(format!("00000000-0000-4000-8000-{n:012}"));
            message["metadata"] = json!({"correlationStreamName": "order-1", "n": n});
        }
        client.rpc(&json!(["stream.write", stream, message])).ok();
    }
}

fn tags(server: &Server, token: &str) {
    let mut client = server.client_with(token);
    for n in 0..100 {
        let tags = [format!("course:{}", n % 5), format!("student:{n}")];
        let item = json!({"tags": tags, "types": ["Enrolled"]});
        let event = json!({"type": "Enrolled", "data": {"n": n}, "tags": tags});
        let logged = json!({"type": "Logged", "data": n, "stream": "audit", "tags": ["audit"]});
        let commit = json!({
            "conditions": [{"query": {"items": [item]}}],
            "events": [event, logged],
            "state": [["INCR", "enrolled"]],
            "tracking": {"source": "upstream", "position": n + 1},
        });
        client.rpc(&json!(["commit", commit])).ok();
    }
    let quiet = json!({"tracking": {"source": "quiet", "position": 1_u64 << 50}});
    client.rpc(&json!(["commit", quiet])).ok();
}

/// A stream is truncated, one is deleted, and events are redacted. There are a policy and quotas, which are
/// not reached.
fn remove(server: &Server, token: &str) {
    let quotas = json!({"quotas": {"diskBytes": 1_u64 << 40, "connections": 1000}});
    let settings = json!(["ns.settings", REMOVING, quotas]);
    server.client().rpc(&settings).ok();
    let mut client = server.client_with(token);
    for call in [
        json!(["stream.truncate", "account-1", {"position": 9}]),
        json!(["stream.delete", "account-2"]),
        json!(["retention.set", {"category": "account", "maxCount": 1000}]),
        json!(["event.redact", {"globalPosition": 5}]),
        json!(["event.redact", {"globalPosition": 155, "tags": true}]),
    ] {
        client.rpc(&call).ok();
    }
}

/// Bytes that are not JSON, without ids and with repeated ones, as UmaDB's clients send them.
fn bytes(server: &Server, token: &str) {
    let connect = Connect {
        url: format!("http://127.0.0.1:{}", server.grpc_port),
        token: Some(token.to_owned()),
        ca_certificate: None,
    };
    let event = |uuid: &str, data: &'static [u8]| Event {
        event_type: String::new(),
        tags: vec!["bytes".to_owned(), String::new()],
        data: data.into(),
        uuid: uuid.to_owned(),
        metadata: vec![MetadataEntry {
            key: "k".to_owned(),
            value: "\u{e9}\n".to_owned(),
        }],
    };
    let repeated = "00000000-0000-4000-8000-999999999999";
    let request = AppendRequest {
        events: vec![
            event("", b"\x00\xff"),
            event(repeated, b"{\n}"),
            event(repeated, b""),
        ],
        condition: None,
        tracking_info: Some(TrackingInfo {
            source: "upstream".to_owned(),
            position: 1000,
        }),
    };
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let mut client = Client::connect(connect).await.unwrap();
        client.append(request).await.unwrap();
    });
}

/// Strings, and when keys expire.
fn keys(redis: &mut Resp) {
    let long = "l".repeat(100_000);
    for words in [
        &["SET", "short", "value"][..],
        &["SET", "", "empty name"],
        &["SET", "long", &long],
        &["SET", "expires", "far", "PXAT", FAR],
        &["SET", "gone", "soon", "PX", "1"],
        &["SET", "deleted", &long],
        &["DEL", "deleted"],
        &["SETBIT", "bits", "100000", "1"],
        &["BITFIELD", "bits", "SET", "u2", "#7", "3"],
        &["INCRBYFLOAT", "float", "1.5"],
    ] {
        let reply = redis.call(words);
        assert!(!matches!(reply, Value::Error(_)), "{words:?}: {reply:?}");
    }
    redis.call(&[&b"SET"[..], b"\xff \x00", b"bytes"]);
}

/// Collections of every type, small and large, and fields that expire.
fn collections(redis: &mut Resp) {
    for size in [3, 300] {
        for n in 0..size {
            let (member, number) = (format!("member-{n}"), n.to_string());
            redis.call(&["HSET", &format!("hash-{size}"), &member, &number]);
            redis.call(&["SADD", &format!("set-{size}"), &member]);
            redis.call(&["ZADD", &format!("zset-{size}"), &number, &member]);
            redis.call(&["RPUSH", &format!("list-{size}"), &member]);
        }
        for key in ["hash", "set", "zset", "list"] {
            let (key, copy) = (format!("{key}-{size}"), format!("{key}-{size}-copy"));
            redis.call(&["COPY", &key, &copy]);
            redis.call(&["PEXPIREAT", &copy, FAR]);
        }
        let hash = format!("hash-{size}");
        redis.call(&["HPEXPIREAT", &hash, FAR, "FIELDS", "1", "member-1"]);
        redis.call(&["HDEL", &hash, "member-2"]);
    }
}

/// Transactions with events, and one that is stored under an id.
fn transactions(redis: &mut Resp) {
    for n in 0..TRANSACTIONS {
        let count = transaction(redis, n);
        assert_eq!(count, Value::Integer(n + 1));
    }
}

/// Sends a transaction under its id. Returns how many there were when it was executed.
pub(super) fn transaction(redis: &mut Resp, n: i64) -> Value {
    let data = format!("{{\"n\":{n}}}");
    redis.line("MULTI");
    redis.line("TREFOIL.STRICT ON");
    redis.call(&["TREFOIL.COMMITID", &format!("commit-{n}")]);
    redis.line("HINCRBY counts transactions 1");
    redis.call(&["EVENT.APPEND", "show-1", "Sold", &data, "TAG", "show:1"]);
    let replies = redis.line("EXEC");
    let is_count = |reply: &&Value| matches!(reply, Value::Integer(_));
    let count = replies.elements().unwrap().iter().find(is_count);
    count.cloned().unwrap()
}

/// Collections, and more changes than a log keeps: a snapshot of the state replaces them, and segments are
/// compressed. Later changes of the same keys are in the maps, and the last ones only in the log.
fn change(server: &Server, token: &str) {
    let mut redis = connect(server, token);
    collections(&mut redis);
    large::write(&mut redis, 0);
    let value = "x".repeat(500_000);
    for n in 0..40 {
        assert_eq!(
            redis.call(&["SET", "changed", &format!("{n}{value}")]),
            Value::ok()
        );
    }
    redis.line("SET changed seldom");
    large::write(&mut redis, 1);
    for n in 0..200 {
        redis.call(&["EVENT.APPEND", "after-1", "Later", &n.to_string()]);
    }
    large::write(&mut redis, 2);
}

/// Seats that are sold, released, reserved, and held for a short and a long time.
fn sell(server: &Server, token: &str) {
    let mut redis = connect(server, token);
    let mut seats = |line: &str| {
        let reply = redis.line(line);
        assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
    };
    for event in ["gala", LATER_EVENT, SOON_EVENT] {
        seats(&format!("SEATS.INIT {event} A ROWS 4 SEATS 10 PRICE 50"));
    }
    for n in 1..=4 {
        seats(&format!(
            "SEATS.RESERVE gala A booking-{n} alice SEATS {n}-1 {n}-2"
        ));
    }
    seats("SEATS.FINALIZE booking-1 alice");
    seats("SEATS.RELEASE booking-2 alice");
    let hold = HOLD_MOST_OF_A_YEAR;
    seats(&format!(
        "SEATS.RESERVE {LATER_EVENT} A later-booking bob SEATS 1-1 HOLD {hold}"
    ));
    let hold = HOLD_SECONDS;
    seats(&format!(
        "SEATS.RESERVE {SOON_EVENT} A {SOON_BOOKING} carol SEATS 1-1 HOLD {hold}"
    ));
}
