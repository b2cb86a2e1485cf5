//! The command line: help, settings, exit codes, and each client command against a real server.

mod client;
mod commit;
mod context;
mod grpc;
mod help;
mod https;
mod migration;
mod operator;
mod output;
mod pages;
mod resp;
mod seats;
mod server;
mod state;
mod tags;
mod tail;
mod token;
mod tools;
mod top;
mod transfer;
mod umadb;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Client, Server, binary, free_port};

/// The client's commands against one server.
struct Cli {
    url: String,
}

impl Cli {
    fn of(server: &Server) -> Self {
        Self {
            url: format!("http://127.0.0.1:{}", server.port),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = binary();
        command
            .args(arguments)
            .env("TREFOIL_URL", &self.url)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed and returns what it printed.
    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        require_code(0, &output, arguments);
        text(&output)
    }

    /// Runs a command that must succeed and returns the values it printed.
    #[track_caller]
    fn values(&self, arguments: &[&str]) -> Vec<Value> {
        let printed = self.ok(&[arguments, &["--json"]].concat());
        printed
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Runs a command that must fail with this exit code and returns what it complained about.
    #[track_caller]
    fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        require_code(code, &output, arguments);
        assert_eq!(text(&output), "", "an error prints no data");
        errors(&output)
    }
}

/// Fails unless a command ended with this exit code.
#[track_caller]
fn require_code(code: i32, output: &Output, arguments: &[&str]) {
    let said = errors(output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs a command in a terminal, and returns all that it showed there.
fn in_terminal(command: &Command) -> String {
    let quote = |word: &std::ffi::OsStr| {
        let word = word.to_str().unwrap().replace('\'', r"'\''");
        format!("'{word}'")
    };
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line: Vec<String> = words.map(quote).collect();
    let mut script = Command::new("script");
    script.args(["-qefc", &line.join(" "), "/dev/null"]);
    script.env("TERM", "xterm").stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    let output = script.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A process that is killed when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn start(command: &mut Command) -> Self {
        Self(
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
        )
    }

    /// Starts a server and waits until it answers on `port`.
    fn serve(arguments: &[&str], port: u16, directory: &Path) -> Self {
        Self::serve_command(binary().args(arguments).current_dir(directory), port)
    }

    /// The same with a command of one's own.
    fn serve_command(command: &mut Command, port: u16) -> Self {
        let mut process = Self::start(command);
        let started = Instant::now();
        while Client::new(port, None)
            .try_request("GET", "/health", &[], b"")
            .is_err()
        {
            if process.0.try_wait().unwrap().is_some() || started.elapsed().as_secs() > 30 {
                let said = process.errors();
                panic!("{command:?} does not answer: {said}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        process
    }

    /// What it complains about until it ends.
    fn errors(&mut self) -> String {
        std::io::read_to_string(self.0.stderr.take().unwrap()).unwrap()
    }

    /// Ends it as an operator would and returns what it printed.
    fn stop(mut self) -> String {
        let pid = self.0.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", "TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        let printed = std::io::read_to_string(self.0.stdout.take().unwrap()).unwrap();
        assert!(self.0.wait().unwrap().success());
        printed
    }
}

/// A line of an import.
fn ndjson(stream: &str, position: u64, global_position: u64) -> String {
    let id = format!("00000000-0000-4000-8000-{global_position:012}");
    let event = json!({
        "id": id, "stream": stream, "type": "T", "pos": position, "gpos": global_position,
        "data": {"n": position}, "meta": null, "time": "2026-01-15T10:00:00Z",
    });
    format!("{event}\n")
}

/// Starts `serve --json` with these arguments and returns what it announced.
fn announced(arguments: &[&str]) -> Value {
    let directory = TempDir::new().unwrap();
    let port = free_port();
    let port_argument = format!("--port={port}");
    let own = ["serve", "--test-mode", "--json", &port_argument];
    let all = [&own, arguments].concat();
    let printed = Process::serve(&all, port, directory.path()).stop();
    serde_json::from_str(&printed).unwrap()
}

/// Starts a server while the default port of a protocol is taken: it says so, and serves
/// everything else.
fn assert_goes_on_without(protocol: &str, default: u16) {
    // Whoever has it, this test or another server, it is taken.
    let _taken = TcpListener::bind(("127.0.0.1", default));
    let directory = TempDir::new().unwrap();
    let port = free_port();
    let port_argument = format!("--port={port}");
    let arguments = ["serve", "--test-mode", "--json", &port_argument];
    let mut server = Process::serve(&arguments, port, directory.path());
    let log = server.0.stderr.take().unwrap();
    let printed: Value = serde_json::from_str(&server.stop()).unwrap();
    let name = protocol.to_ascii_lowercase();
    assert_eq!(printed[&name], json!([]));
    let log = std::io::read_to_string(log).unwrap();
    for expected in [
        format!("127.0.0.1:{default}: Address already in use"),
        format!("going on without {protocol}: choose a port with --{name}-port"),
    ] {
        assert!(log.contains(&expected), "{log}");
    }
}

/// Starts a server with settings that cannot work: it ends, and says why.
#[track_caller]
fn assert_refused(arguments: &[&str], expected: &str) {
    let mut serve = binary();
    let serve = serve
        .args(["serve", "--test-mode", "--port=0"])
        .args(arguments);
    let output = serve.output().unwrap();
    let said = errors(&output);
    assert!(
        !output.status.success() && said.contains(expected),
        "{arguments:?}: {said}"
    );
}
