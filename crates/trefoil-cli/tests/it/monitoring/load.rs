//! A load that makes every metric move: two lives of one data directory.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use trefoil_grpc::{AppendRequest, Client as Grpc, Connect, Event, ReadRequest};

use super::exposed::Exposed;
use crate::harness::{ADMIN, Server, Sse, Value, connect};

/// Few namespaces and connections, so that both run out.
const TIGHT: [&str; 3] = [
    "--open-namespaces-max=2",
    "--connections-max=64",
    "--tail-events-max=64",
];

/// More state than stays in memory alone when nobody writes.
const STATE_BYTES: usize = 6 * 1024 * 1024;

/// The first life, which ends as by a power cut. Returns its metrics when it has just begun.
pub(super) fn before(data: &Path) -> Exposed {
    let server = Server::on(data, &TIGHT);
    let exposed = Exposed::of(&server);
    let mut client = server.client();
    for number in 0..10 {
        client.write("account-1", &json!({ "number": number }));
    }
    server.kill();
    exposed
}

/// The second life. Returns its metrics when it has just begun, and after the load.
pub(super) fn after(data: &Path) -> (Exposed, Exposed) {
    let server = Server::on(data, &TIGHT);
    // The namespace is opened by the first who asks.
    server.client().rpc(&json!(["events.head"])).ok();
    let exposed = Exposed::of(&server);
    let subscription = Sse::subscribe(&server, ADMIN, "category=account");
    assert!(subscription.next().is_some());
    let late = subscribe_without_reading(&server);
    over_http(&server);
    let grpc = over_grpc(&server);
    over_resp(&server);
    in_many_namespaces(&server);
    beyond_a_quota(&server);
    let crowd = crowd(&server);
    read_from_disk(&server);
    let after = Exposed::of(&server);
    drop((crowd, subscription, grpc, late));
    (exposed, after)
}

/// Follows events that are more than fit between it and the server, and reads none of them.
fn subscribe_without_reading(server: &Server) -> std::net::TcpStream {
    let mut connection = connect(server.port).unwrap();
    let request = format!(
        "GET /events?category=large HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"
    );
    connection.write_all(request.as_bytes()).unwrap();
    let mut client = server.client();
    for _ in 0..16 {
        client.write("large-1", &json!({ "text": "x".repeat(1024 * 1024) }));
    }
    connection
}

fn over_http(server: &Server) {
    let mut client = server.client();
    client.write("account-1", &json!({ "text": "x".repeat(1000) }));
    let query = json!({ "items": [{ "tags": ["a"] }] });
    let commit = |after: u64| {
        json!(["commit", {
            "conditions": [{ "query": query, "after": after }],
            "events": [{ "type": "Tagged", "data": {}, "tags": ["a"] }]
        }])
    };
    client.rpc(&commit(0)).ok();
    assert_eq!(client.rpc(&commit(0)).code(), "CONDITION_FAILED");
    client.rpc(&json!(["category.get", "account"])).ok();
    client.rpc(&json!(["events.query", query])).ok();
    for number in 0..200 {
        client.write(&format!("account-{number}"), &json!({}));
    }
    let line = json!({ "stream": "other-1", "type": "Imported", "data": {}, "pos": 0, "gpos": 10_000,
        "time": "2026-01-01T00:00:00Z" });
    let imported = client.post("/import", format!("{line}\n").as_bytes());
    assert!(
        imported.text().contains("\"done\":true"),
        "{}",
        imported.text()
    );
}

/// Returns what keeps the connection.
fn over_grpc(server: &Server) -> (Runtime, Grpc) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let client = runtime.block_on(async {
        let connect = Connect {
            url: format!("http://127.0.0.1:{}", server.grpc_port),
            token: Some(ADMIN.to_owned()),
            ..Connect::default()
        };
        let mut client = Grpc::connect(connect).await.unwrap();
        let event = Event {
            event_type: "Appended".to_owned(),
            ..Event::default()
        };
        let append = AppendRequest {
            events: vec![event],
            ..AppendRequest::default()
        };
        client.append(append).await.unwrap();
        let mut read = client.read(ReadRequest::default()).await.unwrap();
        assert!(read.message().await.unwrap().is_some());
        client
    });
    (runtime, client)
}

fn over_resp(server: &Server) {
    let mut resp = server.resp();
    assert_eq!(resp.line("SET greeting hello"), Value::ok());
    assert_eq!(resp.line("GET greeting"), Value::bulk("hello"));
    assert!(matches!(resp.line("LPUSH greeting x"), Value::Error(_)));
    let part = "x".repeat(STATE_BYTES / 8);
    for number in 0..8 {
        let key = format!("large:{number}");
        assert_eq!(resp.call(&["SET", &key, &part]), Value::ok());
    }
}

/// Reads state that was moved to disk, which happens when nobody writes, until some of it is found in
/// memory.
fn read_from_disk(server: &Server) {
    let mut resp = server.resp();
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        assert_eq!(resp.line("GET greeting"), Value::bulk("hello"));
        if Exposed::of(server).total("trefoil_state_cache_hits_total") > 0.0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("nothing was moved to disk");
}

/// Uses more namespaces than may be open at once.
fn in_many_namespaces(server: &Server) {
    let mut admin = server.client();
    for number in 0..4 {
        let token = admin.create_namespace(&format!("tenant-{number}"));
        server.client_with(&token).write("a-1", &json!({}));
    }
}

/// Writes to a namespace that may not write events.
fn beyond_a_quota(server: &Server) {
    let mut admin = server.client();
    let token = admin.create_namespace("limited");
    let quotas = json!({ "eventsPerSecond": 0, "connections": 10 });
    admin
        .rpc(&json!(["ns.settings", "limited", { "quotas": quotas }]))
        .ok();
    let write = json!(["stream.write", "a-1", { "type": "T", "data": {} }]);
    let refused = server.client_with(&token).rpc(&write);
    assert_eq!(refused.code(), "QUOTA_EXCEEDED");
}

/// More clients than there is room for.
fn crowd(server: &Server) -> Vec<std::net::TcpStream> {
    let connect = |_| std::net::TcpStream::connect(("127.0.0.1", server.resp_port)).unwrap();
    (0..100).map(connect).collect()
}
