//! The gRPC listener: its settings, what is said of it, and what happens if its port is taken.

use std::net::TcpListener;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Process, announced, assert_goes_on_without, assert_refused, free_port, text};
use crate::harness::binary;

#[test]
fn grpc_listens_where_http_does_unless_told_otherwise() {
    let port = free_port();
    let port_argument = format!("--grpc-port={port}");
    let both = announced(&["--listen=127.0.0.1,::1", &port_argument]);
    let here = both["grpc"].as_array().unwrap();
    assert_eq!(here[0], format!("127.0.0.1:{port}"));
    let one = announced(&["--grpc-listen=127.0.0.1", &port_argument]);
    assert_eq!(one["grpc"], json!([format!("127.0.0.1:{port}")]));
    let own = announced(&[&format!("--grpc-listen=127.0.0.1:{port}")]);
    assert_eq!(own["grpc"], json!([format!("127.0.0.1:{port}")]));
    assert_eq!(announced(&["--grpc-port=off"])["grpc"], json!([]));
}

#[test]
fn a_port_that_was_asked_for_and_is_taken_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let expected = format!("listen on {address}: Address already in use");
    for argument in [
        format!("--grpc-port={}", address.port()),
        format!("--grpc-listen={address}"),
    ] {
        assert_refused(&[&argument], &expected);
    }
}

#[test]
fn without_the_default_port_the_server_says_so_and_goes_on() {
    assert_goes_on_without("gRPC", 50051);
}

#[test]
fn settings_of_grpc_that_cannot_work_are_refused_by_name() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("nothing.pem");
    std::fs::write(&file, "nothing").unwrap();
    let file = file.to_str().unwrap();
    let (certificate, key) = (format!("--tls-cert={file}"), format!("--tls-key={file}"));
    for (arguments, expected) in [
        (
            &["--grpc-port=grpc"][..],
            "grpc-port (flag): \"grpc\" is neither a port",
        ),
        (
            &["--grpc-listen=here"],
            "grpc-listen (flag): \"here\" is not an IP address",
        ),
        (
            &["--grpc-threads=0"],
            "grpc-threads (flag): it must be at least 1",
        ),
        (&[&certificate], "tls-cert and tls-key go together"),
        (&[&key], "tls-cert and tls-key go together"),
        (&[&key, "--tls-cert=missing.pem"], "cannot read missing.pem"),
        (&[&certificate, &key], "the TLS certificate cannot be used"),
    ] {
        assert_refused(arguments, expected);
    }
}

#[test]
fn print_config_shows_the_settings_of_grpc() {
    let mut serve = binary();
    let serve = serve.args(["serve", "--print-config", "--json"]);
    serve.env("TREFOIL_GRPC_PORT", "off");
    let output = serve.env("TREFOIL_GRPC_THREADS", "3").output().unwrap();
    let printed = text(&output);
    for (name, value, source) in [
        ("grpc-port", "off", "environment TREFOIL_GRPC_PORT"),
        ("grpc-listen", "(not set)", "default"),
        ("grpc-threads", "3", "environment TREFOIL_GRPC_THREADS"),
        ("tls-cert", "(not set)", "default"),
        ("tls-key", "(not set)", "default"),
    ] {
        let expected = json!({"name": name, "value": value, "source": source});
        let is_there = |line: &str| serde_json::from_str::<Value>(line).unwrap() == expected;
        assert!(printed.lines().any(is_there), "{expected} not in {printed}");
    }
}

#[test]
fn dev_prints_a_call_to_copy() {
    let directory = TempDir::new().unwrap();
    let (port, grpc_port) = (free_port(), free_port());
    let arguments = [
        "dev",
        &format!("--port={port}"),
        &format!("--grpc-port={grpc_port}"),
    ];
    let printed = Process::serve(&arguments, port, directory.path()).stop();
    let url = format!("http://127.0.0.1:{grpc_port}");
    assert!(printed.contains(&format!("gRPC   {url}")), "{printed}");
    assert!(
        printed.contains(&format!("umadb.Client(\"{url}\")")),
        "{printed}"
    );
}
