//! One event, both worlds: what one protocol writes, the others see, at the same position and with
//! everything that belongs to it.

use serde_json::{Value, json};
use tempfile::TempDir;
use trefoil_grpc::{
    AppendCondition, AppendRequest, Event, MetadataEntry, Query, QueryItem, ReadRequest,
    SequencedEvent, SubscribeRequest, TrackingInfo,
};

use super::grpc::Grpc;
use crate::harness::{ADMIN, Client, SMALL_PARTS, Server, Sse};

const ID: &str = "11111111-1111-4111-8111-111111111111";

struct Worlds {
    _data: TempDir,
    server: Server,
    http: Client,
    grpc: Grpc,
}

impl Worlds {
    fn new() -> Self {
        let data = TempDir::new().unwrap();
        let server = Server::on(data.path(), &SMALL_PARTS);
        Self {
            _data: data,
            http: server.client(),
            grpc: Grpc::connect(server.grpc_port, ADMIN),
            server,
        }
    }

    fn append(&mut self, event: Event) -> u64 {
        let request = AppendRequest {
            events: vec![event],
            ..AppendRequest::default()
        };
        let Grpc { runtime, client } = &mut self.grpc;
        runtime.block_on(client.append(request)).unwrap()
    }

    fn read(&mut self, items: Vec<QueryItem>) -> Vec<SequencedEvent> {
        let request = ReadRequest {
            query: Some(Query { items }),
            ..ReadRequest::default()
        };
        let Grpc { runtime, client } = &mut self.grpc;
        runtime.block_on(async {
            let mut stream = client.read(request).await.unwrap();
            let mut events = Vec::new();
            while let Some(batch) = stream.message().await.unwrap() {
                events.extend(batch.events);
            }
            events
        })
    }

    fn rpc(&mut self, call: &Value) -> Value {
        self.http.rpc(call).ok()
    }
}

fn event(kind: &str, tags: &[&str], data: &'static [u8]) -> Event {
    Event {
        event_type: kind.to_owned(),
        tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
        data: data.into(),
        ..Event::default()
    }
}

