//! Export and import.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Cli, ndjson};
use crate::harness::Server;

#[test]
fn an_export_can_be_imported_elsewhere() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    for (stream, event_type) in [
        ("account-1", "Opened"),
        ("order-1", "Placed"),
        ("account-1", "Closed"),
    ] {
        cli.ok(&["write", stream, event_type, r#"{"n": 1.0}"#]);
    }
    let everything = cli.ok(&["export"]);
    assert_eq!(everything.lines().count(), 3);
    assert_eq!(
        cli.ok(&["export", "--categories", "order"]).lines().count(),
        1
    );
    assert_eq!(cli.ok(&["export", "--since", "2200-01-01"]), "");
    assert_eq!(cli.ok(&["export", "--until", "2200-01-01"]), everything);

    let directory = TempDir::new().unwrap();
    let file = directory.path().join("all.gz");
    let file = file.to_str().unwrap();
    assert_eq!(cli.ok(&["export", "--gzip", "--output", file]), "");
    assert!(!Path::new(&format!("{file}.partial")).exists());

    let other = Server::in_test_mode();
    let other = Cli::of(&other);
    assert_eq!(
        other.values(&["import", "--input", file]),
        [json!({"imported": 3})]
    );
    assert_eq!(other.ok(&["export"]), everything);
    let said = other.fails(3, &["import", "--input", file, "--gzip"]);
    assert!(said.contains("POSITION_EXISTS"), "{said}");
    other.ok(&["import", "--input", file, "--gzip", "--force", "--yes"]);
    assert_eq!(other.ok(&["export"]), everything);
}

#[test]
fn an_import_of_many_requests_counts_its_lines_through() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("in.ndjson");
    // About 6 MB, which is two requests, with a mistake in the last line.
    let mut lines: String = (0..30_000).map(|n| ndjson("long-1", n, n + 1)).collect();
    lines.push_str("{bad\n");
    std::fs::write(&file, &lines).unwrap();
    let said = cli.fails(1, &["import", "--input", file.to_str().unwrap()]);
    assert!(
        said.contains("at line 30001,") && said.contains("INVALID_JSON"),
        "{said}"
    );
    let last = cli.values(&["read", "long-1", "--last"])[0]["position"].as_u64();
    let imported = last.unwrap() + 1;
    assert!(
        imported > 25_000,
        "batches before the mistake stay: {imported}"
    );
    assert!(said.contains(&format!("after {imported} events")), "{said}");
}

#[test]
fn tags_bytes_and_tracked_positions_survive_an_export() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let mut client = server.client();
    let commit = json!({"tracking": {"source": "upstream", "position": 41}, "events": [
        {"type": "Enrolled", "data": {"n": 1.0}, "tags": ["course:c1", "student:s\u{e9}"], "metadata": {"m": 1}},
        {"stream": "course-1", "type": "Renamed", "data": "text", "tags": ["course:c1"]},
        {"type": "Loose", "data": null},
    ]});
    client.rpc(&json!(["commit", commit])).ok();
    let raw = json!({"id": "00000000-0000-4000-8000-000000000009", "stream": "", "type": "Raw",
        "pos": -1, "gpos": 10, "data64": "AP8=", "meta": null, "time": "2026-01-15T10:00:00Z",
        "tags": ["raw"], "tracking": {"source": "other", "position": u64::MAX}});
    let imported = client.post("/import", raw.to_string().as_bytes());
    assert!(
        imported.text().contains("\"imported\":1"),
        "{}",
        imported.text()
    );
    let everything = cli.ok(&["export"]);
    assert_eq!(everything.lines().count(), 4);

    let directory = TempDir::new().unwrap();
    let file = directory.path().join("all.ndjson");
    std::fs::write(&file, &everything).unwrap();
    // On disk, and read again after a restart.
    let data = TempDir::new().unwrap();
    let other = Server::on(data.path(), &[]);
    Cli::of(&other).ok(&["import", "--input", file.to_str().unwrap()]);
    assert!(other.terminate().success());
    let other = Server::on(data.path(), &[]);
    assert_eq!(Cli::of(&other).ok(&["export"]), everything);
    let mut there = other.client();
    let reads = [
        json!(["events.query", {}]),
        json!(["events.query", {"items": [{"tags": ["course:c1"]}, {"tags": ["raw"]}]}]),
        json!(["events.query", {"items": [{"types": ["Loose"]}]}, {"direction": "backwards"}]),
        json!(["category.get", ""]),
        json!(["stream.get", "course-1"]),
        json!(["events.tracking", "upstream"]),
        json!(["events.tracking", "other"]),
        json!(["events.head"]),
    ];
    for read in reads {
        let (here, there) = (client.rpc(&read).ok(), there.rpc(&read).ok());
        assert_eq!(here, there, "{read}");
        assert_ne!(here, Value::Null, "{read}");
    }
    let conflict =
        there.rpc(&json!(["commit", {"tracking": {"source": "upstream", "position": 41}}]));
    assert_eq!(conflict.code(), "TRACKING_CONFLICT");
}
