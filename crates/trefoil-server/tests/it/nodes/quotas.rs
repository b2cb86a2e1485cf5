//! Quotas in a cluster: what is set at one node counts at all of them. Writes and subscriptions are counted
//! by the node that has the namespace, connections by the node that they go to.

use serde_json::json;
use trefoil::{NamespaceId, NewNamespace, Quota, Token};

use super::{TestCluster, TestNode};
use crate::client::{Connection, bearer_of, request};
use crate::harness::eventually;
use crate::resp::Client;

fn call(node: &TestNode, token: &str, body: &str) -> (u16, String) {
    let headers = bearer_of(token);
    let address = node.server.address;
    let reply = request(address, "POST", "/rpc", &headers, body.as_bytes());
    (reply.status, reply.text().to_owned())
}

fn set(node: &TestNode, quotas: &serde_json::Value) {
    let change = json!(["ns.settings", "shop", {"quotas": quotas}]).to_string();
    let (status, text) = call(node, Token::development().reveal(), &change);
    assert_eq!(status, 200, "{text}");
}

const WRITE: &str = r#"["stream.write","account-1",{"type":"T","data":{}}]"#;

#[test]
fn quotas_count_at_every_node() {
    let cluster = TestCluster::new();
    let nodes: Vec<TestNode> = ["a", "b"].map(|name| cluster.node(name)).into();
    let id = NamespaceId::new("shop").unwrap();
    let (_, token) = nodes[0]
        .namespaces
        .create(&id, NewNamespace::default())
        .unwrap();
    let token = token.reveal();
    eventually(|| nodes.iter().all(|node| call(node, token, WRITE).0 == 200));

    set(&nodes[0], &json!({"eventsPerSecond": 0}));
    let limit = |node: &TestNode| {
        let keeper = node.namespaces.quota_keeper(&id);
        keeper.limit(Quota::EventsPerSecond)
    };
    eventually(|| nodes.iter().all(|node| limit(node) == Some(0)));
    for node in &nodes {
        let (status, text) = call(node, token, WRITE);
        assert!(status == 429 && text.contains("eventsPerSecond"), "{text}");
        let mut redis = Client::connect(&node.server);
        assert_eq!(redis.ask(&["AUTH", token]), "+OK");
        let told = "-QUOTA the namespace has used up its quota eventsPerSecond, which is 0";
        assert_eq!(redis.say("EVENT.APPEND a-1 T {}"), told);
    }
    // Each was refused once, by the node that had the namespace at that time.
    let refusals = nodes.iter().map(|node| {
        let keeper = node.namespaces.quota_keeper(&id);
        keeper.refusals(Quota::EventsPerSecond)
    });
    assert_eq!(refusals.sum::<u64>(), 4);

    set(
        &nodes[1],
        &json!({"eventsPerSecond": null, "subscriptions": 1}),
    );
    eventually(|| nodes.iter().all(|node| limit(node).is_none()));
    let subscribe = |node: &TestNode| {
        let mut connection = Connection::open(node.server.address);
        connection.send("GET", "/events?category=a", &bearer_of(token), b"");
        (connection.head().0, connection)
    };
    let (status, first) = subscribe(&nodes[0]);
    assert_eq!(status, 200);
    for node in &nodes {
        assert_eq!(subscribe(node).0, 429);
    }

    // What a node sends on is no connection of the other one.
    set(&nodes[0], &json!({"connections": 1, "subscriptions": null}));
    let connections = |node: &TestNode| {
        let keeper = node.namespaces.quota_keeper(&id);
        keeper.limit(Quota::Connections)
    };
    eventually(|| nodes.iter().all(|node| connections(node) == Some(1)));
    drop(first);
    let mut clients = Vec::new();
    for node in &nodes {
        let mut redis = Client::connect(&node.server);
        eventually(|| redis.ask(&["AUTH", token]) == "+OK");
        assert_eq!(redis.say("SET k 1"), "+OK");
        let mut other = Client::connect(&node.server);
        assert!(other.ask(&["AUTH", token]).starts_with("-QUOTA "));
        clients.push(redis);
    }
}
