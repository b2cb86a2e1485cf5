//! Names that are longer than what is stored may be: whatever is asked with one, over whatever
//! protocol, gets an answer, and nobody else notices.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::runtime::Builder;
use trefoil_grpc::{
    AppendCondition, AppendRequest, Client, Code, Connect, Event, Query, QueryItem, ReadRequest,
    Status, SubscribeRequest, TrackingInfo,
};

use crate::harness::{ADMIN, Resp, SMALL_PARTS, Server, Value, encode};

/// Maps take keys of 65,535 bytes.
const LONG_BYTES: usize = 70_000;

/// A call of every command. Each of its words but the first becomes a long name in turn.
const CALLS: &str = include_str!("long_names.txt");

/// A server whose state, index and tracked positions are in maps on disk.
fn server_with_maps() -> (Server, TempDir) {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &SMALL_PARTS);
    fill(&server);
    assert!(server.terminate().success());
    (Server::on(data.path(), &SMALL_PARTS), data)
}

fn fill(server: &Server) {
    let mut resp = server.resp();
    for line in [
        "SET kept text",
        "SET s text",
        "SET n 5",
        "HSET h f 1 g 2",
        "SADD m a b",
        "ZADD z 1 a 2 b",
        "RPUSH l a b c",
    ] {
        assert!(!matches!(resp.line(line), Value::Error(_)), "{line}");
    }
    for number in 0..20 {
        let events: Vec<Json> = (0..16)
            .map(|_| json!({"stream": "account-1", "type": "Opened", "data": {}, "tags": ["a"]}))
            .collect();
        let tracking = json!({"source": "other", "position": number + 1});
        let commit = json!(["commit", {"events": events, "tracking": tracking}]);
        server.client().rpc(&commit).ok();
    }
}

/// The answer to a call on a connection of its own.
#[track_caller]
fn ask(server: &Server, calls: &[Vec<String>]) -> Vec<Value> {
    let mut connection = server.resp();
    let mut request = Vec::new();
    for words in calls {
        encode(words, &mut request);
    }
    connection.send(&request).unwrap();
    calls
        .iter()
        .map(|words| answer(&mut connection, words))
        .collect()
}

