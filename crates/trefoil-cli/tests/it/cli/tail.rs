//! Following events.

use std::io::{BufRead as _, BufReader};

use serde_json::Value;
use tempfile::TempDir;

use super::{Cli, Process, free_port};
use crate::harness::Server;

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
fn tail_of_what_is_new_leaves_out_the_past() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    cli.ok(&["write", "account-1", "Past"]);
    let mut tail = Process::start(&mut cli.command(&["tail", "account", "--new"]));
    // The command does not say when it has begun to listen, so that events are written until one
    // arrives.
    let mut lines = BufReader::new(tail.0.stdout.take().unwrap()).lines();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || lines.next().unwrap().unwrap());
        while !reader.is_finished() {
            cli.ok(&["write", "order-1", "Unwanted"]);
            cli.ok(&["write", "account-1", "Present"]);
        }
        let line = reader.join().unwrap();
        assert!(line.contains("Present"), "{line}");
    });
}