fn entry(key: &str, value: &str) -> MetadataEntry {
    MetadataEntry {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

fn tagged(tag: &str) -> Vec<QueryItem> {
    vec![QueryItem {
        types: Vec::new(),
        tags: vec![tag.to_owned()],
    }]
}

/// `[id, streamName, type, position, globalPosition, data, metadata, time, tags]`
#[track_caller]
fn assert_row(row: &Value, expected: &Value) {
    for (index, value) in expected.as_array().unwrap().iter().enumerate() {
        if value != "anything" {
            assert_eq!(&row[index], value, "element {index} of {row}");
        }
    }
}

#[test]
fn what_grpc_appends_is_seen_as_json() {
    let mut worlds = Worlds::new();
    let mut first = event("Moved", &["a", "größe"], br#"{"n": 1.0, "deep": [null]}"#);
    first.uuid = ID.to_owned();
    first.metadata = vec![entry("user", "ada"), entry("n", "7")];
    assert_eq!(worlds.append(first), 1);
    assert_eq!(worlds.append(event("Moved", &["a"], b"\x00\xff\xfe")), 2);
    assert_eq!(worlds.append(event("Moved", &["a"], b"")), 3);
    assert_eq!(worlds.append(event("Moved", &["b"], b"17")), 4);
    let expected = [
        json!([ID, "", "Moved", -1, 1, {"n": 1.0, "deep": [null]}, {"user": "ada", "n": "7"},
            "anything", ["a", "größe"]]),
        json!(["anything", "", "Moved", -1, 2, {"$base64": "AP/+"}, null, "anything", ["a"]]),
        json!(["anything", "", "Moved", -1, 3, {"$base64": ""}, null, "anything", ["a"]]),
        json!(["anything", "", "Moved", -1, 4, 17, null, "anything", ["b"]]),
    ];
    let all = worlds.rpc(&json!(["events.query", {"items": []}]));
    assert_eq!(
        (&all["head"], all["events"].as_array().unwrap().len()),
        (&json!(4), 4)
    );
    let by_category = worlds.rpc(&json!(["category.get", "", {"batchSize": -1}]));
    for (index, row) in expected.iter().enumerate() {
        assert_row(&all["events"][index], row);
        let without_tags = Value::from(row.as_array().unwrap()[..8].to_vec());
        assert_row(&by_category[index], &without_tags);
    }
    let tagged = worlds.rpc(&json!(["events.query", {"items": [{"tags": ["größe"]}]}]));
    assert_eq!(tagged["events"][0], all["events"][0]);
    // The text of the body is kept as it came.
    let text = worlds.http.rpc(&json!(["events.query", {"items": []}]));
    assert!(text.text().contains(r#"{"n": 1.0, "deep": [null]}"#));
    // An id is taken, whoever gave it.
    let call = json!(["stream.write", "s-1", {"type": "T", "data": {}}, {"id": ID}]);
    assert_eq!(worlds.http.rpc(&call).code(), "DUPLICATE_ID");
}

#[test]
fn what_is_written_to_a_stream_is_seen_over_grpc() {
    let mut worlds = Worlds::new();
    let write = r#"["stream.write","account-1",{"type":"Opened","data":{"b":1.50,"a": "é"},"metadata":{"user":"ada","n":7}}]"#;
    worlds.http.post("/rpc", write.as_bytes()).ok();
    let commit = json!({"events": [
        {"stream": "account-1", "type": "Moved", "data": [1, 2], "tags": ["a", "b"], "id": ID},
        {"type": "Moved", "data": "text", "tags": ["a"]}]});
    worlds.rpc(&json!(["commit", commit]));
    let all = worlds.read(Vec::new());
    let mut opened = event("Opened", &[], r#"{"b":1.50,"a": "é"}"#.as_bytes());
    opened.metadata = vec![entry("user", "ada"), entry("n", "7")];
    let mut moved = event("Moved", &["a", "b"], b"[1,2]");
    moved.uuid = ID.to_owned();
    let expected = [opened, moved, event("Moved", &["a"], br#""text""#)];
    for ((seen, expected), position) in all.iter().zip(expected).zip(1..) {
        assert_eq!(
            (seen.position, seen.event.as_ref()),
            (position, Some(&expected))
        );
    }
    assert_eq!(all.len(), 3);
    assert_eq!(worlds.read(tagged("a")), all[1..]);
    assert_eq!(worlds.read(tagged("b")), all[1..2]);
}

#[test]
fn conditions_see_events_of_the_other_world() {
    let mut worlds = Worlds::new();
    let commit = json!({"events": [{"stream": "s-1", "type": "Moved", "data": {}, "tags": ["a"]}]});
    worlds.rpc(&json!(["commit", commit]));
    let request = |after: Option<u64>| AppendRequest {
        events: vec![event("Moved", &["a"], b"x")],
        condition: Some(AppendCondition {
            fail_if_events_match: Some(Query { items: tagged("a") }),
            after,
        }),
        tracking_info: None,
    };
    let Grpc { runtime, client } = &mut worlds.grpc;
    let refused = runtime.block_on(client.append(request(None))).unwrap_err();
    assert!(refused.message().contains("position 1 "), "{refused:?}");
    assert_eq!(
        runtime.block_on(client.append(request(Some(1)))).unwrap(),
        2
    );
    let query = json!({"items": [{"types": ["Moved"], "tags": ["a"]}]});
    let commit = json!({"events": [{"stream": "s-1", "type": "Moved", "data": {}}],
        "conditions": [{"stream": "s-1", "expectedVersion": 0}, {"query": query, "after": 1}]});
    let refused = worlds.http.rpc(&json!(["commit", commit]));
    assert_eq!(
        (refused.status, refused.code()),
        (409, "CONDITION_FAILED".to_owned())
    );
    let details = refused.json()["error"]["details"].take();
    assert_eq!(
        (&details["condition"], &details["globalPosition"]),
        (&json!(1), &json!(2))
    );
    // An event without a stream moves no stream on, and a query can be kept to a stream.
    let query = json!({"items": [{"tags": ["a"]}], "stream": "s-1"});
    let commit = json!({"events": [{"stream": "s-1", "type": "Moved", "data": {}}],
        "conditions": [{"stream": "s-1", "expectedVersion": 0}, {"query": query, "after": 1}]});
    assert_eq!(worlds.rpc(&json!(["commit", commit]))["globalPosition"], 3);
}

#[test]
fn subscribers_of_either_world_see_both() {
    let mut worlds = Worlds::new();
    let sse = Sse::open(
        &worlds.server,
        &format!("/subscribe?token={ADMIN}&tag=a"),
        &[],
    );
    let subscribe = SubscribeRequest {
        query: Some(Query { items: tagged("a") }),
        ..SubscribeRequest::default()
    };
    let Grpc { runtime, client } = &mut worlds.grpc;
    let mut stream = runtime.block_on(client.subscribe(subscribe)).unwrap();
    worlds.append(event("Moved", &["a"], b"1"));
    worlds.append(event("Moved", &["b"], b"2"));
    let commit = json!({"events": [
        {"stream": "s-1", "type": "Moved", "data": 3, "tags": ["a"]}]});
    worlds.rpc(&json!(["commit", commit]));
    let mut positions = Vec::new();
    while positions.len() < 2 {
        let batch = worlds.grpc.runtime.block_on(stream.message()).unwrap();
        positions.extend(batch.unwrap().events.iter().map(|event| event.position));
    }
    assert_eq!(positions, [1, 3]);
    let told = [sse.data(), sse.data()].map(|data| data["globalPosition"].clone());
    assert_eq!(told, [json!(1), json!(3)]);
}

#[test]
fn a_tracked_position_is_one_for_both_worlds() {
    let mut worlds = Worlds::new();
    let request = |position: u64| AppendRequest {
        events: vec![event("Copied", &["a"], b"1")],
        condition: None,
        tracking_info: Some(TrackingInfo {
            source: "upstream".to_owned(),
            position,
        }),
    };
    let Grpc { runtime, client } = &mut worlds.grpc;
    runtime.block_on(client.append(request(5))).unwrap();
    assert_eq!(worlds.rpc(&json!(["events.tracking", "upstream"])), 5);
    let commit = |position: u64| {
        json!(["commit", {"events": [{"type": "Copied", "data": {}}],
        "tracking": {"source": "upstream", "position": position}}])
    };
    assert_eq!(worlds.http.rpc(&commit(5)).status, 409);
    worlds.rpc(&commit(6));
    let Grpc { runtime, client } = &mut worlds.grpc;
    assert_eq!(
        runtime.block_on(client.tracking("upstream")).unwrap(),
        Some(6)
    );
    let refused = runtime.block_on(client.append(request(6))).unwrap_err();
    assert_eq!(refused.code(), trefoil_grpc::Code::FailedPrecondition);
    let tracked = worlds.read(Vec::new());
    let tracked = tracked
        .iter()
        .map(|seen| seen.tracking_info.as_ref().unwrap().position);
    assert!(tracked.eq([5, 6]));
}
