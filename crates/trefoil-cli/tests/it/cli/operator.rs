//! `info`, `doctor` and `report`: what an operator asks.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Cli, errors, in_terminal, text};
use crate::harness::{ADMIN, Server, piped};

#[test]
fn info_shows_the_server_and_the_namespace_of_the_token() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let cli = Cli::of(&server);
    cli.ok(&["write", "account-1", "Opened"]);
    let token = cli.ok(&["ns", "create", "tenant-a", "--description", "First"]);
    let shown = cli.ok(&["info"]);
    for expected in [
        "server ", "version ", "ready ", "memory ", "events ", "load ",
    ] {
        let found = shown.lines().any(|line| line.starts_with(expected));
        assert!(found, "{expected}: {shown}");
    }
    let info = &cli.values(&["info"])[0];
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (&info["ready"], &info["namespaces"]),
        (&json!(true), &json!(2.0))
    );
    assert_eq!(info["namespace"]["messageCount"], 1);
    assert!(info["memoryBytes"].as_f64().unwrap() > 1e6, "{info}");
    assert!(info["diskFreeBytes"].as_f64().unwrap() > 1e6, "{info}");
    assert_eq!(info["dataDir"], data.path().to_str().unwrap());
    let up = info["uptimeSeconds"].as_f64().unwrap();
    assert!((0.0..600.0).contains(&up), "{info}");
    let of_tenant = &cli.values(&["info", "--token", token.trim()])[0];
    assert_eq!(of_tenant["namespace"]["namespace"], "tenant-a");
    assert_eq!(of_tenant["dataDir"], Value::Null, "the administrator's");
    assert_eq!(cli.values(&["info", "tenant-a"])[0]["description"], "First");
    cli.fails(5, &["info", "default", "--token", token.trim()]);
    cli.fails(5, &["info", "--token", &ADMIN.replace("_00", "_01")]);
    cli.fails(1, &["info", "--url", "http://127.0.0.1:1"]);
}

/// The verdicts of a doctor by the names of its checks.
fn verdicts(cli: &Cli, code: i32, arguments: &[&str]) -> Vec<(String, String, String)> {
    let output = cli.run(&[&["doctor", "--output", "json"], arguments].concat());
    assert_eq!(output.status.code(), Some(code), "{}", errors(&output));
    let checks: Vec<Value> = serde_json::from_str(&text(&output)).unwrap();
    let word = |check: &Value, name: &str| check[name].as_str().unwrap().to_owned();
    let line = |check| {
        (
            word(check, "check"),
            word(check, "verdict"),
            word(check, "advice"),
        )
    };
    checks.iter().map(line).collect()
}

#[test]
fn the_doctor_finds_a_sound_server_sound() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let cli = Cli::of(&server);
    cli.ok(&["write", "account-1", "Opened"]);
    let directory = data.path().to_str().unwrap();
    let found = verdicts(&cli, 0, &["--data-dir", directory]);
    for check in [
        "server",
        "ready",
        "versions",
        "token",
        "writes",
        "disk",
        "syncs",
        "memory",
        "clock",
        "disk here",
        "syncs here",
        "open files here",
        "memory here",
    ] {
        let verdict = found.iter().find(|(name, ..)| name == check);
        let (_, verdict, advice) = verdict.unwrap_or_else(|| panic!("{check}: {found:?}"));
        assert_ne!(verdict, "fail", "{check}");
        assert_eq!(verdict == "ok", advice.is_empty(), "{check}: {advice}");
    }
    let left: Vec<_> = std::fs::read_dir(data.path()).unwrap().collect();
    let names = left.iter().map(|entry| entry.as_ref().unwrap().file_name());
    assert!(
        !names
            .into_iter()
            .any(|name| name.to_string_lossy().contains("doctor"))
    );
    let shown = cli.ok(&["doctor"]);
    assert!(
        shown.contains("ok    token: may administer all namespaces"),
        "{shown}"
    );
    let shown = in_terminal(&cli.command(&["doctor"]));
    assert!(shown.contains("\u{1b}[32mok  \u{1b}[0m"), "{shown:?}");
}

