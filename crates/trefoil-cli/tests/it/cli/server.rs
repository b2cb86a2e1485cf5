//! `serve` and `dev`: settings, where they come from, and what is printed.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Cli, Process, errors, free_port, text};
use crate::harness::{ADMIN, Client, Server, binary};

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

#[test]
fn dev_takes_the_settings_of_serve_that_do_not_open_it_to_others() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("trefoil.toml");
    std::fs::write(&file, "plain-segments = 7\nlisten = '0.0.0.0'\n").unwrap();
    let output = binary()
        .args(["dev", "--print-config", "--json", "--cache-size=1GiB"])
        .env("TREFOIL_CONFIG", &file)
        .env("TREFOIL_TAIL_EVENTS_MAX", "1500")
        .env("TREFOIL_TOKEN", ADMIN)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let printed = text(&output);
    for (name, value, source) in [
        (
            "tail-events-max",
            "1500",
            "environment TREFOIL_TAIL_EVENTS_MAX",
        ),
        ("plain-segments", "7", &format!("file {}", file.display())),
        ("cache-size", "1GiB", "flag"),
        ("allow-host", "(not set)", "default"),
    ] {
        let expected = json!({"name": name, "value": value, "source": source}).to_string();
        let expected: Value = serde_json::from_str(&expected).unwrap();
        let mut lines = printed.lines();
        let is_there = lines.any(|line| serde_json::from_str::<Value>(line).unwrap() == expected);
        assert!(is_there, "{expected} not in {printed}");
    }
    for absent in ["listen", "token", "test-mode"] {
        assert!(!printed.contains(&format!("\"{absent}\"")), "{printed}");
    }
    let everywhere = binary().args(["dev", "--resp=0.0.0.0:0"]).output().unwrap();
    assert_eq!(everywhere.status.code(), Some(2), "{}", errors(&everywhere));
}

#[test]
fn a_setting_from_the_environment_changes_what_dev_does() {
    let directory = TempDir::new().unwrap();
    let port = free_port();
    let mut command = binary();
    command.args([
        "dev",
        "--port",
        &port.to_string(),
        "--grpc-port=0",
        "--resp-port=0",
    ]);
    command.env("TREFOIL_EVENT_DATA_MAX", "1KiB");
    let _server = Process::serve_command(command.current_dir(directory.path()), port);
    let write = json!(["stream.write", "a-1", {"type": "T", "data": {"x": "x".repeat(2000)}}]);
    let answer = Client::new(port, Some(ADMIN)).rpc(&write);
    assert!(!(200..300).contains(&answer.status), "{}", answer.text());
}

#[test]
fn dev_on_the_data_of_serve_says_what_helps() {
    let directory = TempDir::new().unwrap();
    let port = free_port();
    let arguments = ["serve", "--json", "--data-dir=d", &format!("--port={port}")];
    Process::serve(&arguments, port, directory.path()).stop();
    let mut dev = binary();
    let dev = dev
        .args([
            "dev",
            "--data-dir=d",
            "--port=0",
            "--grpc-port=0",
            "--resp-port=0",
        ])
        .current_dir(directory.path());
    let output = dev.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = errors(&output);
    for expected in ["`trefoil serve`", "--data-dir", "development token"] {
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn the_log_tells_what_was_opened_recovered_and_closed() {
    let data = TempDir::new().unwrap();
    let first = Server::on(data.path(), &[]);
    first.client().write("account-1", &json!({}));
    first.kill();
    let port = free_port();
    let mut command = binary();
    command.args([
        "serve",
        "--log-format=json",
        "--grpc-port=0",
        "--resp-port=0",
    ]);
    command
        .arg(format!("--port={port}"))
        .arg("--data-dir")
        .arg(data.path());
    let mut server = Process::serve_command(&mut command, port);
    assert_eq!(
        Client::new(port, Some(ADMIN))
            .rpc(&json!(["stream.version", "account-1"]))
            .ok(),
        0
    );
    let log = server.0.stderr.take().unwrap();
    let announced: Value = serde_json::from_str(&server.stop()).unwrap();
    assert_eq!(announced["listening"][0], format!("127.0.0.1:{port}"));
    let log = std::io::read_to_string(log).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect();
    let line = |message: &str| {
        let found = lines.iter().find(|line| line["message"] == message);
        found.unwrap_or_else(|| panic!("{message} not in {log}"))
    };
    assert_eq!(line("starting")["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(line("starting")["data_dir"], data.path().to_str().unwrap());
    assert_eq!(line("starting")["namespaces"], 1);
    assert_eq!(line("opened")["namespace"], "default");
    assert_eq!(line("opened")["replayed_events"], 1);
    assert!(line("opened")["elapsed_ms"].is_u64());
    assert_eq!(line("closed")["namespaces"], 1);
    // What ends a server is said in the same form.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--port={}", taken.local_addr().unwrap().port());
    let output = binary()
        .args(["serve", "--test-mode", "--log-format=json", &port])
        .output();
    for line in errors(&output.unwrap()).lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("not JSON: {line}"));
    }
}
