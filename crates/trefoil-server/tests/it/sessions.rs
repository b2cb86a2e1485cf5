//! Tokens: where they are read from, when they are handed out, and that they are never logged.

use std::fmt::{Debug, Write as _};
use std::sync::Mutex;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};

use crate::client::{bearer, bearer_of, request, rpc};
use crate::harness::TestServer;

#[test]
fn a_namespace_that_appears_in_test_mode_tells_its_token_once() {
    let server = TestServer::test_mode();
    let token = format!("ns_ZnJlc2g_{}", "1".repeat(64));
    let version = br#"["sys.version"]"#;
    let reply = request(server.address, "POST", "/rpc", &bearer_of(&token), version);
    assert_eq!(reply.header("x-eventodb-token"), Some(token.as_str()));
    let reply = request(server.address, "POST", "/rpc", &bearer_of(&token), version);
    assert_eq!(reply.header("x-eventodb-token"), None);
    let reply = request(server.address, "POST", "/rpc", "", version);
    assert_eq!(
        (reply.status, reply.header("x-eventodb-token")),
        (200, None)
    );
    // An error tells it, too.
    let token = format!("ns_b3RoZXI_{}", "2".repeat(64));
    let reply = request(server.address, "POST", "/rpc", &bearer_of(&token), b"[");
    assert_eq!(reply.status, 400);
    assert_eq!(reply.header("x-eventodb-token"), Some(token.as_str()));
}

#[test]
fn the_scheme_must_be_bearer() {
    let server = TestServer::production();
    let cases = [
        (
            "authorization: Basic eA==\r\n",
            "Authorization header must use Bearer scheme",
        ),
        (
            "authorization: bearer x\r\n",
            "Authorization header must use Bearer scheme",
        ),
        ("authorization: Bearer \r\n", "Token required"),
        ("authorization: \r\n", "Authorization header required"),
    ];
    for (header, message) in cases {
        let reply = request(server.address, "POST", "/rpc", header, b"[]");
        assert_eq!(reply.status, 401);
        assert!(reply.text().contains(message), "{header}: {}", reply.text());
    }
    let header = "authorization: Basic eA==\r\n";
    let server = TestServer::test_mode();
    assert_eq!(
        request(server.address, "POST", "/rpc", header, b"[\"sys.version\"]").status,
        200
    );
}

/// Everything that was logged, in one text.
static LOG: Mutex<String> = Mutex::new(String::new());

struct Recorder;

impl Visit for Recorder {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(LOG.lock().unwrap(), "{field}={value:?} ").unwrap();
    }
}

impl tracing::Subscriber for Recorder {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Recorder);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Recorder);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Recorder);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn tokens_are_never_logged() {
    tracing::subscriber::set_global_default(Recorder).unwrap();
    let server = TestServer::test_mode();
    let secret = "5ec2e7".repeat(11)[..64].to_owned();
    let token = format!("ns_bG9nZ2Vk_{secret}");
    for path in [
        "/rpc",
        "/import",
        "/export",
        "/nope",
        "/subscribe",
        "/events",
    ] {
        let with_query = format!("{path}?token={token}");
        for (path, headers) in [
            (with_query.as_str(), String::new()),
            (path, bearer_of(&token)),
        ] {
            request(server.address, "POST", path, &headers, b"[\"sys.version\"]");
        }
    }
    rpc(
        server.address,
        &format!(r#"["ns.create","logged2",{{"token":"{token}"}}]"#),
    );
    rpc(server.address, &format!(r#"["{token}"]"#));
    request(server.address, "POST", "/rpc", &bearer(), token.as_bytes());
    drop(server);
    let log = LOG.lock().unwrap();
    assert!(
        log.contains("message=HTTP request method=\"POST\" path=\"/subscribe\" status="),
        "{log}"
    );
    assert!(!log.contains("5ec2e7"));
}