#[track_caller]
fn answer(connection: &mut Resp, words: &[String]) -> Value {
    let short = words.iter().map(|word| &word[..word.len().min(20)]);
    let short: Vec<&str> = short.collect();
    let reply = connection.receive();
    let reply = reply.unwrap_or_else(|error| panic!("{short:?}: {error}"));
    if let Value::Error(text) = &reply {
        // What the engine refuses was not checked where it entered.
        let fault = [
            "internal",
            "READONLY",
            "name of an entry",
            "map's key",
            "closed",
        ];
        let is_fault = fault.iter().any(|fault| text.contains(fault));
        assert!(!is_fault, "{short:?}: {text}");
    }
    reply
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The calls with a long name in each place, one after the other.
fn with_long_names(line: &str) -> Vec<Vec<String>> {
    let words = words(line);
    let long = |place: usize| {
        let mut words = words.clone();
        words[place] = longer(&words[place]);
        words
    };
    (1..words.len()).map(long).collect()
}

/// A long name of the form of a word: a bound, a pattern, a field of a pattern's key, or a name.
fn longer(word: &str) -> String {
    let long = "x".repeat(LONG_BYTES);
    match word {
        word if word.starts_with('[') => format!("[{long}"),
        word if word.contains("->") => format!("h->{long}"),
        word if word.contains('*') => format!("{long}*"),
        _ => long,
    }
}

#[track_caller]
fn assert_unharmed(server: &Server) {
    let mut resp = server.resp();
    assert_eq!(resp.line("SET after 1"), Value::ok());
    assert_eq!(resp.line("GET kept"), Value::bulk("text"));
    let mut client = server.client();
    client.write("account-2", &json!({}));
    client.rpc(&json!(["stream.version", "account-1"])).ok();
    let metrics = client.get("/metrics");
    let panics = metrics
        .text()
        .lines()
        .find(|line| line.starts_with("trefoil_panics_total"));
    assert_eq!(panics, Some("trefoil_panics_total 0"));
}

#[test]
fn every_command_of_resp_answers_a_long_name() {
    let (server, _data) = server_with_maps();
    let called: BTreeSet<String> = CALLS
        .lines()
        .filter_map(|line| Some(line.split_whitespace().next()?.to_lowercase()))
        .collect();
    let known = server.resp().call(&["COMMAND", "LIST"]);
    let known = known.elements().unwrap().iter();
    let known = known.map(|name| String::from_utf8_lossy(name.bytes()).to_lowercase());
    let missing: Vec<String> = known
        .filter(|name| !name.contains('|') && !called.contains(name))
        .collect();
    assert!(missing.is_empty(), "not in long_names.txt: {missing:?}");
    for line in CALLS.lines().filter(|line| !line.is_empty()) {
        for long in with_long_names(line) {
            ask(&server, std::slice::from_ref(&long));
            ask(&server, &[words("MULTI"), long, words("EXEC")]);
        }
    }
    assert_unharmed(&server);
}

#[test]
fn a_long_name_is_not_there_or_refused() {
    let (server, _data) = server_with_maps();
    let long = || "x".repeat(LONG_BYTES);
    let one = |line: &str| {
        let words = line.split(' ').map(|word| match word {
            "LONG" => long(),
            word => word.to_owned(),
        });
        ask(&server, &[words.collect()]).remove(0)
    };
    for line in [
        "DEL LONG",
        "EXISTS LONG",
        "HDEL h LONG",
        "SREM m LONG",
        "ZREM z LONG",
    ] {
        assert_eq!(one(line), Value::Integer(0), "{line}");
    }
    for line in ["GET LONG", "HGET h LONG", "ZSCORE z LONG"] {
        assert_eq!(one(line), Value::NilBulk, "{line}");
    }
    for line in [
        "SET LONG 1",
        "INCR LONG",
        "HSET h LONG 1",
        "SADD m LONG",
        "ZADD z 1 LONG",
    ] {
        let refused = one(line);
        let is_named = matches!(&refused, Value::Error(text) if text.contains("over the limit"));
        assert!(is_named, "{line}: {refused:?}");
    }
    assert_eq!(one("WATCH LONG"), Value::ok());
    for guard in ["NX LONG", "IFNE LONG 1", "HNX h LONG", "HNX LONG f"] {
        let exec = format!("EXEC {guard}");
        let exec = exec.split(' ').map(|word| word.replace("LONG", &long()));
        let calls = [words("MULTI"), words("SET guarded 1"), exec.collect()];
        let replies = ask(&server, &calls);
        assert_eq!(replies[2], Value::Array(vec![Value::ok()]), "{guard}");
    }
    assert_unharmed(&server);
}

/// Calls of the methods that take a name in more places than their first arguments.
fn particular_calls(long: &str) -> Vec<Json> {
    let event = json!({"stream": "account-1", "type": "T", "data": {}});
    let on = |condition: Json| json!(["commit", {"events": [event], "conditions": [condition]}]);
    vec![
        json!(["stream.write", "account-1", {"type": long, "data": {}}]),
        json!(["stream.write", "account-1", {"type": "T", "data": {}, "tags": [long]}]),
        json!(["stream.last", "account-1", {"type": long}]),
        json!(["category.get", "account", {"correlation": long}]),
        json!(["category.get", "account", {"type": long}]),
        json!(["ns.streams", {"prefix": long}]),
        json!(["ns.streams", {"cursor": long}]),
        json!(["ns.streams", {"prefix": "x", "cursor": long}]),
        json!(["ns.categories", {"prefix": long, "cursor": long}]),
        json!(["events.query", {"query": {"items": [{"types": [long]}, {"tags": [long]}]}}]),
        on(json!({"stream": long, "expectedVersion": -1})),
        on(json!({"query": {"items": [{"types": [long]}]}})),
        on(json!({"query": {"items": [{"tags": [long]}]}})),
        on(json!({"key": long, "exists": false})),
        on(json!({"key": long, "equals": "1"})),
        on(json!({"key": "h", "field": long, "exists": false})),
        on(json!({"key": "h", "field": long, "differs": "1"})),
        json!(["commit", {"id": long, "events": [event]}]),
        json!(["commit", {"events": [event], "tracking": {"source": long, "position": 1}}]),
        json!(["commit", {"state": [["DEL", long], ["GET", long], ["HGET", "h", long]]}]),
        json!(["commit", {"state": [["SET", long, "1"]]}]),
        json!(["commit", {"state": [["INCR", long]], "strict": true}]),
    ]
}

/// Methods whose first arguments are names.
const METHODS: &str = "stream.write stream.get stream.last stream.version category.get \
    events.tracking position.at ns.create ns.delete ns.info ns.token ns.reopen seats.init seats.sections \
    seats.stats seats.map seats.reserve seats.finalize seats.release seats.booking seats.check";

fn general_calls(long: &str) -> Vec<Json> {
    let of = |method: &str| {
        [
            json!([method, long]),
            json!([method, long, long, {}]),
            json!([method, "a", long, {}]),
            json!([method, {"source": long, "event": long, "section": "A"}]),
            json!([method, {"event": "a", "section": long, "booking": long}]),
        ]
    };
    METHODS.split_whitespace().flat_map(of).collect()
}

#[test]
fn every_method_of_http_answers_a_long_name() {
    let (server, _data) = server_with_maps();
    let long = "x".repeat(LONG_BYTES);
    let mut client = server.client();
    for call in [particular_calls(&long), general_calls(&long)].concat() {
        let answer = client.rpc(&call);
        let call = call.to_string();
        assert!(answer.status < 500, "{}: {answer:?}", &call[..60]);
    }
    let paths = [
        "/subscribe?stream=",
        "/subscribe?category=",
        "/events?stream=",
    ];
    for path in paths.into_iter().chain(["/dcb/read?tags="]) {
        let answer = server.client().get(&format!("{path}{long}"));
        assert!(answer.status < 500, "{path}: {answer:?}");
    }
    let read = json!({"query": {"items": [{"tags": [long]}]}}).to_string();
    assert!(client.post("/dcb/read", read.as_bytes()).status < 500);
    assert_unharmed(&server);
}

fn append(event_type: &str, tag: &str) -> AppendRequest {
    let event = Event {
        event_type: event_type.to_owned(),
        tags: vec![tag.to_owned()],
        ..Event::default()
    };
    AppendRequest {
        events: vec![event],
        ..AppendRequest::default()
    }
}

fn query(types: &[&str], tags: &[&str]) -> Query {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Query {
        items: vec![QueryItem {
            types: owned(types),
            tags: owned(tags),
        }],
    }
}

/// Makes every call with a long name, and returns how those ended that failed.
async fn call_over_grpc(client: &mut Client, long: &str) -> Vec<Status> {
    let mut failed = Vec::new();
    failed.extend(client.tracking(long).await.err());
    failed.extend(client.append(append(long, "a")).await.err());
    failed.extend(client.append(append("T", long)).await.err());
    let mut tracked = append("T", "a");
    tracked.tracking_info = Some(TrackingInfo {
        source: long.to_owned(),
        position: 1,
    });
    failed.extend(client.append(tracked).await.err());
    for query in [query(&[long], &[]), query(&[], &[long])] {
        let read = ReadRequest {
            query: Some(query.clone()),
            ..ReadRequest::default()
        };
        failed.extend(client.read(read).await.err());
        let subscribe = SubscribeRequest {
            query: Some(query.clone()),
            ..SubscribeRequest::default()
        };
        failed.extend(client.subscribe(subscribe).await.err());
        let mut conditional = append("T", "a");
        conditional.condition = Some(AppendCondition {
            fail_if_events_match: Some(query),
            after: None,
        });
        failed.extend(client.append(conditional).await.err());
    }
    failed
}

#[test]
fn every_method_of_grpc_answers_a_long_name() {
    let (server, _data) = server_with_maps();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let failed = runtime.block_on(async {
        let connect = Connect {
            url: format!("http://127.0.0.1:{}", server.grpc_port),
            token: Some(ADMIN.to_owned()),
            ..Connect::default()
        };
        let mut client = Client::connect(connect).await.unwrap();
        call_over_grpc(&mut client, &"x".repeat(LONG_BYTES)).await
    });
    for status in failed {
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    }
    assert_unharmed(&server);
}
