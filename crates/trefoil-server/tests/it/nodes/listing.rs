//! What a node says of all namespaces and all nodes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{TestCluster, TestNode};
use crate::client::rpc;

fn ask(node: &TestNode, call: &Value) -> Value {
    let reply = rpc(node.server.address, &call.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&reply.body).unwrap()
}

/// Returns the names and counts of all namespaces, as a node lists them.
fn listed(node: &TestNode) -> Vec<(String, Value)> {
    let listed = ask(node, &json!(["ns.list"]));
    let entry = |entry: &Value| {
        let name = entry["namespace"].as_str().unwrap();
        (name.to_owned(), entry["messageCount"].clone())
    };
    listed.as_array().unwrap().iter().map(entry).collect()
}

#[test]
fn namespaces_of_other_nodes_are_listed_and_not_opened() {
    let cluster = TestCluster::new();
    let (first, second) = (cluster.node("first"), cluster.node("second"));
    let written = json!(["stream.write", "a-1", {"type": "T", "data": {}}]);
    ask(&first, &written);
    ask(&first, &json!(["ns.create", "idle"]));
    let nodes = [&first, &second];
    let owner = nodes
        .iter()
        .position(|node| node.has(&super::default_namespace()));
    let (owner, other) = (nodes[owner.unwrap()], nodes[1 - owner.unwrap()]);
    let deadline = Instant::now() + Duration::from_secs(30);
    let expected = [("default", json!(null)), ("idle", json!(null))];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    // Until it knows of the other one, a node counts what it can have.
    while listed(other) != expected {
        assert!(Instant::now() < deadline, "{:?}", listed(other));
        std::thread::sleep(Duration::from_millis(200));
    }
    while ask(owner, &json!(["sys.nodes"]))["nodes"]
        .as_array()
        .unwrap()
        .len()
        < 2
    {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(listed(owner)[0], ("default".to_owned(), json!(1)));
}
