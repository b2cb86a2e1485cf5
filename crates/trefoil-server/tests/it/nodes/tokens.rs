//! Tokens in a cluster: what one permits is the same at every node, and one that is revoked at a node is
//! revoked at all of them.

use std::time::{Duration, Instant};

use trefoil::{NewToken, Permission, Scope};

use super::{TestCluster, TestNode, owner_and_others};
use crate::client::{Connection, bearer_of, request};
use crate::resp::Client;

/// Waits until a node knows a token.
fn wait_until_known(node: &TestNode, token: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while call(node, token, r#"["ns.current"]"#).0 != 200 {
        assert!(Instant::now() < deadline, "the token does not become known");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn call(node: &TestNode, token: &str, body: &str) -> (u16, String) {
    let headers = bearer_of(token);
    let address = node.server.address;
    let reply = request(address, "POST", "/rpc", &headers, body.as_bytes());
    (reply.status, reply.text().to_owned())
}

#[test]
fn a_token_permits_and_is_revoked_wherever_it_is_used() {
    let cluster = TestCluster::new();
    let nodes: Vec<TestNode> = ["a", "b"].map(|name| cluster.node(name)).into();
    assert_eq!(Client::known(&nodes[0].server).say("SET first 1"), "+OK");
    let (owner, others) = owner_and_others(nodes);
    let other = &others[0];
    let permission = Permission {
        scopes: [Scope::Write, Scope::State, Scope::Subscribe]
            .into_iter()
            .collect(),
        streams: vec!["account-".to_owned()],
        keys: Vec::new(),
    };
    let new = NewToken::new("confined", permission);
    let (_, token) = owner.namespaces.create_token("default", new).unwrap();
    let token = token.reveal();
    wait_until_known(other, token);

    let write = |stream: &str| format!(r#"["stream.write","{stream}",{{"type":"T","data":{{}}}}]"#);
    let mut clients = Vec::new();
    for node in [&owner, other] {
        assert_eq!(call(node, token, &write("account-1")).0, 200);
        let (status, text) = call(node, token, &write("other-1"));
        assert!(status == 403 && text.contains("FORBIDDEN"), "{text}");
        let mut redis = Client::connect(&node.server);
        assert_eq!(redis.ask(&["AUTH", token]), "+OK");
        assert_eq!(redis.say("GET first"), "\"1\"");
        assert!(redis.say("EVENT.HEAD").starts_with("-NOPERM "));
        let mut sse = Connection::open(node.server.address);
        sse.send(
            "GET",
            "/events?stream=account-1&position=9",
            &bearer_of(token),
            b"",
        );
        assert_eq!(sse.head().0, 200);
        assert_eq!(sse.chunk().unwrap(), b": ready\n\n");
        clients.push((redis, sse));
    }
    owner
        .namespaces
        .revoke_token("default", "confined")
        .unwrap();
    let began = Instant::now();
    for (mut redis, mut sse) in clients {
        assert!(!sse.rest().windows(9).any(|text| text == b"account-1"));
        while redis.say("GET first") == "\"1\"" {
            assert!(
                began.elapsed() < Duration::from_secs(10),
                "it is still served"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(redis.say("GET first").ends_with("authenticate again"));
    }
    assert_eq!(call(other, token, &write("account-1")).0, 403);
}
