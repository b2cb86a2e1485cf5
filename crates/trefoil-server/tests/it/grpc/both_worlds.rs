//! One event, both worlds: what gRPC writes is seen over HTTP, and the other way round.

use std::time::Duration;

use serde_json::{Value, json};
use trefoil_grpc::{Event, MetadataEntry, ReadRequest, SubscribeRequest};

use super::{append, connect, event, query, read};
use crate::client::rpc;
use crate::harness::TestServer;

fn call(server: &TestServer, body: &Value) -> Value {
    let reply = rpc(server.address, &body.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&reply.body).unwrap()
}

#[tokio::test]
async fn events_of_grpc_are_read_over_http() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let with_data = |data: &'static [u8]| Event {
        data: data.into(),
        ..event("T", &["a", "b"])
    };
    let mut with_metadata = with_data(b" {\"n\": 1.0} ");
    with_metadata.metadata = vec![MetadataEntry {
        key: "correlationStreamName".into(),
        value: "workflow-1".into(),
    }];
    let events = vec![with_metadata, with_data(b"\xff\0"), with_data(b"")];
    client.append(append(events)).await.unwrap();
    let rows = call(&server, &json!(["category.get", ""]));
    let shown = |row: &Value| json!([row[1], row[2], row[3], row[4], row[5], row[6]]);
    let shown: Vec<Value> = rows.as_array().unwrap().iter().map(shown).collect();
    let metadata = json!({"correlationStreamName": "workflow-1"});
    assert_eq!(shown[0], json!(["", "T", -1, 1, {"n": 1.0}, metadata]));
    assert_eq!(shown[1], json!(["", "T", -1, 2, {"$base64": "/wA="}, null]));
    assert_eq!(shown[2], json!(["", "T", -1, 3, {"$base64": ""}, null]));
    let correlated = json!(["category.get", "", {"correlation": "workflow"}]);
    assert_eq!(call(&server, &correlated).as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn events_of_streams_are_read_over_grpc() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let data = r#"{"amount": 1.50}"#;
    let body = format!(
        r#"["commit",{{"events":[{{"stream":"account-1","type":"Opened","data":{data},"id":"{id}","tags":["owner:ada"],"metadata":{{"n": 1.50,"t":"x","o":{{"a":[]}}}}}}]}}]"#
    );
    assert_eq!(rpc(server.address, &body).status, 200);
    let written = json!(["stream.write", "account-1", {"type": "Closed", "data": {}}]);
    call(&server, &written);
    let stored = read(&mut client, ReadRequest::default()).await;
    let entry = |key: &str, value: &str| MetadataEntry {
        key: key.into(),
        value: value.into(),
    };
    let expected = Event {
        event_type: "Opened".into(),
        tags: vec!["owner:ada".into()],
        data: data.into(),
        uuid: id.into(),
        metadata: vec![
            entry("n", "1.50"),
            entry("t", "x"),
            entry("o", r#"{"a":[]}"#),
        ],
    };
    assert_eq!(stored[0].event, Some(expected));
    let second = stored[1].event.as_ref().unwrap();
    assert_eq!((&*second.event_type, &*second.uuid), ("Closed", ""));
    let request = ReadRequest {
        query: Some(query(&[], &["owner:ada"])),
        ..ReadRequest::default()
    };
    assert_eq!(read(&mut client, request).await.len(), 1);
}

#[tokio::test]
async fn a_subscription_of_grpc_is_listed_over_http() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    client
        .append(append(vec![event("A", &["x"]), event("B", &[])]))
        .await
        .unwrap();
    let request = SubscribeRequest {
        query: Some(query(&["A"], &["x"])),
        ..SubscribeRequest::default()
    };
    let mut feed = client.subscribe(request).await.unwrap();
    assert!(feed.message().await.unwrap().is_some());
    // It is at the end once it waits for more.
    let mut listed = call(&server, &json!(["ns.subscriptions"]));
    while listed[0]["lag"] != 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        listed = call(&server, &json!(["ns.subscriptions"]));
    }
    let shown =
        ["protocol", "endpoint", "query", "position", "events"].map(|name| &listed[0][name]);
    let followed = json!({"items": [{"types": ["A"], "tags": ["x"]}]});
    assert_eq!(json!(shown), json!(["gRPC", "Subscribe", followed, 2, 1]));
}
