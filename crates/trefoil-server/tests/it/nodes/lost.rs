//! A peer that goes away: what was certainly not executed is tried again, and of what may have been is said
//! that nobody knows.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_rustls::rustls::ServerConnection;
use trefoil::Namespaces;

use super::door::Authority;
use super::{TestCluster, TestNode, default_namespace};
use crate::client::rpc;

const WRITE: &str = r#"["stream.write","a-1",{"type":"T","data":{}}]"#;

/// A node, and another one that owns the default namespace and listens at `address`, or does not.
fn with_owner_at(cluster: &TestCluster, address: &str) -> (TestNode, Namespaces) {
    let node = cluster.node("node");
    let owner = cluster.namespaces("owner");
    owner.cluster().unwrap().announce(address).unwrap();
    drop(owner.database_here(&default_namespace()).unwrap());
    (node, owner)
}

#[test]
fn an_owner_that_cannot_be_reached_is_looked_for_and_then_named() {
    let cluster = TestCluster::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let (node, owner) = with_owner_at(&cluster, &address);
    let began = Instant::now();
    let refused = rpc(node.server.address, WRITE);
    let elapsed = began.elapsed();
    assert_eq!(refused.status, 421, "{}", refused.text());
    let error: serde_json::Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!(error["error"]["code"], "WRONG_NODE");
    assert_eq!(error["error"]["details"]["owner"], address);
    assert!(elapsed > Duration::from_secs(8), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(15), "{elapsed:?}");
    // Who comes while it is looked for gets an answer when it has been found.
    let waiting = std::thread::spawn({
        let address = node.server.address;
        move || rpc(address, WRITE)
    });
    std::thread::sleep(Duration::from_millis(500));
    owner.close().unwrap();
    let written = waiting.join().unwrap();
    assert_eq!(written.status, 200, "{}", written.text());
}

#[test]
fn a_connection_that_is_lost_after_sending_leaves_the_outcome_unknown() {
    let cluster = TestCluster::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (node, owner) = with_owner_at(&cluster, &address);
    let tls = Arc::new(Authority::of(&owner).server(&["trefoil-http/1"]));
    let peer = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut connection = ServerConnection::new(tls).unwrap();
        let mut stream = tokio_rustls::rustls::Stream::new(&mut connection, &mut socket);
        // It takes the request, and dies.
        stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
        let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
        while !received.windows(12).any(|found| found == b"stream.write") {
            let n = stream.read(&mut buffer).unwrap();
            assert!(n > 0);
            received.extend_from_slice(&buffer[..n]);
        }
    });
    let lost = rpc(node.server.address, WRITE);
    peer.join().unwrap();
    assert_eq!(lost.status, 500, "{}", lost.text());
    assert!(lost.text().contains("OUTCOME_UNKNOWN"), "{}", lost.text());
    drop(owner);
}
