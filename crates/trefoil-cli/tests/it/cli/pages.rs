//! What a web page can make a browser send: nothing that changes a database for development, and
//! nothing whose answer it may read unless it was allowed to.

use std::io::{BufReader, Write as _};

use serde_json::json;
use tempfile::TempDir;

use super::{Process, free_port};
use crate::harness::{ADMIN, Client, Response, Server, connect, read_head};

const EVIL: (&str, &str) = ("Origin", "https://evil.example");
const OWN: (&str, &str) = ("Origin", "http://localhost:3000");
const ALLOW_ORIGIN: &str = "access-control-allow-origin";

/// A server for development with one event, and what keeps its data.
fn dev(flags: &[&str]) -> (Process, u16, TempDir) {
    let directory = TempDir::new().unwrap();
    let port = free_port();
    let port_argument = format!("--port={port}");
    let own = ["dev", "--grpc-port=0", "--resp-port=0", &port_argument];
    let server = Process::serve(&[&own, flags].concat(), port, directory.path());
    Client::new(port, Some(ADMIN)).write("account-1", &json!({}));
    (server, port, directory)
}

/// Sends a request as a page would: with the token that everybody knows, in the query string.
fn send(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let sign = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{sign}token={ADMIN}");
    let mut client = Client::new(port, None);
    client.try_request(method, &path, headers, body).unwrap()
}

