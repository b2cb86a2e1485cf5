//! `verify`, `repair` and `inspect` on the files of a stopped server.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Cli, errors, ndjson, text};
use crate::harness::{SMALL_PARTS, Server, binary};

/// Enough for several segments.
const EVENTS: u64 = 10_000;

/// A data directory with two namespaces of a few segments each.
fn filled() -> TempDir {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &SMALL_PARTS);
    let cli = Cli::of(&server);
    let token = cli.ok(&["ns", "create", "tenant-a"]);
    let file = data.path().join("in.ndjson");
    let lines: String = (0..EVENTS).map(|n| ndjson("account-1", n, n + 1)).collect();
    std::fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    cli.ok(&["import", "--input", file]);
    cli.ok(&["import", "--input", file, "--token", token.trim()]);
    assert!(server.terminate().success());
    data
}

fn run(command: &str, directory: &Path, flags: &[&str]) -> Output {
    binary()
        .arg(command)
        .arg(directory)
        .args(flags)
        .output()
        .unwrap()
}

#[track_caller]
fn values(command: &str, directory: &Path, flags: &[&str]) -> Vec<Value> {
    let output = run(command, directory, &[flags, &["--json"]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    text(&output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn sound_databases_are_verified_inspected_and_rebuilt() {
    let data = filled();
    let verified = values("verify", data.path(), &[]);
    assert_eq!(verified.len(), 3, "the registry and every namespace");
    assert_eq!(
        (&verified[0]["namespaces"], &verified[0]["findings"]),
        (&json!(2), &json!([]))
    );
    for report in &verified[1..] {
        assert_eq!(
            (&report["events"], &report["findings"]),
            (&json!(EVENTS), &json!([]))
        );
    }
    let default = data.path().join("default");
    let inspected = &values("inspect", &default, &[])[0];
    let segments = inspected["segments"].as_array().unwrap();
    assert!(segments.len() > 2, "{inspected}");
    let events: u64 = segments
        .iter()
        .map(|segment| segment["events"].as_u64().unwrap())
        .sum();
    assert_eq!(events, EVENTS);
    let records = values("inspect", &default, &["--records", "1"]);
    let first: u64 = records
        .iter()
        .map(|record| record["events"].as_u64().unwrap())
        .sum();
    assert_eq!(json!(first), segments[0]["events"]);
    let run_name = inspected["runs"][0]["run"].as_str().unwrap();
    assert_eq!(
        values("inspect", &default, &["--keys", run_name, "--limit", "3"]).len(),
        3
    );
    assert!(text(&run("inspect", &default, &[])).contains("PLAIN BYTES"));

    assert_eq!(values("repair", &default, &[])[0]["events"], EVENTS);
    assert_eq!(values("verify", &default, &[])[0]["findings"], json!([]));
    let server = Server::on(data.path(), &SMALL_PARTS);
    let last = Cli::of(&server).values(&["read", "account-1", "--last"]);
    assert_eq!(last[0]["position"], EVENTS - 1);
}

#[test]
fn damage_is_found_and_named() {
    let data = filled();
    let default = data.path().join("default");
    let inspected = &values("inspect", &default, &[])[0];
    let path = inspected["segments"][0]["path"].as_str().unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
    let output = run("verify", data.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    let (found, said) = (text(&output), errors(&output));
    assert!(found.contains("damaged") && found.contains(path), "{found}");
    assert!(
        found.contains("sound"),
        "the other namespace is verified too: {found}"
    );
    assert!(said.contains("wrong") && said.contains("default"), "{said}");
}

#[test]
fn an_open_database_and_a_missing_one_are_refused() {
    let data = TempDir::new().unwrap();
    assert_eq!(run("verify", data.path(), &[]).status.code(), Some(4));
    // A server that was stopped before anybody wrote leaves a data directory.
    std::fs::create_dir(data.path().join("_meta")).unwrap();
    let output = run("verify", data.path(), &[]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(text(&output).contains("sound"), "{}", text(&output));
    assert_eq!(
        run("verify", &data.path().join("none"), &[]).status.code(),
        Some(1)
    );
    let server = Server::on(data.path(), &[]);
    Cli::of(&server).ok(&["write", "account-1", "Opened"]);
    for command in ["verify", "repair", "inspect"] {
        let output = run(command, data.path(), &[]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert!(
            errors(&output).contains("in use by another process"),
            "{}",
            errors(&output)
        );
    }
    assert_eq!(Cli::of(&server).values(&["read", "account-1"]).len(), 1);
}
