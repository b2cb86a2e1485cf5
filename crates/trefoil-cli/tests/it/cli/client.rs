//! The client's commands against a running server.

use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Cli, Process, ndjson, text};
use crate::harness::{ADMIN, Server, piped};

#[test]
fn events_are_written_and_read() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let written = cli.values(&[
        "write",
        "account-1",
        "Opened",
        r#"{"n": 1.0}"#,
        "--expected-version",
        "-1",
    ]);
    assert_eq!(written, [json!({"position": 0, "globalPosition": 1})]);
    let mut command = cli.command(&[
        "write",
        "account-1",
        "Closed",
        "-",
        "--metadata",
        r#"{"a":1}"#,
    ]);
    let output = piped(&mut command, br#"{"from":"stdin"}"#);
    assert_eq!(text(&output), "account-1@1  2\n");
    cli.ok(&["write", "other", "T"]);

    let printed = cli.ok(&["read", "account-1"]);
    assert!(
        printed.contains(r#"account-1@0  Opened  {"n": 1.0}"#),
        "byte for byte: {printed}"
    );
    let types = |arguments: &[&str]| {
        let values = cli.values(arguments);
        values
            .iter()
            .map(|value| value["type"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(types(&["read", "account"]), ["Opened", "Closed"]);
    assert_eq!(types(&["read", "account", "--from", "2"]), ["Closed"]);
    assert_eq!(types(&["read", "account-1", "--from", "1"]), ["Closed"]);
    assert_eq!(
        types(&["read", "--all", "--limit", "2"]),
        ["Opened", "Closed"]
    );
    assert_eq!(types(&["read", "other", "--stream"]), ["T"]);
    assert_eq!(types(&["read", "account-1", "--last"]), ["Closed"]);
    assert_eq!(
        types(&["read", "account-1", "--last", "--type", "Opened"]),
        ["Opened"]
    );
    let both = [
        types(&["read", "account", "--group", "0/2"]),
        types(&["read", "account", "--group", "1/2"]),
    ];
    assert_eq!(both.concat().len(), 2);
    assert_eq!(
        cli.values(&["read", "account-1", "--last"])[0]["metadata"],
        json!({"a": 1})
    );
}

#[test]
fn long_streams_are_read_in_pages() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let lines: String = (0..1203).map(|n| ndjson("page-1", n, n + 1)).collect();
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("in.ndjson");
    std::fs::write(&file, lines).unwrap();
    assert_eq!(
        cli.ok(&["import", "--input", file.to_str().unwrap()]),
        "imported 1203 events\n"
    );
    for arguments in [
        &["read", "page-1"][..],
        &["read", "page"],
        &["read", "--all"],
    ] {
        assert_eq!(cli.ok(arguments).lines().count(), 1203, "{arguments:?}");
    }
    assert_eq!(
        cli.ok(&["read", "page", "--limit", "1001"]).lines().count(),
        1001
    );
}

#[test]
fn each_failure_has_its_exit_code() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let cli = Cli::of(&server);
    cli.ok(&["write", "account-1", "Opened"]);
    cli.fails(
        3,
        &["write", "account-1", "Opened", "--expected-version", "-1"],
    );
    cli.fails(4, &["read", "account-2"]);
    cli.fails(4, &["read", "account-1", "--last", "--type", "Closed"]);
    cli.fails(4, &["ns", "info", "nobody"]);
    cli.fails(5, &["streams", "--token", "nonsense"]);
    cli.fails(5, &["streams", "--token", &ADMIN.replace("_00", "_01")]);
    cli.fails(2, &["write", "account-1", "Opened", "[]"]);
    cli.fails(2, &["write", "account-1", "Opened", "{"]);
    cli.fails(2, &["read", "account-1", "--group", "3/3"]);
    cli.fails(2, &["ns", "delete", "default"]);
    cli.fails(2, &["import", "--force"]);
    cli.fails(2, &["streams", "--url", "ftp://localhost"]);
    cli.fails(1, &["streams", "--url", "http://127.0.0.1:1"]);
    assert_eq!(cli.values(&["read", "account-1"]).len(), 1);
}

#[test]
fn errors_are_json_where_data_is() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    cli.ok(&["write", "account-1", "Opened"]);
    let told = |code, arguments: &[&str]| {
        let said = cli.fails(code, &[arguments, &["--json"]].concat());
        let told: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        assert!(told["error"]["message"].is_string(), "{told}");
        told["error"].clone()
    };
    let conflict = told(
        3,
        &["write", "account-1", "Opened", "--expected-version", "7"],
    );
    assert_eq!(conflict["code"], "STREAM_VERSION_CONFLICT");
    assert_eq!(conflict["details"], json!({"actual": 0, "expected": 7}));
    assert_eq!(told(4, &["read", "account-2"])["code"], "NOT_FOUND");
    assert_eq!(
        told(2, &["read", "account-1", "--nonsense"])["code"],
        "USAGE"
    );
    assert_eq!(
        told(2, &["read", "account-1", "--url", "ftp://x"])["code"],
        "USAGE"
    );
    assert_eq!(
        told(1, &["read", "account-1", "--url", "http://127.0.0.1:1"])["code"],
        "FAILED"
    );
    let empty = TempDir::new().unwrap();
    assert_eq!(
        told(4, &["verify", empty.path().to_str().unwrap()])["code"],
        "NOT_FOUND"
    );
}

#[test]
fn namespaces_are_created_listed_and_deleted() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let cli = Cli::of(&server);
    let token = cli.ok(&["ns", "create", "tenant-a", "--description", "First"]);
    let token = token.trim();
    cli.ok(&["write", "account-1", "Opened", "--token", token]);
    assert_eq!(
        cli.fails(3, &["ns", "create", "tenant-a"]).lines().count(),
        1
    );
    let listed = cli.values(&["ns", "list"]);
    let names: Vec<_> = listed
        .iter()
        .map(|row| row["namespace"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["default", "tenant-a"]);
    let info = &cli.values(&["ns", "info", "tenant-a"])[0];
    assert_eq!(
        (&info["messageCount"], &info["description"]),
        (&json!(1), &json!("First"))
    );
    cli.ok(&["ns", "delete", "tenant-a", "--yes"]);
    cli.fails(4, &["ns", "info", "tenant-a"]);
    assert!(!data.path().join("tenant-a").exists());
}

#[test]
fn streams_and_categories_are_listed() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    for stream in ["account-1", "account-2", "order-1", "\u{1b}[2J-1"] {
        cli.ok(&["write", stream, "T"]);
    }
    let streams = cli.values(&["streams", "account-"]);
    assert_eq!(streams.len(), 2);
    assert_eq!(
        (&streams[0]["stream"], &streams[0]["version"]),
        (&json!("account-1"), &json!(0))
    );
    assert_eq!(cli.values(&["streams", "--limit", "1"]).len(), 1);
    let categories = cli.values(&["categories"]);
    let account = json!({"category": "account", "messageCount": 2, "streamCount": 2});
    assert!(categories.contains(&account), "{categories:?}");
    let table = cli.ok(&["streams"]);
    assert!(
        table.starts_with("STREAM") && table.contains("order-1"),
        "{table}"
    );
    assert!(
        !table.contains('\u{1b}'),
        "a name cannot drive the terminal"
    );
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_command_quietly() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("in.ndjson");
    // More than a pipe holds.
    std::fs::write(
        &file,
        (0..2000)
            .map(|n| ndjson("long-1", n, n + 1))
            .collect::<String>(),
    )
    .unwrap();
    cli.ok(&["import", "--input", file.to_str().unwrap()]);
    for arguments in [&["read", "long-1", "--json"][..], &["export"]] {
        let mut process = Process::start(&mut cli.command(arguments));
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.starts_with('{'), "{line}");
        assert_eq!(process.errors(), "");
        assert!(process.0.wait().unwrap().success());
    }
}
