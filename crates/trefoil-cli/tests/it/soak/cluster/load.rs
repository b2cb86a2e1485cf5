//! The clients: a script that writes, reads and follows until it is told to end, and checks all of it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::python;

/// The running script. It is killed when it is dropped.
pub(super) struct Load {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Load {
    pub(super) fn start(nodes: &Path, authority: &Path, namespaces: &[(String, String)]) -> Self {
        let mut script = python::script("cluster/load.py");
        script.args([nodes, authority]);
        script.args(
            namespaces
                .iter()
                .map(|(name, token)| format!("{name}={token}")),
        );
        let piped = script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = piped.spawn().unwrap();
        let commands = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self {
            process,
            commands,
            answers,
        }
    }

    /// Waits until everything is written again. Returns what it says about it.
    pub(super) fn settle(&mut self) -> String {
        self.ask("settle")
    }

    /// Ends the load. Returns what it says about its checks, all of which held.
    pub(super) fn finish(mut self) -> String {
        let answer = self.ask("finish");
        assert!(answer.starts_with("ok "), "{answer}");
        answer
    }

    fn ask(&mut self, command: &str) -> String {
        // If it has ended, it has said why.
        let sent = writeln!(self.commands, "{command}");
        let mut answer = String::new();
        let received = self.answers.read_line(&mut answer).unwrap();
        assert!(sent.is_ok() && received > 0, "a check failed: see above");
        answer.trim_end().to_owned()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
