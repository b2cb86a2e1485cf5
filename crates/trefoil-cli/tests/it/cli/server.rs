//! `serve` and `dev`: settings, where they come from, and what is printed.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Cli, Process, errors, free_port, text};
use crate::harness::{ADMIN, Client, binary};

#[test]
fn print_config_shows_each_value_and_its_source() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("trefoil.toml");
    std::fs::write(
        &file,
        "port = 1111\nlog-level = 'warn'\ncache-size = '1GiB'\n",
    )
    .unwrap();
    let output = binary()
        .args([
            "serve",
            "--print-config",
            "--json",
            "-port",
            "4444",
            "--token",
            ADMIN,
        ])
        .env("TREFOIL_CONFIG", &file)
        .env("TREFOIL_LOG_LEVEL", "debug")
        .env("EVENTODB_LOG_LEVEL", "error")
        .env("EVENTODB_DATA_DIR", "/somewhere")
        .output()
        .unwrap();
    let printed = text(&output);
    assert!(
        output.status.success() && !printed.contains(ADMIN),
        "{printed}"
    );
    let lines = printed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let all: Vec<Value> = lines.collect();
    let file = format!("file {}", file.display());
    for (name, value, source) in [
        ("port", "4444", "flag"),
        ("log-level", "debug", "environment TREFOIL_LOG_LEVEL"),
        ("data-dir", "/somewhere", "environment EVENTODB_DATA_DIR"),
        ("cache-size", "1GiB", file.as_str()),
        ("log-format", "console", "default"),
        ("token", "(hidden)", "flag"),
    ] {
        let expected = json!({"name": name, "value": value, "source": source});
        assert!(all.contains(&expected), "{expected} not in {printed}");
    }
}

#[test]
fn settings_that_cannot_work_are_refused_by_name() {
    for (argument, expected) in [
        ("--port=http", "port (flag)"),
        ("--db-url=postgres://u:secret@h/d", "PostgreSQL"),
        ("--db-url=sqlite://x.db", "--data-dir"),
        ("--config=missing.toml", "missing.toml"),
        ("--token=ns_secret", "token (flag)"),
    ] {
        let output = binary().args(["serve", argument]).output().unwrap();
        let said = errors(&output);
        assert!(
            !output.status.success() && said.contains(expected),
            "{argument}: {said}"
        );
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn the_server_starts_as_eventodbs_own_tests_start_it() {
    let directory = TempDir::new().unwrap();
    let port = free_port();
    let flags: [Vec<String>; 3] = [
        vec![
            "--test-mode".into(),
            format!("--port={port}"),
            format!("--token={ADMIN}"),
        ],
        vec!["-test-mode=true".into(), "-port".into(), port.to_string()],
        vec![
            "serve".into(),
            "-db-url=pebble://memory".into(),
            "--test-mode".into(),
            format!("-port={port}"),
        ],
    ];
    for flags in flags {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let server = Process::serve(&flags, port, directory.path());
        let mut client = Client::new(port, None);
        assert_eq!(client.rpc(&json!(["sys.version"])).status, 200);
        drop(client);
        server.stop();
    }
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        0,
        "nothing is kept"
    );
}

#[test]
fn serve_shows_a_token_once_and_refuses_another_one() {
    let directory = TempDir::new().unwrap();
    let port = free_port();
    let arguments = ["serve", "--json", "--data-dir=d", &format!("--port={port}")];
    let first = Process::serve(&arguments, port, directory.path()).stop();
    let first: Value = serde_json::from_str(&first).unwrap();
    let token = first["token"].as_str().unwrap();
    assert_eq!(first["listening"][0], format!("127.0.0.1:{port}"));
    let second = Process::serve(&arguments, port, directory.path());
    let status = Client::new(port, Some(token))
        .rpc(&json!(["sys.version"]))
        .status;
    assert_eq!(status, 200);
    let second: Value = serde_json::from_str(&second.stop()).unwrap();
    assert_eq!(second["token"], Value::Null);
    let mut other = binary();
    let other = other
        .args(arguments)
        .args(["--token", ADMIN])
        .current_dir(directory.path());
    let said = errors(&other.output().unwrap());
    assert!(
        said.contains("not the token of the existing namespace"),
        "{said}"
    );
    assert!(!said.contains("0000"), "{said}");
}

#[test]
fn dev_prints_requests_that_work() {
    let directory = TempDir::new().unwrap();
    let port = free_port();
    let server = Process::serve(
        &["dev", "--port", &port.to_string()],
        port,
        directory.path(),
    );
    let cli = Cli {
        url: format!("http://127.0.0.1:{port}"),
    };
    cli.ok(&["write", "account-1", "Opened"]);
    let printed = server.stop();
    for expected in [
        ADMIN,
        &cli.url,
        "curl -s ",
        "stream.write",
        "stream.get",
        "/subscribe?",
    ] {
        assert!(printed.contains(expected), "{expected} not in {printed}");
    }
    assert!(directory.path().join("data/_meta/default.json").exists());
}
