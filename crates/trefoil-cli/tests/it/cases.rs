//! Runs the conformance cases in `cases/*.txt` against the binary, in both modes.

use std::cell::RefCell;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{ADMIN, Case, Client, Kept, Response, Server, cases, matches, run_all};

#[test]
fn every_case_holds_in_test_mode() {
    run(&Server::in_test_mode(), "test");
}

#[test]
fn every_case_holds_in_production() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &["--log-level=trace"]);
    run(&server, "production");
    let log = server.log();
    assert!(log.contains("/rpc"), "requests are logged");
    let leak = log.lines().find(|line| line.contains("ns_"));
    assert_eq!(leak, None, "a token was logged");
}

/// The numbers that must be there, so that no case gets lost. ERROR-004 to 006 are about clients
/// without a server, EDGE-005 and SSE are in `eventodb.rs`.
const NUMBERED: [(&str, u32); 11] = [
    ("WRITE", 10),
    ("READ", 10),
    ("LAST", 4),
    ("VERSION", 3),
    ("CATEGORY", 8),
    ("NS", 18),
    ("SYS", 2),
    ("AUTH", 4),
    ("ERROR", 3),
    ("ENCODING", 10),
    ("EDGE", 8),
];

#[test]
fn every_number_of_the_list_has_a_case() {
    let cases = cases("cases");
    for (group, last) in NUMBERED {
        for number in 1..=last {
            let id = format!("{group}-{number:03} ");
            let elsewhere = id == "EDGE-005 ";
            assert!(
                elsewhere || cases.iter().any(|case| case.title.starts_with(&id)),
                "no case {id}"
            );
        }
    }
}

/// Runs the cases of a mode: those that name no other one at the end of their title. Returns what was
/// asked and answered: method, path, body, status, content type and body.
pub(crate) fn run(server: &Server, mode: &str) -> Vec<Value> {
    let exchanges = RefCell::new(Vec::new());
    let mut cases = cases("cases");
    cases.retain(|case| {
        let title = case.title.strip_suffix(']');
        let wanted = title.and_then(|title| title.rsplit_once(" ["));
        wanted.is_none_or(|(_, wanted)| wanted == mode)
    });
    run_all(&cases, |case| {
        Runner::new(server, case, &exchanges).run(case)
    });
    exchanges.into_inner()
}

/// One case in its namespace.
struct Runner<'a> {
    server: &'a Server,
    client: Client,
    namespace: String,
    token: String,
    header: Option<String>,
    /// Method, path and body of a request whose body is still being read.
    pending: Option<(String, String, String)>,
    answer: Option<Response>,
    kept: Kept,
    exchanges: &'a RefCell<Vec<Value>>,
}

impl<'a> Runner<'a> {
    fn new(server: &'a Server, case: &Case, exchanges: &'a RefCell<Vec<Value>>) -> Self {
        let namespace = format!("case-{}", case.place);
        let token = server.client().create_namespace(&namespace);
        Self {
            server,
            client: server.anonymous(),
            header: Some(format!("Bearer {token}")),
            namespace,
            token,
            pending: None,
            answer: None,
            kept: Kept::new(),
            exchanges,
        }
    }

    fn run(mut self, case: &Case) -> Result<(), String> {
        for line in &case.lines {
            let line = self.replace(line);
            self.step(&line)
                .map_err(|error| format!("{}\n    {error}", shown(&line)))?;
        }
        Ok(())
    }

    fn step(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "as" => self.become_one(rest),
            ">" => self.send("POST", "/rpc", rest),
            "*" => return self.repeat(rest),
            "GET" => self.send("GET", rest, ""),
            "POST" => self.pending = Some((word.into(), rest.into(), String::new())),
            "|" => self.pending.as_mut().ok_or("no request")?.2 += &format!("{rest}\n"),
            "<" => return self.expect(rest),
            "<~" => {
                let text = self.answer()?.text().to_owned();
                return text
                    .contains(rest)
                    .then_some(())
                    .ok_or(format!("not in {}", shown(&text)));
            }
            "<-" => {
                let (name, value) = rest.split_once(": ").ok_or("no header")?;
                let actual = self.answer()?.header(name).map(str::to_owned);
                let is_so = actual.as_deref() == Some(value);
                return is_so.then_some(()).ok_or(format!("{name} is {actual:?}"));
            }
            _ => return Err("no such line".to_owned()),
        }
        Ok(())
    }

    fn become_one(&mut self, who: &str) {
        self.header = match who {
            "own" => Some(format!("Bearer {}", self.token)),
            "admin" => Some(format!("Bearer {ADMIN}")),
            "nobody" => None,
            other => Some(other.strip_prefix("header ").unwrap().to_owned()),
        };
        self.client = self.server.anonymous();
    }

    fn send(&mut self, method: &str, path: &str, body: &str) {
        let header = self.header.as_deref().map(|value| ("Authorization", value));
        let headers: Vec<_> = header.into_iter().collect();
        let answer = self
            .client
            .try_request(method, path, &headers, body.as_bytes());
        let answer = answer.unwrap();
        let content_type = answer.header("content-type").unwrap_or_default();
        let exchange = json!([
            method,
            path,
            body,
            answer.status,
            content_type,
            answer.text()
        ]);
        self.exchanges.borrow_mut().push(exchange);
        self.answer = Some(answer);
    }

    fn repeat(&mut self, line: &str) -> Result<(), String> {
        let (times, body) = line.split_once(' ').ok_or("no body")?;
        for index in 0..times.parse::<u32>().map_err(|error| error.to_string())? {
            self.send("POST", "/rpc", &body.replace("{i}", &index.to_string()));
            self.expect("200")?;
        }
        Ok(())
    }

    fn answer(&mut self) -> Result<&Response, String> {
        if let Some((method, path, body)) = self.pending.take() {
            self.send(&method, &path, &body);
        }
        self.answer
            .as_ref()
            .ok_or_else(|| "no answer yet".to_owned())
    }

    fn expect(&mut self, expected: &str) -> Result<(), String> {
        let (status, pattern) = expected.split_once(' ').unwrap_or((expected, ""));
        let answer = self.answer()?;
        if answer.status.to_string() != status {
            return Err(format!(
                "status {}: {}",
                answer.status,
                shown(answer.text())
            ));
        }
        if pattern.is_empty() {
            return Ok(());
        }
        let pattern: Value = serde_json::from_str(pattern).map_err(|error| error.to_string())?;
        let value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        matches(&pattern, &value, &mut self.kept)
    }

    fn replace(&self, line: &str) -> String {
        let mut line = line
            .replace("{ns}", &self.namespace)
            .replace("{token}", &self.token)
            .replace("{admin}", ADMIN);
        for (name, value) in &self.kept {
            if !line.starts_with('<') {
                line = line.replace(&format!("\"{name}\""), &value.to_string());
            }
        }
        while let Some(begin) = line.find("{x*") {
            let end = begin + line[begin..].find('}').unwrap();
            let length = line[begin + 3..end].parse().unwrap();
            line.replace_range(begin..=end, &"x".repeat(length));
        }
        line
    }
}

/// A text that is short enough for a message.
fn shown(text: &str) -> String {
    text.chars().take(600).collect()
}
