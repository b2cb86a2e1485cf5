//! `examples/cluster`, the script behind `cargo xtask cluster`: it starts everything and stops
//! everything.

use std::io::{BufRead as _, BufReader, Lines};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{ADMIN, Client, Resp, connect};

/// How many ports are taken, beginning with each of these: HTTP, RESP, gRPC, S3.
const PORTS: [(&str, u16); 4] = [
    ("--http-port", 3),
    ("--resp-port", 3),
    ("--grpc-port", 3),
    ("--s3-port", 8),
];

/// The script, which is told to end when this is dropped.
struct Example {
    child: Child,
    /// The first port of all; the others follow in the order of `PORTS`.
    first: u16,
    output: Lines<BufReader<ChildStdout>>,
    _data: TempDir,
}

impl Example {
    fn start() -> Self {
        let data = TempDir::new().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster/run.py");
        let mut command = Command::new("python3");
        command
            .arg(script)
            .args(["--binary", env!("CARGO_BIN_EXE_trefoil"), "--weed", "weed"])
            .arg("--data")
            .arg(data.path());
        let first = free_ports();
        let mut port = first;
        for (option, count) in PORTS {
            command.args([option, &port.to_string()]);
            port += count;
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut example = Self {
            child,
            first,
            output,
            _data: data,
        };
        let is_ready = |line: String| line.contains("Ctrl-C stops everything");
        assert!(example.output.any(|line| is_ready(line.unwrap())));
        example
    }

    /// Does what Ctrl-C does, and waits.
    fn interrupt(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_some()) {
            return;
        }
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-s", "INT", &pid]).status();
        let _ = self.child.wait();
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        self.interrupt();
    }
}

/// The first of as many ports in a row as are needed.
fn free_ports() -> u16 {
    let count: u16 = PORTS.iter().map(|(_, count)| count).sum();
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let free = std::iter::repeat_with(|| fastrand::u16(10_000..30_000))
        .find(|first| (*first..first + count).all(|port| is_free(&port)));
    free.unwrap()
}

#[test]
fn the_example_starts_a_cluster_and_stops_all_of_it() {
    if let Err(error) = Command::new("weed").arg("version").output() {
        let is_needed = std::env::var_os("XTASK_PYTHON").is_some();
        assert!(!is_needed, "there is no weed: {error}");
        eprintln!("skipped: no weed on this machine; cargo xtask test installs it");
        return;
    }
    let mut example = Example::start();
    let first = example.first;
    let position = Client::new(first, Some(ADMIN)).write("account-1", &json!({}));
    assert_eq!(position, 1);
    let mut resp = Resp::connect(first + 3).unwrap();
    let last = resp.line("EVENT.LAST account-1");
    assert!(last.elements().is_some(), "{last:?}");
    for node in 0..3 {
        let ready = Client::new(first + node, None).get("/ready");
        assert_eq!(ready.status, 200, "{}", ready.text());
        let last = json!(["stream.last", "account-1"]);
        let last = Client::new(first + node, Some(ADMIN)).rpc(&last).ok();
        assert_eq!(last[3], json!(1), "node {node}: {last}");
    }
    example.interrupt();
    let said: Vec<String> = example.output.by_ref().map(Result::unwrap).collect();
    assert!(said.contains(&"stopping …".to_owned()), "{said:?}");
    for port in first..first + 17 {
        assert!(connect(port).is_err(), "somebody still listens on {port}");
    }
}
