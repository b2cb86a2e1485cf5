//! Quotas of a namespace: each is told by its name over every protocol, and others do not notice.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trefoil::{
    Clock, ManualTime, Namespaces, NamespacesOptions, Options, Permission, Timestamp, Token,
};
use trefoil_grpc::{Code, SubscribeRequest};
use trefoil_server::Config;

use super::TokenServer;
use crate::client::{Connection, bearer_of, request};
use crate::grpc::{append, connect_as, event};
use crate::harness::{TestServer, eventually};
use crate::resp;

fn set(server: &TokenServer, namespace: &str, quotas: &Value) {
    let call = json!(["ns.settings", namespace, {"quotas": quotas}]);
    server.call(Token::development().reveal(), &call.to_string());
}

/// The quota that a request was refused for.
#[track_caller]
fn refused(server: &TokenServer, token: &str, body: &str) -> String {
    let reply = server.rpc(token, body);
    assert_eq!(reply.status, 429, "{}", reply.text());
    let error: Value = serde_json::from_slice(&reply.body).unwrap();
    let error = &error["error"];
    assert_eq!(error["code"], "QUOTA_EXCEEDED");
    assert!(error["details"]["limit"].is_u64(), "{error}");
    error["details"]["quota"].as_str().unwrap().to_owned()
}

/// A metric of a namespace and a quota; `None` if it is not told.
fn metric(server: &TokenServer, name: &str, namespace: &str, quota: &str) -> Option<u64> {
    let reply = request(server.server.address, "GET", "/metrics", "", b"");
    let series = format!("trefoil_{name}{{namespace=\"{namespace}\",quota=\"{quota}\"}} ");
    let text = reply.text().to_owned();
    let value = text.lines().find_map(|line| line.strip_prefix(&series));
    value.map(|value| value.parse().unwrap())
}

fn on_disk(data: &Path) -> TokenServer {
    let namespaces = Namespaces::open(data, NamespacesOptions::default()).unwrap();
    TokenServer {
        server: TestServer::on(Config::default(), namespaces.clone()),
        namespaces,
    }
}

const WRITE: &str = r#"["stream.write","account-1",{"type":"T","data":{}}]"#;

#[tokio::test(flavor = "multi_thread")]
async fn events_are_taken_at_the_rate_of_the_quota_over_every_protocol() {
    let time = ManualTime::new(Timestamp(1_800_000_000_000_000_000));
    let database = Options::default().with_clock(Clock::new(time.clone()));
    let server = TokenServer::with(NamespacesOptions::default().with_database(database));
    let (slow, free) = (server.create("slow"), server.create("free"));
    set(&server, "slow", &json!({"eventsPerSecond": 2}));
    for _ in 0..2 {
        server.call(&slow, WRITE);
    }
    assert_eq!(refused(&server, &slow, WRITE), "eventsPerSecond");
    let mut redis = resp::Client::connect(&server.server);
    assert_eq!(redis.ask(&["AUTH", &slow]), "+OK");
    let told = "-QUOTA the namespace has used up its quota eventsPerSecond, which is 2";
    assert_eq!(redis.say("EVENT.APPEND a-1 T {}"), told);
    // What appends no events is no event.
    assert_eq!(redis.say("SET k 1"), "+OK");
    // A transaction is refused as a whole.
    assert_eq!(redis.say("MULTI"), "+OK");
    assert_eq!(redis.say("SET k 2"), "+QUEUED");
    assert_eq!(redis.say("EVENT.APPEND a-1 T {}"), "+QUEUED");
    assert_eq!(redis.say("EXEC"), told);
    assert_eq!(redis.say("GET k"), "\"1\"");
    let mut client = connect_as(&server.server, Some(&slow)).await.unwrap();
    let status = client
        .append(append(vec![event("A", &[])]))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("eventsPerSecond"), "{status:?}");
    let events = server.call(&slow, r#"["category.get",""]"#);
    assert_eq!(events.as_array().unwrap().len(), 2, "{events}");
    let refusals = metric(&server, "quota_refusals_total", "slow", "eventsPerSecond");
    assert_eq!(refusals, Some(4));

    server.call(&free, WRITE);
    time.advance(Duration::from_secs(1));
    server.call(&slow, WRITE);
    set(&server, "slow", &json!({"eventsPerSecond": null}));
    for _ in 0..9 {
        server.call(&slow, WRITE);
    }
}

