//! Published clients at a server that does not have their namespace: another one does, which shares the
//! storage.

use std::rc::Rc;

use serde_json::json;
use tempfile::TempDir;

use super::Storage;
use crate::harness::{ADMIN, Server, Value, binary};
use crate::python::{has, run, script};
use crate::tls::CertificateFiles;

/// A server on a storage, with a cache of its own.
struct Node {
    server: Server,
    certificate: Option<Rc<CertificateFiles>>,
    _cache: TempDir,
}

impl Node {
    fn start(storage: &Storage, prefix: &str, certificate: Option<Rc<CertificateFiles>>) -> Self {
        let cache = TempDir::new().unwrap();
        let directory = cache.path().join("cache");
        let url = format!("{}/{prefix}", storage.url);
        let mut arguments = vec!["--storage", &url, "--token", ADMIN];
        arguments.extend(["--cache-dir", directory.to_str().unwrap()]);
        let tls = certificate.as_ref().map(|files| files.arguments());
        arguments.extend(tls.iter().flatten().map(String::as_str));
        let mut command = binary();
        command.envs(&storage.variables);
        Self {
            server: Server::try_launch(command, &arguments).unwrap(),
            certificate,
            _cache: cache,
        }
    }

    /// Returns how many requests of a protocol another server has answered for it.
    fn forwarded(&self, protocol: &str) -> u64 {
        let start = format!(
            "trefoil_forwarded_requests_total{{protocol=\"{protocol}\",outcome=\"answered\"}} "
        );
        let text = match &self.certificate {
            None => self.server.anonymous().get("/metrics").text().to_owned(),
            Some(files) => files.curl(&self.server, "/metrics", &[]),
        };
        let mut lines = text.lines();
        let count = lines.find_map(|line| line.strip_prefix(&start));
        count.unwrap().parse().unwrap()
    }

    fn head(&self) -> u64 {
        let (request, token) = (
            json!(["events.head"]),
            format!("Authorization: Bearer {ADMIN}"),
        );
        let Some(files) = &self.certificate else {
            return self.server.client().rpc(&request).ok().as_u64().unwrap();
        };
        let request = request.to_string();
        let head = files.curl(&self.server, "/rpc", &["-H", &token, "-d", &request]);
        head.parse().unwrap()
    }
}

/// Starts two servers. Returns the one that has the default namespace, and the other one.
fn owner_and_entry(
    storage: &Storage,
    prefix: &str,
    certificate: Option<&Rc<CertificateFiles>>,
) -> (Node, Node) {
    let first = Node::start(storage, prefix, certificate.cloned());
    let second = Node::start(storage, prefix, certificate.cloned());
    first.head();
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
    let (owner, entry) = owner_and_entry(&storage, "redis", None);
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
    let files = Rc::new(CertificateFiles::new());
    let (owner, entry) = owner_and_entry(&storage, "umadb", Some(&files));
    let url = format!("https://localhost:{}", entry.server.grpc_port);
    let wrong = ADMIN.replace("000", "001");
    let mut client = script("umadb_client.py");
    client.arg(&url).arg(files.authority());
    run(client.args([ADMIN, &wrong]));
    assert!(entry.forwarded("grpc") > 100);
    let before = entry.head();
    assert!(before > 10);
    assert!(owner.server.terminate().success());
    assert_eq!(entry.head(), before);
}
