//! Requests to a node that does not have the namespace are answered as if it had.

use serde_json::{Value, json};

use super::{TestCluster, TestNode, metric, owner_and_others};
use crate::client::{Frames, Reply, bearer, bearer_of, request, rpc};

fn call(node: &TestNode, body: &Value) -> Reply {
    rpc(node.server.address, &body.to_string())
}

fn answer(node: &TestNode, body: &Value) -> Value {
    let reply = call(node, body);
    assert_eq!(reply.status, 200, "{body}: {}", reply.text());
    serde_json::from_slice(&reply.body).unwrap()
}

fn write(node: &TestNode, stream: &str) {
    answer(
        node,
        &json!(["stream.write", stream, {"type": "T", "data": {"n": 1}}]),
    );
}

/// Three nodes, of which one has the default namespace.
fn three(cluster: &TestCluster) -> (TestNode, Vec<TestNode>) {
    let nodes: Vec<TestNode> = ["a", "b", "c"].map(|name| cluster.node(name)).into();
    write(&nodes[0], "account-1");
    owner_and_others(nodes)
}

const FORWARDED: &str = "trefoil_forwarded_requests_total{protocol=\"http\",outcome=\"answered\"}";

#[test]
fn any_node_answers_every_endpoint() {
    let cluster = TestCluster::new();
    let (owner, others) = three(&cluster);
    let [other, third] = &others[..] else {
        panic!("there are three");
    };
    write(other, "account-1");
    write(third, "account-2");
    let events = |node| answer(node, &json!(["category.get", "account"]));
    let expected = events(&owner);
    assert_eq!(expected.as_array().unwrap().len(), 3);
    for node in &others {
        assert_eq!(events(node), expected);
        assert_eq!(answer(node, &json!(["events.head"])), 3);
        let info = answer(node, &json!(["ns.info", "default"]));
        assert_eq!(info["messageCount"], 3, "{info}");
        let address = node.server.address;
        let exported = request(address, "GET", "/export", &bearer(), b"");
        assert_eq!(exported.text().lines().count(), 3, "{}", exported.text());
        assert_eq!(
            exported.header("content-type"),
            Some("application/x-ndjson")
        );
        let read = request(address, "POST", "/dcb/read", &bearer(), b"{}");
        assert_eq!(read.status, 200, "{}", read.text());
    }
    assert!(metric(other, FORWARDED) > 4);
    assert_eq!(metric(&owner, FORWARDED), 0);
    // A refusal of the owner arrives as it is.
    let conflict =
        json!(["stream.write", "account-1", {"type": "T", "data": {}}, {"expectedVersion": 7}]);
    let (here, there) = (call(&owner, &conflict), call(other, &conflict));
    assert_eq!((there.status, there.text()), (here.status, here.text()));
    assert_eq!(there.status, 409);
    let append = br#"{"events":[{"type":"T","tags":["x:1"],"data":"eA=="}]}"#;
    let appended = request(
        third.server.address,
        "POST",
        "/dcb/append",
        &bearer(),
        append,
    );
    assert_eq!(appended.status, 200, "{}", appended.text());
    assert_eq!(answer(&owner, &json!(["events.head"])), 4);
}

#[test]
fn bodies_are_sent_on_as_they_come() {
    let cluster = TestCluster::new();
    let (owner, others) = three(&cluster);
    let data = "x".repeat(1000);
    let line = |n: u64| {
        let event = json!({
            "id": format!("00000000-0000-4000-8000-{n:012}"), "stream": "big-1", "type": "T",
            "pos": n - 2, "gpos": n, "data": {"text": data}, "meta": null, "time": "2026-01-01T00:00:00Z",
        });
        format!("{event}\n")
    };
    let lines: String = (2..=3001).map(line).collect();
    let address = others[0].server.address;
    let imported = request(address, "POST", "/import", &bearer(), lines.as_bytes());
    assert!(
        imported.text().contains("\"done\":true,\"imported\":3000"),
        "{}",
        imported.text()
    );
    assert_eq!(answer(&owner, &json!(["events.head"])), 3001);
    // A compressed answer is passed on as it is.
    let headers = format!("{}accept-encoding: gzip\r\n", bearer());
    let exported = request(address, "GET", "/export", &headers, b"");
    assert_eq!(exported.header("content-encoding"), Some("gzip"));
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(&exported.body[..]);
    std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
    assert_eq!(text.lines().count(), 3001);
}

#[test]
fn a_namespace_can_be_used_as_soon_as_it_was_made() {
    let cluster = TestCluster::new();
    let (owner, others) = three(&cluster);
    for (number, node) in others.iter().chain([&owner]).enumerate() {
        let name = format!("shop{number}");
        let made = answer(node, &json!(["ns.create", name]));
        let bearer = bearer_of(made["token"].as_str().unwrap());
        // Somebody else has it from the beginning.
        let elsewhere = if number == 0 { &others[1] } else { &others[0] };
        elsewhere.namespaces.catch_up().unwrap();
        let id = trefoil::NamespaceId::new(&name).unwrap();
        drop(elsewhere.namespaces.database_here(&id).unwrap());
        let body = br#"["stream.write","a-1",{"type":"T","data":{}}]"#;
        let reply = request(node.server.address, "POST", "/rpc", &bearer, body);
        assert_eq!(reply.status, 200, "{}", reply.text());
        // The administrator counts and deletes it from anywhere.
        owner.namespaces.catch_up().unwrap();
        let info = answer(&owner, &json!(["ns.info", name]));
        assert_eq!(info["messageCount"], 1, "{info}");
        let deleted = answer(&owner, &json!(["ns.delete", name]));
        assert_eq!(deleted["messagesDeleted"], 1, "{deleted}");
    }
}

#[test]
fn a_token_that_was_replaced_opens_nothing_at_any_node() {
    let cluster = TestCluster::new();
    let (owner, others) = three(&cluster);
    let made = answer(&owner, &json!(["ns.create", "shop"]));
    let old = bearer_of(made["token"].as_str().unwrap());
    let id = trefoil::NamespaceId::new("shop").unwrap();
    drop(owner.namespaces.database_here(&id).unwrap());
    let entry = &others[0];
    entry.namespaces.catch_up().unwrap();
    let ask = |bearer: &str| {
        let body = br#"["events.head"]"#;
        request(entry.server.address, "POST", "/rpc", bearer, body)
    };
    assert_eq!(ask(&old).status, 200);
    // The entry node does not know of it yet, and the owner asks for itself.
    let replaced = answer(&owner, &json!(["ns.token", "shop"]));
    let refused = ask(&old);
    assert_eq!(refused.status, 403, "{}", refused.text());
    entry.namespaces.catch_up().unwrap();
    assert_eq!(ask(&old).status, 403);
    let new = bearer_of(replaced["token"].as_str().unwrap());
    assert_eq!(ask(&new).status, 200);
}

#[test]
fn a_client_cannot_say_that_it_is_a_peer() {
    let cluster = TestCluster::new();
    let (owner, others) = three(&cluster);
    for node in [&owner, &others[0]] {
        let headers = format!("{}trefoil-after: 0\r\n", bearer());
        let mut frames = Frames::open_with(node.server.address, "/events?all=true", &headers);
        assert_eq!(frames.next().unwrap(), ": ready");
        assert!(
            frames
                .headers
                .iter()
                .all(|(name, _)| !name.starts_with("trefoil-"))
        );
        // It would begin at the first event.
        write(&owner, "new-1");
        let frame = frames.next_data().unwrap();
        assert!(frame.contains("new-1"), "{frame}");
    }
}