#[test]
fn an_import_waits_until_it_may_append_more() {
    let server = TokenServer::new();
    let main = server.create("slow");
    set(&server, "slow", &json!({"eventsPerSecond": 1000}));
    let line = |n: u64| {
        format!(
            r#"{{"stream":"a-1","type":"T","data":{{}},"pos":{n},"gpos":{},"time":"2026-01-01T00:00:00Z"}}"#,
            n + 1
        )
    };
    let body: Vec<String> = (0..2500).map(line).collect();
    let (first, rest) = body.split_at(1200);
    let began = Instant::now();
    let bearer = bearer_of(&main);
    let address = server.server.address;
    // A file comes in several requests.
    for part in [first, rest] {
        let body = part.join("\n");
        let imported = request(address, "POST", "/import", &bearer, body.as_bytes());
        let expected = format!(r#""done":true,"imported":{}"#, part.len());
        assert!(imported.text().contains(&expected), "{}", imported.text());
    }
    assert!(began.elapsed() >= Duration::from_secs(1));
    let refusals = metric(&server, "quota_refusals_total", "slow", "eventsPerSecond");
    assert_eq!(refusals, Some(0));
    // One that can never go on is not begun.
    set(&server, "slow", &json!({"eventsPerSecond": 0}));
    let refused = request(address, "POST", "/import", &bearer, line(2500).as_bytes());
    assert!(refused.text().contains("QUOTA_EXCEEDED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_writes_no_more_than_its_part_of_the_disk() {
    let data = tempfile::tempdir().unwrap();
    let server = on_disk(data.path());
    let main = server.create("small");
    let value = "x".repeat(100_000);
    let large = json!(["commit", {"state": [["SET", "k", value]]}]).to_string();
    server.call(&main, &large);
    server.call(&main, WRITE);
    // Below what it has already: that stays, and nothing is added.
    set(&server, "small", &json!({"diskBytes": 50_000}));
    eventually(|| server.rpc(&main, WRITE).status == 429);
    assert_eq!(refused(&server, &main, WRITE), "diskBytes");
    let used = metric(&server, "quota_used", "small", "diskBytes").unwrap();
    assert!((100_000..1_000_000).contains(&used), "{used}");
    let limit = metric(&server, "quota_limit", "small", "diskBytes");
    assert_eq!(limit, Some(50_000));

    let events = |server: &TokenServer| {
        let events = server.call(&main, r#"["stream.get","account-1",{"batchSize":-1}]"#);
        events.as_array().unwrap().len()
    };
    let before = events(&server);
    let mut redis = resp::Client::connect(&server.server);
    assert_eq!(redis.ask(&["AUTH", &main]), "+OK");
    let told = "-QUOTA the namespace has used up its quota diskBytes, which is 50000";
    assert_eq!(redis.say("SET k 1"), told);
    assert_eq!(redis.say("EVENT.APPEND a-1 T {}"), told);
    let mut client = connect_as(&server.server, Some(&main)).await.unwrap();
    let appended = client.append(append(vec![event("A", &[])])).await;
    let status = appended.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("diskBytes"), "{status:?}");
    assert_eq!(redis.say("STRLEN k"), "100000");
    // What is remembered of a commit takes room, too, whatever the commit does.
    let named =
        r#"["commit",{"state":[["STRLEN","k"]],"id":"550e8400-e29b-41d4-a716-446655440000"}]"#;
    assert_eq!(refused(&server, &main, named), "diskBytes");
    let tracked = r#"["commit",{"state":[["STRLEN","k"]],"tracking":{"source":"s","position":1}}]"#;
    assert_eq!(refused(&server, &main, tracked), "diskBytes");
    server.call(&main, r#"["commit",{"state":[["STRLEN","k"]]}]"#);
    assert_eq!(events(&server), before);

    // It is still so after a restart.
    let TokenServer {
        server: mut stopped,
        namespaces,
    } = server;
    drop((client, redis));
    stopped.begin_shutdown();
    stopped.wait();
    namespaces.close().unwrap();
    drop((stopped, namespaces));
    let server = on_disk(data.path());
    eventually(|| server.rpc(&main, &large).status == 429);

    // What is there can be removed.
    assert!(events(&server) >= before);
    server.call(&main, r#"["stream.truncate","account-1",{"position":1}]"#);
    server.call(&main, r#"["stream.delete","account-1"]"#);
    server.call(&main, r#"["commit",{"state":[["EXPIRE","k","100"]]}]"#);
    server.call(&main, r#"["commit",{"state":[["DEL","k"]]}]"#);
    assert_eq!(refused(&server, &main, &large), "diskBytes");
    set(&server, "small", &json!({"diskBytes": 100_000_000}));
    server.call(&main, WRITE);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_and_subscriptions_are_counted() {
    let server = TokenServer::new();
    let main = server.create("busy");
    let quotas = json!({"subscriptions": 1, "connections": 3});
    set(&server, "busy", &quotas);
    let subscribe = || {
        let mut connection = Connection::open(server.server.address);
        connection.send("GET", "/events?category=a", &bearer_of(&main), b"");
        (connection.head().0, connection)
    };
    let (status, first) = subscribe();
    assert_eq!(status, 200);
    assert_eq!(subscribe().0, 429);
    let mut client = connect_as(&server.server, Some(&main)).await.unwrap();
    let status = client
        .subscribe(SubscribeRequest::default())
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    assert!(status.message().contains("subscriptions"), "{status:?}");

    // The subscription, the connection of gRPC, and one more.
    let mut redis = resp::Client::connect(&server.server);
    eventually(|| redis.ask(&["AUTH", &main]) == "+OK");
    let mut one_more = resp::Client::connect(&server.server);
    let told = "-QUOTA the namespace has used up its quota connections, which is 3";
    assert_eq!(one_more.ask(&["AUTH", &main]), told);
    assert_eq!(one_more.say("GET k"), "-NOAUTH Authentication required.");
    assert_eq!(refused(&server, &main, WRITE), "connections");
    let used = |quota: &str| metric(&server, "quota_used", "busy", quota);
    assert_eq!(used("connections"), Some(3));
    assert_eq!(used("subscriptions"), Some(1));
    let refusals = |quota: &str| metric(&server, "quota_refusals_total", "busy", quota);
    assert_eq!(refusals("subscriptions"), Some(2));
    assert!(refusals("connections").unwrap() >= 2);

    // Fewer than there are: those stay.
    set(&server, "busy", &json!({"connections": 1}));
    assert_eq!(redis.say("SET k 1"), "+OK");
    assert_eq!(client.head().await.unwrap(), None);
    assert_eq!(
        one_more.ask(&["AUTH", &main]).split(' ').next(),
        Some("-QUOTA")
    );
    set(&server, "busy", &quotas);
    drop((first, redis));
    eventually(|| one_more.ask(&["AUTH", &main]) == "+OK");
}

#[test]
fn the_administrator_gets_in_whatever_the_quotas_say() {
    let server = TokenServer::new();
    let quotas =
        json!({"connections": 0, "eventsPerSecond": 0, "diskBytes": 0, "subscriptions": 0});
    let other = server.token("default", "other", Permission::ALL);
    set(&server, "default", &quotas);
    // The quotas are in force for a token that does not administer the server.
    assert_eq!(refused(&server, &other, WRITE), "connections");
    set(&server, "default", &json!({"connections": null}));
    assert_eq!(server.call(&other, r#"["events.head"]"#), 0);
}

#[test]
fn memory_for_clients_is_limited() {
    let server = TokenServer::new();
    let main = server.create("small");
    set(&server, "small", &json!({"memoryBytes": 16 * 1024 * 1024}));
    let call = |bytes: usize| {
        let data = "x".repeat(bytes);
        format!(r#"["stream.write","account-1",{{"type":"T","data":{{"x":"{data}"}}}}]"#)
    };
    server.call(&main, &call(1_000_000));
    assert_eq!(refused(&server, &main, &call(20_000_000)), "memoryBytes");
    let refusals = metric(&server, "quota_refusals_total", "small", "memoryBytes");
    assert_eq!(refusals, Some(1));
    // Answers that are sent piece by piece need less.
    let reply = request(
        server.server.address,
        "GET",
        "/export",
        &bearer_of(&main),
        b"",
    );
    assert_eq!(reply.status, 200);
    assert!(reply.body.len() > 1_000_000);
    let free = server.create("free");
    let reply = server.rpc(&free, &call(20_000_000));
    // It is over the limit of an event.
    assert_eq!(reply.status, 413, "{}", reply.text());
}

#[test]
fn settings_are_changed_by_the_administrator_of_the_server() {
    let server = TokenServer::new();
    let main = server.create("shop");
    let admin = Token::development();
    let change = r#"["ns.settings","shop",{"warm":true,"quotas":{"connections":7,"diskBytes":1}}]"#;
    assert_eq!(server.refusal(&main, change).0, "AUTH_UNAUTHORIZED");
    let settings = |quotas: Value| json!({"namespace": "shop", "settings": {"cacheShare": 1, "warm": true, "quotas": quotas}});
    let changed = server.call(admin.reveal(), change);
    assert_eq!(changed, settings(json!({"connections": 7, "diskBytes": 1})));
    let removed = r#"["ns.settings","shop",{"quotas":{"diskBytes":null}}]"#;
    let changed = server.call(admin.reveal(), removed);
    assert_eq!(changed, settings(json!({"connections": 7})));
    assert_eq!(
        server.call(admin.reveal(), r#"["ns.settings","shop"]"#),
        changed
    );
    let info = server.call(&main, r#"["ns.info","shop"]"#);
    assert_eq!(info["settings"], changed["settings"]);
    let records = server.call(admin.reveal(), r#"["audit.read"]"#);
    let noted: Vec<Value> = { records.as_array().unwrap().iter() }
        .map(|record| json!([record["action"], record["namespace"], record["details"]]))
        .collect();
    let first = json!({"warm": true, "quotas": {"diskBytes": 1, "connections": 7}});
    let second = json!({"quotas": {"diskBytes": null}});
    let expected = [second, first].map(|details| json!(["ns.settings", "shop", details]));
    assert_eq!(noted, expected);
}

#[test]
fn settings_that_are_wrong_are_refused_and_named() {
    let server = TokenServer::new();
    server.create("shop");
    let admin = Token::development();
    for (settings, text) in [
        ("1", " must be an object"),
        (
            r#"{"quota":{}}"#,
            " has no field \"quota\": did you mean \"quotas\"?",
        ),
        (r#"{"warm":1}"#, ".warm must be true or false"),
        (r#"{"quotas":7}"#, ".quotas must be an object"),
        (
            r#"{"quotas":{"disk":1}}"#,
            ".quotas has no field \"disk\", only",
        ),
        (
            r#"{"quotas":{"connections":1,"connections":2}}"#,
            ".quotas has the field \"connections\" more than once",
        ),
        (
            r#"{"quotas":{"diskBytes":-1}}"#,
            ".quotas.diskBytes must be a whole number",
        ),
        (
            r#"{"quotas":{"diskBytes":1e16}}"#,
            ".quotas.diskBytes must be a whole number",
        ),
        (
            r#"{"quotas":{"subscriptions":"5"}}"#,
            ".quotas.subscriptions must be a whole number",
        ),
        (
            r#"{"quotas":{"memoryBytes":1000}}"#,
            "quota memoryBytes is 1000, it must lie between 16777216 and",
        ),
        (r#"{"cacheShare":0}"#, "cache share is 0"),
    ] {
        let whole = |what: &str| match text.starts_with(['.', ' ']) {
            true => format!("{what}{text}"),
            false => text.to_owned(),
        };
        let call = format!(r#"["ns.settings","shop",{settings}]"#);
        let (code, message) = server.refusal(admin.reveal(), &call);
        assert_eq!(code, "INVALID_REQUEST");
        assert!(message.starts_with(&whole("settings")), "{message}");
        let call = format!(r#"["ns.create","other",{{"settings":{settings}}}]"#);
        let (code, message) = server.refusal(admin.reveal(), &call);
        assert_eq!(code, "INVALID_REQUEST");
        assert!(message.starts_with(&whole("options.settings")), "{message}");
    }
    let unknown = server.refusal(admin.reveal(), r#"["ns.settings","nope",{}]"#);
    assert_eq!(unknown.0, "NAMESPACE_NOT_FOUND");
    let info = server.call(admin.reveal(), r#"["ns.settings","shop"]"#);
    assert_eq!(info["settings"], json!({"cacheShare": 1, "warm": false}));
}
