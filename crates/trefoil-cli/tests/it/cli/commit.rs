//! `trefoil commit`: made of flags, and from a file.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Cli, text};
use crate::harness::{Server, piped};

#[test]
fn flags_make_a_commit_that_is_all_or_nothing() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let committed = cli.ok(&[
        "commit",
        "--event",
        r#"Opened@account-1={"owner": "Ada"}"#,
        "--event",
        "Counted",
        "--tag",
        "a,b",
        "--expect",
        "account-1=-1",
        "--if-missing",
        "k",
        "--state",
        "SET k 'a b'",
        "--state",
        "HSET h f 1",
        "--track",
        "orders=7",
    ]);
    assert_eq!(committed, "account-1@0  1\n2\nOK\n(integer) 1\n");
    let events = cli.values(&["query", "--item", r#"{"tags":["a,b"]}"#]);
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["data"], json!({"owner": "Ada"}));
    // Each condition by itself keeps everything from being written.
    for (condition, code) in [
        (["--expect", "account-1=7"], "STREAM_VERSION_CONFLICT"),
        (["--if-none", "type=Opened"], "CONDITION_FAILED"),
        (["--if-missing", "k"], "GUARD_FAILED"),
        (["--if-exists", "none"], "GUARD_FAILED"),
        (["--if-key", "k=a"], "GUARD_FAILED"),
        (["--track", "orders=7"], "TRACKING_CONFLICT"),
        (["--state", "INCR k"], "COMMAND_FAILED"),
    ] {
        let rest = ["commit", "--event", "No", "--state", "SET no 1"];
        let said = cli.fails(3, &[&rest[..], &condition].concat());
        assert!(said.contains(code), "{condition:?}: {said}");
    }
    assert!(cli.values(&["query", "--type", "No"]).is_empty());
    assert_eq!(cli.ok(&["state", "EXISTS", "no"]), "0\n");
    let fine = ["--if-key", "k=a b", "--if-exists", "h"];
    let after = ["--if-none", "type=Opened", "--after", "1"];
    cli.ok(&[&["commit", "--event", "Yes"], &fine[..], &after].concat());
}

#[test]
fn a_commit_comes_from_a_file_or_standard_input() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("commit.json");
    let id = "11111111-1111-4111-8111-111111111111";
    let commit = json!({
        "id": id,
        "events": [{"stream": "a-1", "type": "T", "data": [1]}],
        "state": [["SET", "k", 1], ["GET", "k"]],
    });
    std::fs::write(&file, commit.to_string()).unwrap();
    let path = file.to_str().unwrap();
    let first = cli.values(&["commit", path]);
    assert_eq!(first[0]["state"], json!(["OK", "1"]));
    let output = piped(
        &mut cli.command(&["commit", "-", "--json"]),
        commit.to_string().as_bytes(),
    );
    let again: Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!(again, first[0], "the same id is the same commit");
    for (bad, code, expected) in [
        ("{", 2, "not JSON"),
        ("[]", 2, "must be a JSON object"),
        ("{}", 1, "at least one event"),
        (r#"{"event": []}"#, 1, "did you mean \"events\""),
    ] {
        std::fs::write(&file, bad).unwrap();
        let said = cli.fails(code, &["commit", path]);
        assert!(said.contains(expected), "{bad}: {said}");
    }
    cli.fails(1, &["commit", "/nonexistent"]);
    cli.fails(2, &["commit"]);
    cli.fails(2, &["commit", path, "--event", "T"]);
    cli.fails(2, &["commit", "--event", "T={"]);
    cli.fails(2, &["commit", "--tag", "t", "--state", "GET k"]);
}
