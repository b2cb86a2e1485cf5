//! Published clients at a server that does not have their namespace: another one does, which shares the
//! storage.

use serde_json::json;
use tempfile::TempDir;

use super::Storage;
use crate::harness::{ADMIN, Server, Value, binary};
use crate::python::{has, run, script, write_certificate};

/// A server on a storage, with a cache of its own.
struct Node {
    server: Server,
    _cache: TempDir,
}

impl Node {
    fn start(storage: &Storage, prefix: &str, options: &[&str]) -> Self {
        let cache = TempDir::new().unwrap();
        let directory = cache.path().join("cache");
        let url = format!("{}/{prefix}", storage.url);
        let mut arguments = vec![
            "--storage",
            &url,
            "--cache-dir",
            directory.to_str().unwrap(),
        ];
        arguments.extend(options);
        let mut command = binary();
        command.envs(&storage.variables);
        Self {
            server: Server::try_launch(command, &arguments).unwrap(),
            _cache: cache,
        }
    }

    /// Returns how many requests of a protocol another server has answered for it.
    fn forwarded(&self, protocol: &str) -> u64 {
        let start = format!(
            "trefoil_forwarded_requests_total{{protocol=\"{protocol}\",outcome=\"answered\"}} "
        );
        let answer = self.server.anonymous().get("/metrics");
        let mut lines = answer.text().lines();
        let count = lines.find_map(|line| line.strip_prefix(&start));
        count.unwrap().parse().unwrap()
    }
}

/// Starts two servers. Returns the one that has the default namespace, and the other one.
fn owner_and_entry(storage: &Storage, prefix: &str, options: &[&str]) -> (Node, Node) {
    let first = Node::start(storage, prefix, options);
    let second = Node::start(storage, prefix, options);
    first.server.client().rpc(&json!(["events.head"])).ok();
    match first.forwarded("http") {
        0 => (first, second),
        _ => (second, first),
    }
}

#[test]
fn the_client_of_redis_works_at_any_server() {
    let Some(storage) = Storage::on_s3() else {
        return;
    };
    if !has("redis") {
        return;
    }
    let (owner, entry) = owner_and_entry(&storage, "redis", &["--token", ADMIN]);
    let port = entry.server.resp_port.to_string();
    for protocol in ["2", "3"] {
        run(script("redis_client.py").args([&port, ADMIN, protocol]));
    }
    assert!(entry.forwarded("resp") > 100);
    // What was written is here when the other one has gone.
    let mut resp = entry.server.resp();
    assert_eq!(resp.call(&["SET", "kept", "1"]), Value::ok());
    assert!(owner.server.terminate().success());
    assert_eq!(resp.call(&["INCR", "kept"]), Value::Integer(2));
}

#[test]
fn the_client_of_umadb_works_at_any_server() {
    let Some(storage) = Storage::on_s3() else {
        return;
    };
    if !has("umadb") {
        return;
    }
    // The client sends a key over TLS only.
    let directory = TempDir::new().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key, authority) = (file("server.pem"), file("server.key"), file("ca.pem"));
    write_certificate(&certificate, &key, &authority);
    let options = [
        "--token",
        ADMIN,
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
    ];
    let (owner, entry) = owner_and_entry(&storage, "umadb", &options);
    let url = format!("https://localhost:{}", entry.server.grpc_port);
    let wrong = ADMIN.replace("000", "001");
    run(script("umadb_client.py").args([&url, &authority, ADMIN, &wrong]));
    assert!(entry.forwarded("grpc") > 100);
    let head = |node: &Node| node.server.client().rpc(&json!(["events.head"])).ok();
    let before = head(&entry);
    assert!(before.as_u64().unwrap() > 10);
    assert!(owner.server.terminate().success());
    assert_eq!(head(&entry), before);
}