#[test]
fn the_doctor_says_what_fails_and_what_to_do() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let cli = Cli::of(&server);
    let failed = |arguments: &[&str]| {
        let mut found = verdicts(&cli, 1, arguments);
        found.retain(|(_, verdict, _)| verdict == "fail");
        assert!(
            found.iter().all(|(.., advice)| !advice.is_empty()),
            "{found:?}"
        );
        let names = found.into_iter().map(|(check, ..)| check);
        names.collect::<Vec<_>>()
    };
    assert_eq!(failed(&["--url", "http://127.0.0.1:1"]), ["server"]);
    assert_eq!(
        failed(&["--token", &ADMIN.replace("_00", "_01")]),
        ["token"]
    );
    assert_eq!(failed(&["--data-dir", "/nonexistent"]), ["disk here"]);
    let output = cli.run(&["doctor", "--token", "nonsense-that-is-no-token"]);
    assert!(text(&output).contains("fail  token:"), "{}", text(&output));
    assert!(errors(&output).contains("1 check failed"));
}

/// Events of several streams, types and days.
fn filled(cli: &Cli) {
    let mut lines = String::new();
    for n in 0..300u64 {
        let (stream, event_type) = match n {
            0..200 => (format!("account-{}", n % 20), "Deposited"),
            200..290 => ("order-1".to_owned(), "Placed"),
            _ => ("order,\"2\"".to_owned(), "Odd, \"type\""),
        };
        let position = match n {
            0..200 => n / 20,
            200..290 => n - 200,
            _ => n - 290,
        };
        let id = format!("00000000-0000-4000-8000-{n:012}");
        let day = 1 + n / 100;
        let event = json!({
            "id": id, "stream": stream, "type": event_type, "pos": position, "gpos": n + 1,
            "data": {}, "meta": null, "time": format!("2026-01-{day:02}T10:00:00Z"),
        });
        lines += &format!("{event}\n");
    }
    let output = piped(&mut cli.command(&["import"]), lines.as_bytes());
    assert!(output.status.success());
}

#[test]
fn reports_count_streams_types_and_categories() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    for report in ["streams", "types", "categories", "growth"] {
        let empty = cli.ok(&["report", report, "--output", "json"]);
        assert_eq!(empty, "[]\n", "{report}");
    }
    filled(&cli);
    let streams = cli.values(&["report", "streams", "--top", "3"]);
    assert_eq!(streams.len(), 3);
    assert_eq!(
        streams[0],
        json!({"stream": "order-1", "events": 90, "first": "2026-01-03T10:00:00Z", "last": "2026-01-03T10:00:00Z"})
    );
    let streams = cli.values(&["report", "streams", "account-1", "--top", "100"]);
    assert_eq!(streams.len(), 11, "account-1 and account-10 to account-19");
    assert_eq!(streams[0]["first"], "2026-01-01T10:00:00Z");
    let types = cli.values(&["report", "types"]);
    let line = |n: usize| (types[n]["type"].clone(), types[n]["events"].clone());
    assert_eq!(line(0), (json!("Deposited"), json!(200)));
    assert_eq!(line(2), (json!("Odd, \"type\""), json!(10)));
    assert_eq!(types[0]["last"], "2026-01-02T10:00:00Z");
    let csv = cli.ok(&["report", "types", "Odd", "--output", "csv"]);
    assert!(
        csv.starts_with("type,events,first,last\r\n\"Odd, \"\"type\"\"\",10,"),
        "{csv}"
    );
    let categories = cli.values(&["report", "categories"]);
    assert_eq!(
        categories[0],
        json!({
            "category": "account", "events": 200, "streams": 20, "meanLength": 10.0,
            "longestStream": "account-0", "longestLength": 10, "last": "2026-01-02T10:00:00Z",
        })
    );
    assert_eq!(categories.len(), 3);
    cli.fails(2, &["report", "streams", "--top", "0"]);
    cli.fails(2, &["report", "nonsense"]);
    cli.fails(1, &["report", "types", "--url", "http://127.0.0.1:1"]);
}

#[test]
fn growth_is_counted_by_day_and_hour() {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    filled(&cli);
    let days = cli.values(&["report", "growth", "--last", "10000"]);
    let first: Vec<_> = days[..4]
        .iter()
        .map(|day| {
            (
                day["events"].as_u64().unwrap(),
                day["total"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(first, [(100, 100), (100, 200), (100, 300), (0, 300)]);
    assert_eq!(days[0]["from"], "2026-01-01T00:00:00Z");
    cli.ok(&["write", "account-1", "Now"]);
    let hours = cli.values(&["report", "growth", "--by", "hour", "--last", "3"]);
    assert_eq!(hours.len(), 3);
    let total: u64 = hours
        .iter()
        .map(|hour| hour["events"].as_u64().unwrap())
        .sum();
    assert_eq!(total, 1);
    assert_eq!(hours[2]["total"], 301);
    let shown = cli.ok(&["report", "growth", "--by", "hour", "--last", "3"]);
    assert!(shown.contains("▇▇▇"), "{shown}");
}
