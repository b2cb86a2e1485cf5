//! Runs `cases/*.txt`, what Redis 7.0 does not have, in both versions of the protocol.

use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::{Case, Resp, Server, Value, cases, run_all};

const DIRECTORY: &str = "state/cases";

#[test]
fn every_case_holds_in_resp2() {
    run(2);
}

#[test]
fn every_case_holds_in_resp3() {
    run(3);
}

/// Whether some case calls this command.
pub(super) fn have(command: &str) -> bool {
    let call = format!("> {command} ");
    let mut lines = cases(DIRECTORY).into_iter().flat_map(|case| case.lines);
    lines.any(|line| format!("{line} ").contains(&call))
}

fn run(protocol: u32) {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &["--log-level=warn"]);
    let all = cases(DIRECTORY);
    assert!(all.len() > 30, "cases got lost: {}", all.len());
    run_all(&all, |case| Runner::new(&server, case, protocol).run(case));
}

/// One case in its namespace, with two connections.
struct Runner {
    protocol: u32,
    connections: [Resp; 2],
    answer: Option<Value>,
}

impl Runner {
    fn new(server: &Server, case: &Case, protocol: u32) -> Self {
        let token = server.client().create_namespace(&case.place);
        let connect = || {
            let mut connection = Resp::connect(server.resp_port).unwrap();
            let hello = ["HELLO", &protocol.to_string(), "AUTH", "default", &token];
            let answer = connection.call(&hello);
            assert!(!matches!(answer, Value::Error(_)), "{answer:?}");
            connection
        };
        Self {
            protocol,
            connections: [connect(), connect()],
            answer: None,
        }
    }

    fn run(mut self, case: &Case) -> Result<(), String> {
        for line in &case.lines {
            self.step(line)
                .map_err(|error| format!("{line}\n    {error}"))?;
        }
        Ok(())
    }

    fn step(&mut self, line: &str) -> Result<(), String> {
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        match mark {
            ">" => self.send(0, rest),
            "2>" => self.send(1, rest),
            "wait" => {
                let time = rest.parse().map_err(|_| "no number".to_owned())?;
                thread::sleep(Duration::from_millis(time));
                Ok(())
            }
            "<" => self.expect(rest),
            "<2" if self.protocol == 2 => self.expect(rest),
            "<3" if self.protocol == 3 => self.expect(rest),
            "<2" | "<3" => Ok(()),
            _ => Err("no such line".to_owned()),
        }
    }

    fn send(&mut self, connection: usize, line: &str) -> Result<(), String> {
        let words = words(line).ok_or("a quote is not closed")?;
        self.answer = Some(self.connections[connection].call(&words));
        Ok(())
    }

    fn expect(&self, expected: &str) -> Result<(), String> {
        let answer = self.answer.as_ref().ok_or("no answer yet")?;
        let shown = ["$nil", "*nil", "_"]
            .iter()
            .find(|nil| format!("{answer:?}") == **nil)
            .map_or_else(|| format!("{answer:?}"), |_| "nil".to_owned());
        match is_like(expected, &shown) {
            true => Ok(()),
            false => Err(shown),
        }
    }
}

/// Whether a text is the expected one; `…` stands for any text.
fn is_like(expected: &str, text: &str) -> bool {
    let Some((begin, rest)) = expected.split_once('…') else {
        return expected == text;
    };
    let Some(text) = text.strip_prefix(begin) else {
        return false;
    };
    let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.any(|at| is_like(rest, &text[at..]))
}

/// The words of a line; those in quotes may have spaces.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '"' | '\'' => rest[1..].split_once(first)?,
            _ => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    Some(words)
}