/// The headers of an answer that does not end.
fn feed(port: u16, path: &str, headers: &str) -> (u16, Vec<(String, String)>) {
    let mut socket = connect(port).unwrap();
    let request = format!("GET {path}&token={ADMIN} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    read_head(&mut BufReader::new(socket)).unwrap()
}

fn allowed(headers: &[(String, String)]) -> Option<&str> {
    let header = headers.iter().find(|(name, _)| name == ALLOW_ORIGIN);
    header.map(|(_, value)| value.as_str())
}

#[track_caller]
fn assert_untouched(port: u16) {
    let version = json!(["stream.version", "account-1"]);
    let mut client = Client::new(port, Some(ADMIN));
    assert_eq!(client.rpc(&version).ok(), 0);
}

#[test]
fn what_changes_something_is_no_get() {
    let (_server, port, _data) = dev(&[]);
    for path in ["/import?force=true", "/rpc", "/dcb/append"] {
        for method in ["GET", "PUT", "OPTIONS"] {
            let answer = send(port, method, path, &[], b"");
            assert_eq!(answer.status, 405, "{method} {path}");
            assert_eq!(answer.header("allow"), Some("POST"), "{method} {path}");
        }
    }
    assert_untouched(port);
}

#[test]
fn pages_of_elsewhere_do_not_reach_a_server_for_development() {
    let (_server, port, _data) = dev(&[]);
    let write = json!(["stream.write", "account-1", {"type": "T"}]).to_string();
    let write = write.as_bytes();
    for (host, headers, status) in [
        ("localhost", &[EVIL][..], 403),
        ("localhost", &[("Origin", "null")], 403),
        ("evil.example", &[], 421),
        ("evil.example", &[("Origin", "http://evil.example")], 421),
        ("127.0.0.1.evil.example", &[], 421),
    ] {
        let host = format!("{host}:{port}");
        let headers = [headers, &[("Host", host.as_str())]].concat();
        for (method, path, body) in [
            ("POST", "/rpc", write),
            ("POST", "/import?force=true", b""),
            ("POST", "/dcb/append", br#"{"events":[{"type":"T"}]}"#),
            ("GET", "/export", b""),
            ("GET", "/metrics", b""),
            ("OPTIONS", "/rpc", b""),
        ] {
            let answer = send(port, method, path, &headers, body);
            assert_eq!(answer.status, status, "{headers:?} {method} {path}");
            assert_eq!(answer.header(ALLOW_ORIGIN), None, "{method} {path}");
        }
    }
    assert_eq!(
        feed(port, "/events?all=true", "Origin: https://evil.example\r\n").0,
        403
    );
    assert_untouched(port);
    // With what they are told, people find the way.
    let refused = send(port, "GET", "/export", &[("Host", "evil.example")], b"");
    assert_eq!(refused.code(), "HOST_NOT_ALLOWED");
    assert!(
        refused.text().contains("--allow-host"),
        "{}",
        refused.text()
    );
    let refused = send(port, "GET", "/export", &[EVIL], b"");
    assert_eq!(refused.code(), "ORIGIN_NOT_ALLOWED");
    assert!(
        refused.text().contains("--allow-origin"),
        "{}",
        refused.text()
    );
}

#[test]
fn pages_of_this_machine_and_those_that_were_named_use_a_server_for_development() {
    let flags = [
        "--allow-host=dev.example",
        "--allow-origin=https://app.example",
    ];
    let (_server, port, _data) = dev(&flags);
    let version = json!(["stream.version", "account-1"]).to_string();
    for origin in [OWN, ("Origin", "https://app.example")] {
        let preflight = [origin, ("Access-Control-Request-Method", "POST")];
        let asked = send(port, "OPTIONS", "/rpc", &preflight, b"");
        assert_eq!(asked.status, 204);
        assert_eq!(asked.header(ALLOW_ORIGIN), Some(origin.1));
        assert_eq!(
            asked.header("access-control-allow-methods"),
            Some("GET, POST")
        );
        let headers = asked.header("access-control-allow-headers").unwrap();
        assert!(headers.contains("authorization"), "{headers}");

        let host = ("Host", "dev.example:1");
        let answer = send(port, "POST", "/rpc", &[origin, host], version.as_bytes());
        assert_eq!(
            (answer.ok(), answer.header(ALLOW_ORIGIN)),
            (json!(0), Some(origin.1))
        );
        assert_eq!(answer.header("vary"), Some("origin"));
        let own = format!("{}: {}\r\n", origin.0, origin.1);
        for path in ["/events?all=true", "/subscribe?all=true"] {
            let (status, headers) = feed(port, path, &own);
            assert_eq!((status, allowed(&headers)), (200, Some(origin.1)), "{path}");
        }
    }
    // Who is no page needs no header.
    let (status, headers) = feed(port, "/subscribe?all=true", "");
    assert_eq!((status, allowed(&headers)), (200, None));
}

#[test]
fn a_server_with_a_secret_lets_pages_read_only_where_it_says_so() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let evil = "Origin: https://evil.example\r\n";
    let feeds = |port| {
        ["/subscribe?all=true", "/events?all=true"].map(|path| {
            let (status, headers) = feed(port, path, evil);
            assert_eq!(status, 200, "{path}");
            allowed(&headers).map(str::to_owned)
        })
    };
    assert_eq!(feeds(server.port), [Some("*".to_owned()), None]);
    for (method, path) in [("POST", "/import"), ("GET", "/export")] {
        let answer = send(
            server.port,
            method,
            path,
            &[EVIL, ("Host", "any.example")],
            b"",
        );
        assert_eq!(
            (answer.status, answer.header(ALLOW_ORIGIN)),
            (200, None),
            "{path}"
        );
    }
    let preflight = [EVIL, ("Access-Control-Request-Method", "POST")];
    let asked = send(server.port, "OPTIONS", "/rpc", &preflight, b"");
    assert_eq!((asked.status, asked.header(ALLOW_ORIGIN)), (405, None));
    drop(server);

    let flags = ["--allow-origin", EVIL.1, "--allow-host", "any.example"];
    let server = Server::on(data.path(), &flags);
    assert_eq!(
        feeds(server.port),
        [EVIL.1, EVIL.1].map(|it| Some(it.to_owned()))
    );
    let asked = send(server.port, "OPTIONS", "/rpc", &preflight, b"");
    assert_eq!(
        (asked.status, asked.header(ALLOW_ORIGIN)),
        (204, Some(EVIL.1))
    );
    let other = send(server.port, "GET", "/export", &[OWN], b"");
    assert_eq!((other.status, other.header(ALLOW_ORIGIN)), (200, None));
    for (host, status) in [("any.example", 200), ("other.example", 421)] {
        let answer = send(server.port, "GET", "/export", &[("Host", host)], b"");
        assert_eq!(answer.status, status, "{host}");
    }
}
