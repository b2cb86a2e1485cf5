//! Following events.

use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::{Cli, Process, free_port};
use crate::harness::{ADMIN, Client};

#[test]
fn tail_goes_on_where_a_lost_connection_broke_off() {
    let directory = TempDir::new().unwrap();
    let port = free_port();
    let arguments = ["dev", "--data-dir=d", &format!("--port={port}")];
    let server = Process::serve(&arguments, port, directory.path());
    let cli = Cli {
        url: format!("http://127.0.0.1:{port}"),
    };
    cli.ok(&["write", "account-1", "First"]);
    let mut tail = Process::start(&mut cli.command(&["tail", "account", "--json"]));
    let mut lines = BufReader::new(tail.0.stdout.take().unwrap()).lines();
    let mut next = || {
        let line = lines.next().unwrap().unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        event["type"].as_str().unwrap().to_owned()
    };
    assert_eq!(next(), "First");
    cli.ok(&["write", "account-2", "Second"]);
    cli.ok(&["write", "order-1", "Unwanted"]);
    assert_eq!(next(), "Second");
    server.stop();
    let _server = Process::serve(&arguments, port, directory.path());
    cli.ok(&["write", "account-1", "Third"]);
    assert_eq!(next(), "Third");
}

#[test]
fn tail_of_what_is_new_leaves_out_the_past_and_misses_nothing_after() {
    let directory = TempDir::new().unwrap();
    let serve = |port: u16| {
        let arguments = ["dev", "--data-dir=d", &format!("--port={port}")];
        Process::serve(&arguments, port, directory.path())
    };
    let cli_at = |port: u16| Cli {
        url: format!("http://127.0.0.1:{port}"),
    };
    let (port, other_port) = (free_port(), free_port());
    let server = serve(port);
    let cli = cli_at(port);
    cli.ok(&["write", "account-1", "Past"]);
    let mut tail = Process::start(&mut cli.command(&["tail", "account", "--new"]));
    wait_for_subscriber(port);
    server.stop();
    // On another port, so that the command cannot be back before the event is written.
    let server = serve(other_port);
    cli_at(other_port).ok(&["write", "order-1", "Unwanted"]);
    cli_at(other_port).ok(&["write", "account-1", "Missed"]);
    server.stop();
    let _server = serve(port);
    let mut lines = BufReader::new(tail.0.stdout.take().unwrap()).lines();
    // Should the one above be missed, the test ends with this one.
    wait_for_subscriber(port);
    cli.ok(&["write", "account-1", "Present"]);
    for expected in ["Missed", "Present"] {
        let line = lines.next().unwrap().unwrap();
        assert!(line.contains(expected), "{line}");
    }
}

/// Waits until somebody follows events of the server on `port`.
fn wait_for_subscriber(port: u16) {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(30) {
        let answer = Client::new(port, Some(ADMIN)).get("/metrics");
        if answer.text().contains("trefoil_subscribers 1\n") {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nobody subscribed in 30 seconds");
}
