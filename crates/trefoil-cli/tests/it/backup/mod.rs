//! `trefoil backup` of the built binary: of running servers and of stopped ones, and what is restored.

mod archive;
mod commands;
mod load;
mod redacted;
mod rounds;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

use crate::harness::{ADMIN, Server, binary};

/// `trefoil backup …` on a repository.
struct Backups<'a> {
    repository: &'a Path,
    url: String,
}

impl<'a> Backups<'a> {
    fn of(server: &Server, repository: &'a Path) -> Self {
        Self {
            repository,
            url: format!("http://127.0.0.1:{}", server.port),
        }
    }

    /// The command, with what comes after the repository.
    fn command(&self, action: &str, arguments: &[&str]) -> Command {
        let mut command = binary();
        command
            .args(["backup", action])
            .arg(self.repository)
            .args(arguments)
            .env("TREFOIL_URL", &self.url)
            .env("TREFOIL_TOKEN", ADMIN)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, action: &str, arguments: &[&str]) -> Output {
        self.command(action, arguments).output().unwrap()
    }

    /// Runs what must succeed, and returns the lines of JSON.
    #[track_caller]
    fn ok(&self, action: &str, arguments: &[&str]) -> Vec<Json> {
        let output = self.run(action, &[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{action}: {}", errors(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }

    /// Runs what must fail, and returns what it complained about.
    #[track_caller]
    fn fails(&self, code: i32, action: &str, arguments: &[&str]) -> String {
        let output = self.run(action, arguments);
        assert_eq!(output.status.code(), Some(code), "{}", errors(&output));
        errors(&output)
    }

    /// Restores the newest backup into a directory.
    #[track_caller]
    fn restore(&self, data: &Path) -> Vec<Json> {
        self.ok("restore", &["--data-dir", data.to_str().unwrap()])
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All that a namespace exports, line by line.
fn exported(server: &Server) -> Vec<String> {
    let answer = server.client().get("/export");
    assert_eq!(answer.status, 200);
    answer.text().lines().map(str::to_owned).collect()
}
