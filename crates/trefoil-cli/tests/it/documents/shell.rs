//! Runs the commands of a page one after the other, against the page's own server.
//!
//! Variables and functions that a command sets are there for those after it.

use std::io::{BufRead as _, BufReader, PipeReader};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::compare::{compare, is_like, lines};
use super::page::Step;
use crate::harness::{Server, binary};

/// How long a command may say nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// What ends a command that goes on for ever, as its reader would.
const INTERRUPT: &str = "^C";

/// A user's terminal.
pub(super) struct Shell {
    /// The ports that pages name, and those of the server.
    ports: [(&'static str, String); 3],
    /// Where commands run.
    here: TempDir,
    variables: Vec<(String, String)>,
    functions: String,
}

impl Shell {
    pub(super) fn new(server: &Server) -> Self {
        Self {
            ports: [
                ("8080", server.port.to_string()),
                ("6666", server.resp_port.to_string()),
                ("50051", server.grpc_port.to_string()),
            ],
            here: here(),
            variables: Vec::new(),
            functions: String::new(),
        }
    }

    /// Runs a command and compares all that it prints; an error says what is different.
    pub(super) fn run(&mut self, step: &Step) -> Result<(), String> {
        if is_function(&step.command) {
            self.functions = format!("{}{}\n", self.functions, step.command);
            return compare(&step.shown, &[]);
        }
        if let Some(name) = assigned(&step.command) {
            let value = self.here.path().join(".value");
            let script = format!("{}\nprintf %s \"${name}\" > .value", step.command);
            let (output, status) = self.spawn(&script).finish();
            let value = std::fs::read_to_string(value).unwrap();
            self.variables.push((name.to_owned(), value));
            return compare(&step.shown, &lines(&self.as_in_page(output), status));
        }
        let running = self.spawn(&step.command);
        match step.shown.split_last() {
            Some((last, shown)) if last == INTERRUPT => running.interrupt(shown, &self.ports),
            _ => {
                let (output, status) = running.finish();
                compare(&step.shown, &lines(&self.as_in_page(output), status))
            }
        }
    }

    fn as_in_page(&self, output: String) -> String {
        as_in_page(output, &self.ports)
    }

    fn spawn(&self, command: &str) -> Running {
        let mut script = format!("{}{command}", self.functions);
        for (in_page, port) in &self.ports {
            script = script.replace(in_page, port);
        }
        let binary = binary();
        let directory = Path::new(binary.get_program()).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let (reader, writer) = std::io::pipe().unwrap();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &script])
            .env("PATH", format!("{}:{path}", directory.display()))
            .env("HOME", self.here.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env(
                "TREFOIL_URL",
                format!("http://127.0.0.1:{}", self.ports[0].1),
            )
            .env_remove("TREFOIL_TOKEN")
            .env_remove("TREFOIL_CONTEXT")
            .env_remove("XDG_CONFIG_HOME")
            // redis-cli prints as it does on a terminal.
            .env("FAKETTY", "1")
            .envs(self.variables.iter().cloned())
            .current_dir(self.here.path())
            .stdin(Stdio::null())
            .stdout(writer.try_clone().unwrap())
            .stderr(writer)
            .process_group(0);
        let child = shell.spawn().unwrap();
        drop(shell);
        Running {
            child,
            lines: read(reader),
        }
    }
}

/// A directory that looks like a clone of the repository to the commands of pages.
fn here() -> TempDir {
    let here = TempDir::new().unwrap();
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients");
    symlink(clients.canonicalize().unwrap(), here.path().join("clients")).unwrap();
    here
}

/// A command under way.
struct Running {
    child: std::process::Child,
    lines: Receiver<String>,
}

impl Running {
    /// Waits for the end, and returns what was printed and the exit status.
    fn finish(mut self) -> (String, Option<i32>) {
        let mut output = String::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => output.push_str(&line),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    self.kill();
                    panic!("the command does not end; it printed\n{output}");
                }
            }
        }
        let status = self.child.wait().unwrap();
        (output, status.code())
    }

    /// Waits until everything is printed that is shown, then ends the command.
    fn interrupt(mut self, shown: &[String], ports: &Ports) -> Result<(), String> {
        let mut printed = Vec::new();
        while printed.len() < shown.len() {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                break;
            };
            let line = as_in_page(line, ports).trim_end().to_owned();
            let is_expected = is_like(&shown[printed.len()], &line);
            printed.push(line);
            if !is_expected {
                break;
            }
        }
        let is_running = self.child.try_wait().unwrap().is_none();
        if is_running {
            self.kill();
        }
        compare(shown, &printed)?;
        is_running
            .then_some(())
            .ok_or_else(|| "it ended by itself".to_owned())
    }

    /// Ends the shell and all that it has started.
    fn kill(&mut self) {
        let group = format!("-{}", self.child.id());
        let mut kill = Command::new("kill");
        kill.args(["-s", "KILL", "--", &group]);
        assert!(kill.status().unwrap().success());
        self.child.wait().unwrap();
    }
}

/// Lines as they come, with their ends.
fn read(output: PipeReader) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line).into_owned();
            if sender.send(text).is_err() {
                break;
            }
            line.clear();
        }
    });
    lines
}

type Ports = [(&'static str, String)];

/// The output with the ports that the page names.
fn as_in_page(output: String, ports: &Ports) -> String {
    ports.iter().fold(output, |output, (in_page, port)| {
        output.replace(&format!(":{port}"), &format!(":{in_page}"))
    })
}

/// The name that a command assigns a value to, if that is all it does.
fn assigned(command: &str) -> Option<&str> {
    let (name, value) = command.split_once('=')?;
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let is_one_word = !value.contains(' ') || value.starts_with("$(") && value.ends_with(')');
    (is_name && is_one_word).then_some(name)
}

/// Whether the command defines a function.
fn is_function(command: &str) -> bool {
    let name = command.split_once("() {").map(|(name, _)| name);
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_says_and_how_it_ends_is_noticed() {
        let server = Server::in_development();
        let mut shell = Shell::new(&server);
        let mut run = |command: &str, shown: &[&str]| {
            let step = Step {
                line: 1,
                command: command.to_owned(),
                shown: shown.iter().map(|line| (*line).to_owned()).collect(),
            };
            shell.run(&step)
        };
        run("echo a; echo b >&2", &["a", "b"]).unwrap();
        run("echo a; echo b >&2", &["a"]).unwrap_err();
        run("exit 3", &["(exit status 3)"]).unwrap();
        run("exit 3", &[]).unwrap_err();
        // What is set stays, and only that.
        run("NAME=$(echo c; echo d >&2)", &["d"]).unwrap();
        run("say() { echo \"$NAME $1\"; }", &[]).unwrap();
        run("say e", &["c e"]).unwrap();
        // What would go on for ever is ended, and what ends by itself is not taken for it.
        run("echo f; sleep 600", &["f", "^C"]).unwrap();
        run("echo g; sleep 600", &["f", "^C"]).unwrap_err();
        run("echo f; exit 1", &["f", "f", "^C"]).unwrap_err();
        // The line that redis-cli cannot read is an error, although redis-cli succeeds.
        let broken = "redis-cli -p 6666 <<'END'\nMULTI\nSET k {\"a\":1} b\nEXEC\nEND";
        if super::super::has_programs() {
            run(broken, &["OK", "QUEUED", "1) OK"]).unwrap_err();
        }
    }
}
