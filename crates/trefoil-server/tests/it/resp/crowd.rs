//! Many clients at once.

use std::io::Read as _;
use std::net::TcpStream;
use std::time::Duration;

use trefoil_server::Config;

use super::Client;
use crate::client::request;
use crate::harness::TestServer;

#[test]
fn clients_beyond_the_limit_are_turned_away() {
    let server = TestServer::with(Config {
        test_mode: true,
        connections_max: 2,
        ..Config::default()
    });
    let mut first = Client::connect(&server);
    assert_eq!(first.say("PING"), "+PONG");
    let mut second = Client::connect(&server);
    assert_eq!(second.say("PING"), "+PONG");
    let mut third = Client::connect(&server);
    assert_eq!(
        third.reply().to_string(),
        "-ERR max number of clients reached"
    );
    third.check_closed();
    let info = first.say("INFO stats");
    assert!(info.contains("rejected_connections:1\\r\\n"), "{info}");
    drop(second);
    let mut later = Client::connect(&server);
    for _ in 0..100 {
        if later.reply_to_ping() == Some("+PONG".to_owned()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
        later = Client::connect(&server);
    }
    panic!("the place of a client that left was not given away");
}

impl Client {
    /// What comes back for a ping, if the connection lives.
    fn reply_to_ping(&mut self) -> Option<String> {
        use std::io::Write as _;
        self.socket.write_all(b"PING\r\n").ok()?;
        let mut bytes = [0; 64];
        let read = self.socket.read(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
        Some(text.trim_end().to_owned())
    }
}

/// How many connections there can be in this process, where both ends are: not more than what is
/// wanted.
fn connections_possible(wanted: usize) -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let limit = line.and_then(|line| line.split_whitespace().nth(3)?.parse::<usize>().ok());
    let limit = limit.unwrap_or(1024);
    wanted.min(limit.saturating_sub(1000) / 2)
}

/// The memory of this process.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").trim().parse().unwrap();
    kibibytes * 1024
}

#[test]
fn thousands_of_idle_clients_cost_little_each() {
    let server = TestServer::with(Config {
        test_mode: true,
        connections_max: 20_000,
        ..Config::default()
    });
    let n = connections_possible(10_000);
    assert!(n > 0);
    let mut warm = Client::connect(&server);
    assert_eq!(warm.say("SET k 1"), "+OK");
    let before = resident_bytes();
    let mut idle: Vec<TcpStream> = Vec::with_capacity(n);
    for _ in 0..n {
        let mut client = Client::connect(&server);
        // Each has been used once, so whatever it needs to be served was allocated.
        assert_eq!(client.say("GET k"), "\"1\"");
        idle.push(client.socket);
    }
    let each = resident_bytes().saturating_sub(before) / n as u64;
    assert!(each < 16 * 1024, "{each} bytes for each of {n}");
    assert_eq!(warm.say("PING"), "+PONG");
    let metrics = request(server.address, "GET", "/metrics", "", b"");
    let line = format!("trefoil_resp_connections {}", n + 1);
    assert!(metrics.text().lines().any(|found| found == line), "{line}");
    drop(idle);
}

#[test]
fn what_clients_do_is_counted() {
    let server = TestServer::test_mode();
    let mut client = Client::connect(&server);
    client.write(b"PING\r\nPING\r\nGET a\r\nNOSUCH\r\n");
    for _ in 0..4 {
        client.reply();
    }
    assert_eq!(client.say("SET a 1"), "+OK");
    // The counts of a batch are told when it is done.
    client.say("PING");
    let metrics = request(server.address, "GET", "/metrics", "", b"");
    for line in [
        "trefoil_resp_commands_total{command=\"get\"} 1",
        "trefoil_resp_commands_total{command=\"set\"} 1",
        "trefoil_resp_commands_total{command=\"unknown\"} 1",
        "trefoil_resp_errors_total{code=\"ERR\"} 1",
        "trefoil_commits_total 1",
        "trefoil_group_commits_count 1",
        "trefoil_group_sync_seconds_count 1",
    ] {
        let text = metrics.text();
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}
