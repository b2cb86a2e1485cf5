//! Two servers that share an engine: the one that does not have a namespace says so over every
//! protocol, and has it as soon as the other one has stopped.

use std::sync::Arc;

use trefoil::{Namespaces, NamespacesOptions, Token};
use trefoil_grpc::{Client, Code, Connect};
use trefoil_kv::memory::MemoryEngine;
use trefoil_kv::{KvHome, KvHomeOptions};
use trefoil_server::Config;

use crate::client::rpc;
use crate::harness::TestServer;
use crate::other_storage::resp;

fn node(data: &MemoryEngine, address: &str, cache: &tempfile::TempDir) -> TestServer {
    let options = KvHomeOptions::new(cache.path().join(address));
    let home = KvHome::open(Arc::new(data.clone()), options).unwrap();
    let options = NamespacesOptions::default();
    let namespaces = Namespaces::open_in(Arc::new(home), options).unwrap();
    namespaces.cluster().unwrap().announce(address).unwrap();
    TestServer::on(Config::default(), namespaces)
}

#[test]
fn a_request_to_the_wrong_node_is_told_where_the_namespace_is() {
    let (data, cache) = (MemoryEngine::default(), tempfile::tempdir().unwrap());
    let mut first = node(&data, "first:8080", &cache);
    let written = rpc(
        first.address,
        r#"["stream.write","a-1",{"type":"T","data":{}}]"#,
    );
    assert_eq!(written.status, 200, "{}", written.text());

    let second = node(&data, "second:8080", &cache);
    let refused = rpc(second.address, r#"["stream.get","a-1"]"#);
    assert_eq!(refused.status, 421, "{}", refused.text());
    let expected = r#"{"error":{"code":"WRONG_NODE","message":"namespace 'default' is on another node: first:8080","details":{"namespace":"default","owner":"first:8080"}}}"#;
    assert_eq!(refused.text(), expected);
    let token = Token::development();
    let replies = resp(second.resp, &[&["AUTH", token.reveal()], &["GET", "k"]]);
    let expected = "-WRONGNODE namespace 'default' is on another node: first:8080\r\n";
    assert!(replies.ends_with(expected), "{replies}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let connect = Connect {
            url: format!("http://{}", second.grpc),
            token: Some(token.reveal().to_owned()),
            ..Connect::default()
        };
        let mut client = Client::connect(connect).await.unwrap();
        let status = client.head().await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.message().ends_with("first:8080"), "{status:?}");
    });

    let listed = rpc(second.address, r#"["sys.nodes",{"namespace":"default"}]"#);
    let listed: serde_json::Value = serde_json::from_slice(&listed.body).unwrap();
    let nodes = listed["nodes"].as_array().unwrap();
    let shown = |node: &serde_json::Value| {
        let fields = ["address", "this", "namespaces"];
        fields.map(|name| node[name].to_string()).join(" ")
    };
    let shown: Vec<String> = nodes.iter().map(shown).collect();
    // The first one had not said how many it has when the second one saw it.
    assert_eq!(shown[0], r#""second:8080" true 0"#);
    assert!(shown[1].starts_with(r#""first:8080" false "#), "{shown:?}");
    assert_eq!(listed["owner"], nodes[1]["id"]);

    // A stop hands everything over.
    first.begin_shutdown();
    first.wait();
    let read = rpc(second.address, r#"["stream.get","a-1"]"#);
    assert_eq!(read.status, 200, "{}", read.text());
    let events: Vec<serde_json::Value> = serde_json::from_slice(&read.body).unwrap();
    assert_eq!(events.len(), 1);
}

#[test]
fn a_namespace_that_one_node_makes_is_known_to_the_others() {
    let (data, cache) = (MemoryEngine::default(), tempfile::tempdir().unwrap());
    let first = node(&data, "first:8080", &cache);
    let second = node(&data, "second:8080", &cache);
    let made = rpc(first.address, r#"["ns.create","shop"]"#);
    assert_eq!(made.status, 200, "{}", made.text());
    let made: serde_json::Value = serde_json::from_slice(&made.body).unwrap();
    let bearer = crate::client::bearer_of(made["token"].as_str().unwrap());
    let ask = || {
        let body = br#"["stream.version","a-1"]"#;
        crate::client::request(second.address, "POST", "/rpc", &bearer, body)
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while ask().status != 200 {
        assert!(std::time::Instant::now() < deadline, "{}", ask().text());
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
