//! Starts the built binary, speaks to it, and stops it gently or not.

mod cases;
mod http;
mod pattern;
mod random;
mod resp;
mod sse;

use std::fs::File;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub(crate) use cases::{Case, cases, run_all};
pub(crate) use http::{Client, Response, connect, read_head};
pub(crate) use pattern::{Kept, matches};
pub(crate) use random::seeded;
pub(crate) use resp::{Resp, Value, encode};
pub(crate) use sse::{Frame, Poll, Sse};

/// The default namespace's token in every test.
pub(crate) const ADMIN: &str =
    "ns_ZGVmYXVsdA_0000000000000000000000000000000000000000000000000000000000000000";

/// How long a server may take until it answers.
const START: Duration = Duration::from_secs(30);

/// Small parts of the database, so that a short test reaches what a long life reaches.
pub(crate) const SMALL_PARTS: [&str; 4] = [
    "--tail-events-max=64",
    "--segment-size-max=32KiB",
    "--plain-segments=1",
    "--log-level=warn",
];

/// A running server. It is killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// The port for gRPC.
    pub(crate) grpc_port: u16,
    /// The port for RESP.
    pub(crate) resp_port: u16,
    log: PathBuf,
    /// Holds the log, and the data of a server that was given no directory.
    _directory: TempDir,
}

impl Server {
    /// A server in test mode: in memory, without checking secrets.
    pub(crate) fn in_test_mode() -> Self {
        Self::launch(&["--test-mode"])
    }

    /// A server as in production, on this directory.
    pub(crate) fn on(data: &Path, arguments: &[&str]) -> Self {
        let data = data.to_str().unwrap();
        let mut all = vec!["--data-dir", data, "--token", ADMIN];
        all.extend(arguments);
        Self::launch(&all)
    }

    /// A server as `trefoil dev` starts it, on a directory of its own.
    pub(crate) fn in_development() -> Self {
        Self::in_development_with(&[])
    }

    pub(crate) fn in_development_with(arguments: &[&str]) -> Self {
        Self::launch_as("dev", arguments)
    }

    fn launch(arguments: &[&str]) -> Self {
        Self::launch_as("serve", arguments)
    }

    fn launch_as(mode: &str, arguments: &[&str]) -> Self {
        // Somebody else may take the port between its choice and its use: then try another one.
        for _ in 0..5 {
            if let Some(server) = Self::try_launch_as(binary(), mode, arguments) {
                return server;
            }
        }
        panic!("the server did not start; see its log above");
    }

    /// Starts `command serve …`; `None` if it ended before it answered.
    pub(crate) fn try_launch(command: Command, arguments: &[&str]) -> Option<Self> {
        Self::try_launch_as(command, "serve", arguments)
    }

    fn try_launch_as(mut command: Command, mode: &str, arguments: &[&str]) -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let log = directory.path().join("log");
        let output = File::create(&log).unwrap();
        let (port, grpc_port, resp_port) = (free_port(), free_port(), free_port());
        let child = command
            .arg(mode)
            .args(["--port", &port.to_string()])
            .args(["--grpc-port", &grpc_port.to_string()])
            .args(["--resp-port", &resp_port.to_string()])
            .args(arguments)
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let mut server = Self {
            child,
            port,
            grpc_port,
            resp_port,
            log,
            _directory: directory,
        };
        let started = Instant::now();
        while started.elapsed() < START {
            if server.child.try_wait().unwrap().is_some() {
                eprintln!("the server ended early:\n{}", server.log());
                return None;
            }
            if server.is_up(arguments) {
                return Some(server);
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server did not answer in {START:?}:\n{}", server.log());
    }

    /// Whether it answers or, if it does so over TLS only, says that it will.
    fn is_up(&self, arguments: &[&str]) -> bool {
        if arguments
            .iter()
            .any(|argument| argument.starts_with("--tls"))
        {
            return self.log().contains("https://");
        }
        let answer = self.anonymous().try_request("GET", "/health", &[], b"");
        answer.is_ok_and(|answer| answer.status == 200)
    }

    /// A client with the admin's token.
    pub(crate) fn client(&self) -> Client {
        self.client_with(ADMIN)
    }

    pub(crate) fn client_with(&self, token: &str) -> Client {
        Client::new(self.port, Some(token))
    }

    pub(crate) fn anonymous(&self) -> Client {
        Client::new(self.port, None)
    }

    /// A RESP connection with the admin's token.
    pub(crate) fn resp(&self) -> Resp {
        let mut connection = Resp::connect(self.resp_port).unwrap();
        assert_eq!(connection.call(&["AUTH", ADMIN]), Value::ok());
        connection
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL: nothing is written any more, nothing is said.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and waits until the process has ended.
    pub(crate) fn terminate(self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Waits until the process has ended by itself.
    pub(crate) fn wait(mut self) -> ExitStatus {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(30) {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("the server did not end after SIGTERM:\n{}", self.log());
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let status = Command::new("kill")
            .args(["-s", name, &pid])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// How many file descriptors the process has open.
    pub(crate) fn descriptors(&self) -> u64 {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        open.count() as u64
    }

    /// A number from /proc/<pid>/status, such as `VmRSS` (in KiB) or `Threads`.
    pub(crate) fn status(&self, field: &str) -> u64 {
        self.number_in("status", field)
    }

    /// A number from /proc/<pid>/io, such as `rchar`, the bytes that were read from files.
    pub(crate) fn counted(&self, field: &str) -> u64 {
        self.number_in("io", field)
    }

    fn number_in(&self, file: &str, field: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/{file}", self.pid())).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .unwrap();
        line.trim_start_matches(':')
            .split_whitespace()
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let running = self.child.try_wait().is_ok_and(|status| status.is_none());
        if running {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().rev().take(30).collect();
            let last: Vec<&str> = lines.into_iter().rev().collect();
            eprintln!("the end of the server's log:\n{}", last.join("\n"));
        }
    }
}

/// The command under test, with nothing of this process's settings.
pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trefoil"));
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("TREFOIL_") || name_text.starts_with("EVENTODB_") {
            command.env_remove(&name);
        }
    }
    // Nobody's contexts.
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// A port that nobody listens on just now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Runs a command with this as its standard input.
pub(crate) fn piped(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}
