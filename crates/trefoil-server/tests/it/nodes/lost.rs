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
pub(super) fn with_owner_at(cluster: &TestCluster, address: &str) -> (TestNode, Namespaces) {
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

/// What a peer does with a connection, once it has taken a request.
#[derive(Clone, Copy)]
enum PeerEnd {
    /// It dies.
    Broken,
    /// It says that nothing more will come.
    Proper,
    /// It answers.
    Answered(&'static [u8]),
}

/// A peer that speaks RESP and does this with its connections, one after the other, when it has got a
/// request with this word.
fn resp_peer(
    listener: TcpListener,
    tls: Arc<tokio_rustls::rustls::ServerConfig>,
    word: &'static [u8],
    ends: Vec<PeerEnd>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        for end in ends {
            let (mut socket, _) = listener.accept().unwrap();
            let mut connection = ServerConnection::new(Arc::clone(&tls)).unwrap();
            let mut stream = tokio_rustls::rustls::Stream::new(&mut connection, &mut socket);
            take_until(&mut stream, b"AUTH");
            stream.write_all(b"+OK\r\n").unwrap();
            take_until(&mut stream, word);
            match end {
                PeerEnd::Broken => {}
                PeerEnd::Proper => {
                    stream.conn.send_close_notify();
                    stream.flush().unwrap();
                    // It has not looked at what comes now.
                    let _ = stream.read(&mut [0; 4096]);
                }
                PeerEnd::Answered(reply) => {
                    stream.write_all(reply).unwrap();
                    let _ = stream.read(&mut [0; 4096]);
                }
            }
        }
    })
}

/// Reads until these bytes have come.
fn take_until(stream: &mut impl std::io::Read, wanted: &[u8]) {
    let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
    while !received.windows(wanted.len()).any(|found| found == wanted) {
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0);
        received.extend_from_slice(&buffer[..n]);
    }
}

/// Sends a request by way of a node whose peer does this; returns the replies.
fn by_way_of(word: &'static [u8], ends: Vec<PeerEnd>, lines: &[&str]) -> Vec<String> {
    let cluster = TestCluster::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (node, owner) = with_owner_at(&cluster, &address);
    let tls = Arc::new(Authority::of(&owner).server(&["trefoil-resp/1"]));
    let peer = resp_peer(listener, tls, word, ends);
    let mut client = crate::resp::Client::known(&node.server);
    for line in lines {
        client.send(&line.split(' ').collect::<Vec<_>>());
    }
    let replies = lines.iter().map(|_| client.reply().to_string()).collect();
    drop(client);
    peer.join().unwrap();
    drop(owner);
    replies
}

#[test]
fn a_write_over_resp_is_repeated_only_if_it_was_not_carried_out() {
    use PeerEnd::{Answered, Broken, Proper};
    let lost = by_way_of(b"SET", vec![Broken], &["SET k 1"]);
    assert!(lost[0].starts_with("-UNKNOWN "), "{lost:?}");
    let ends = vec![Proper, Answered(b"-WRONGNODE no\r\n"), Answered(b"+OK\r\n")];
    assert_eq!(by_way_of(b"SET", ends, &["SET k 1"]), ["+OK"]);
    // What changes nothing is asked for again, unless it comes before something that does.
    let ends = vec![Broken, Answered(b"$1\r\nx\r\n")];
    assert_eq!(by_way_of(b"GET", ends, &["GET k"]), ["\"x\""]);
    let ends = vec![Answered(b"-WRONGNODE no\r\n"), Broken, Answered(b"+OK\r\n")];
    assert_eq!(by_way_of(b"WATCH", ends, &["WATCH k"]), ["+OK"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_over_grpc_that_is_lost_after_sending_is_unknown() {
    let cluster = TestCluster::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (node, owner) = with_owner_at(&cluster, &address);
    let tls = Arc::new(Authority::of(&owner).server(&["trefoil-grpc/1"]));
    let peer = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut connection = ServerConnection::new(tls).unwrap();
        let mut stream = tokio_rustls::rustls::Stream::new(&mut connection, &mut socket);
        stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
        take_until(&mut stream, b"TakenAndLost");
    });
    let mut client = crate::grpc::connect(&node.server).await;
    let event = crate::grpc::event("TakenAndLost", &[]);
    let lost = client.append(crate::grpc::append(vec![event])).await;
    peer.join().unwrap();
    let status = lost.unwrap_err();
    assert_eq!(status.code(), trefoil_grpc::Code::Unknown, "{status:?}");
    drop(owner);
}
