//! What a server says of namespaces whose disk has failed.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use trefoil::{Namespaces, NamespacesOptions, Options};
use trefoil_server::Config;
use trefoil_storage::local::disk::SimulatedDisk;

use crate::client::{Reply, bearer, bearer_of, request, rpc};
use crate::harness::TestServer;
use crate::resp::Client;

struct Failing {
    directory: tempfile::TempDir,
    _attic: tempfile::TempDir,
    disk: Arc<SimulatedDisk>,
    server: TestServer,
}

fn failing() -> Failing {
    let (directory, attic) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let disk = Arc::new(SimulatedDisk::new(attic.path(), 1));
    let options = NamespacesOptions::default()
        .with_database(Options::default().with_disk(Arc::clone(&disk) as _));
    let namespaces = Namespaces::open(directory.path(), options).unwrap();
    Failing {
        directory,
        _attic: attic,
        disk,
        server: TestServer::on(Config::default(), namespaces),
    }
}

/// Creates a namespace and answers the header line with its token.
fn create(address: SocketAddr, id: &str) -> String {
    let created = rpc(address, &format!(r#"["ns.create","{id}"]"#));
    let created: serde_json::Value = serde_json::from_slice(&created.body).unwrap();
    bearer_of(created["token"].as_str().unwrap())
}

fn call(address: SocketAddr, token: &str, body: &str) -> Reply {
    request(address, "POST", "/rpc", token, body.as_bytes())
}

fn write(address: SocketAddr, token: &str) -> Reply {
    let body = r#"["stream.write","a-1",{"type":"T","data":{}}]"#;
    call(address, token, body)
}

fn get(address: SocketAddr, path: &str) -> Reply {
    request(address, "GET", path, "", b"")
}

/// Lets a write of this token fail at its sync.
fn break_with(failing: &Failing, token: &str) {
    failing.disk.fail_syncs(Some(ErrorKind::Other));
    let unknown = write(failing.server.address, token);
    failing.disk.fail_syncs(None);
    assert_eq!(unknown.status, 500);
    let text = unknown.text();
    assert!(text.contains("OUTCOME_UNKNOWN"), "{text}");
    assert!(text.contains("unknown whether this was written"), "{text}");
}

#[test]
fn a_namespace_that_refuses_writes_is_shown_and_can_be_opened_again() {
    let failing = failing();
    let address = failing.server.address;
    let (side, other) = (create(address, "side"), create(address, "other"));
    for token in [&side, &other, &bearer()] {
        assert_eq!(write(address, token).status, 200);
    }
    let gauge = |n: usize| format!("trefoil_namespaces_refusing_writes {n}\n");
    assert!(get(address, "/metrics").text().contains(&gauge(0)));
    break_with(&failing, &side);

    assert_eq!(write(address, &side).status, 500);
    assert_eq!(write(address, &other).status, 200);
    assert!(get(address, "/metrics").text().contains(&gauge(1)));
    let health = |token: &str| call(address, token, r#"["sys.health"]"#).text().to_owned();
    for token in [&side, &bearer()] {
        let text = health(token);
        let expected = r#""refusingWrites":["side"],"status":"degraded""#;
        assert!(text.contains(expected), "{text}");
        let info = call(address, token, r#"["ns.info","side"]"#);
        assert!(
            info.text().contains("\"refusesWrites\":\""),
            "{}",
            info.text()
        );
    }
    assert!(health(&other).contains("\"status\":\"ok\""));
    for path in ["/health", "/ready"] {
        let reply = get(address, path);
        assert_eq!(reply.status, 200, "{path}");
        assert!(!reply.text().contains("side"), "{path}");
    }

    let reopen = r#"["ns.reopen","side"]"#;
    assert_eq!(call(address, &other, reopen).status, 403);
    let reopened = call(address, &side, reopen);
    assert_eq!(reopened.text(), r#"{"namespace":"side"}"#);
    assert_eq!(write(address, &side).status, 200);
    assert!(get(address, "/metrics").text().contains(&gauge(0)));
    assert!(health(&bearer()).contains("\"status\":\"ok\""));
}

#[test]
fn a_server_whose_own_namespace_refuses_writes_is_alive_and_not_ready() {
    let failing = failing();
    let address = failing.server.address;
    assert_eq!(get(address, "/ready").text(), r#"{"status":"ready"}"#);
    assert_eq!(write(address, &bearer()).status, 200);
    break_with(&failing, &bearer());
    assert_eq!(get(address, "/health").status, 200);
    let reply = get(address, "/ready");
    assert_eq!(reply.status, 503);
    assert_eq!(reply.text(), r#"{"status":"not ready","reason":"storage"}"#);
    assert_eq!(rpc(address, r#"["ns.reopen","default"]"#).status, 200);
    assert_eq!(get(address, "/ready").status, 200);
}

#[test]
fn waiting_for_the_log_says_that_a_write_has_failed() {
    let failing = failing();
    let mut client = Client::known(&failing.server);
    assert_eq!(client.say("SET a 1"), "+OK");
    assert_eq!(client.say("WAITAOF 1 0 0"), "[1 0]");
    break_with(&failing, &bearer());
    let refused = client.say("WAITAOF 1 0 0");
    assert!(refused.starts_with("-READONLY "), "{refused}");
    let reopened = rpc(failing.server.address, r#"["ns.reopen","default"]"#);
    assert_eq!(reopened.status, 200);
    assert_eq!(client.say("WAITAOF 1 0 0"), "[1 0]");
}

#[test]
fn a_namespace_that_is_missing_is_an_error_of_its_own() {
    let failing = failing();
    let address = failing.server.address;
    let side = create(address, "side");
    assert_eq!(write(address, &side).status, 200);
    std::fs::remove_dir_all(failing.directory.path().join("side/1/log")).unwrap();
    let reply = call(address, &side, r#"["ns.reopen","side"]"#);
    assert_eq!(reply.status, 500);
    assert!(reply.text().contains("\"DAMAGED\""), "{}", reply.text());
    assert!(reply.text().contains("missing"), "{}", reply.text());
    assert_eq!(write(address, &side).status, 503);
    assert_eq!(write(address, &bearer()).status, 200);
}
