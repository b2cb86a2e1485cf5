//! Runs the files of `tests/cases`. Each file begins with `mode test` or `mode production` and
//! talks to a server of its own:
//!
//! ```text
//! # A comment.
//! as default | none | raw TEXT | NAME     whose token the next requests carry
//! > ["method", ...]                       a call to /rpc
//! GET /path                               any other request, without a body
//! POST /path BODY                         or with one; \n stands for a line end
//! < 200 BODY                              what must come back; without BODY only the status
//! ```
//!
//! In an expected body `<time>`, `<uuid>`, `<token>`, `<number>` and `<any>` stand for what they
//! say; `<token:NAME>` also remembers the token under that name.

use std::collections::HashMap;
use std::net::SocketAddr;

use trefoil::Token;

use crate::client::{self, Reply};
use crate::harness::each_case_file;

#[test]
fn every_case_is_answered_as_written() {
    let mut failures = Vec::new();
    let mut n_cases = 0;
    each_case_file("cases", |server, name, text| {
        let (cases, failed) = run(server.address, text);
        n_cases += cases;
        failures.extend({ failed.into_iter() }.map(|failure| format!("{name}:{failure}")));
    });
    assert!(n_cases > 100, "{n_cases} cases");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

struct Session {
    address: SocketAddr,
    tokens: HashMap<String, String>,
    current: Option<String>,
    reply: Option<Reply>,
}

/// Runs the lines of a file; returns how many answers were compared and which were wrong.
fn run(address: SocketAddr, text: &str) -> (usize, Vec<String>) {
    let default = Token::development().reveal().to_owned();
    let mut session = Session {
        address,
        tokens: HashMap::from([("default".to_owned(), default.clone())]),
        current: Some(default),
        reply: None,
    };
    let mut n_cases = 0;
    let mut failures = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "" | "#" => {}
            "as" => session.become_user(rest),
            ">" => session.send("POST", "/rpc", rest),
            "<" => {
                n_cases += 1;
                if let Err(failure) = session.compare(rest) {
                    failures.push(format!("{}: {failure}", index + 1));
                }
            }
            method => {
                let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
                session.send(method, path, &body.replace("\\n", "\n"));
            }
        }
    }
    (n_cases, failures)
}

impl Session {
    fn become_user(&mut self, who: &str) {
        self.current = match who.split_once(' ') {
            Some(("raw", text)) => Some(text.to_owned()),
            _ if who == "none" => None,
            _ => Some(
                self.tokens
                    .get(who)
                    .unwrap_or_else(|| panic!("no token {who}"))
                    .clone(),
            ),
        };
    }

    fn send(&mut self, method: &str, path: &str, body: &str) {
        let headers = self
            .current
            .as_deref()
            .map(client::bearer_of)
            .unwrap_or_default();
        self.reply = Some(client::request(
            self.address,
            method,
            path,
            &headers,
            body.as_bytes(),
        ));
    }

    fn compare(&mut self, expected: &str) -> Result<(), String> {
        let reply = self.reply.as_ref().ok_or("nothing was sent")?;
        let (status, body) = expected.split_once(' ').unwrap_or((expected, ""));
        let body = body.replace("\\n", "\n");
        let fits = body.is_empty() || matches(&body, reply.text(), &mut self.tokens);
        if reply.status.to_string() == status && fits {
            return Ok(());
        }
        Err(format!(
            "expected {expected}\n    got {} {}",
            reply.status,
            reply.text()
        ))
    }
}

const PLACEHOLDERS: [&str; 5] = ["time", "uuid", "token", "number", "any"];

/// Whether `text` is what `pattern` describes.
fn matches(pattern: &str, text: &str, tokens: &mut HashMap<String, String>) -> bool {
    let Some((literal, name, after)) = next_placeholder(pattern) else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(literal) else {
        return false;
    };
    let (kind, alias) = name
        .split_once(':')
        .map_or((name, None), |(kind, alias)| (kind, Some(alias)));
    // A placeholder takes as little as makes the rest fit.
    for (end, _) in rest.char_indices().chain([(rest.len(), ' ')]) {
        let (value, rest) = rest.split_at(end);
        if is_a(kind, value) && matches(after, rest, tokens) {
            if let Some(alias) = alias {
                tokens.insert(alias.to_owned(), value.to_owned());
            }
            return true;
        }
    }
    false
}

fn next_placeholder(pattern: &str) -> Option<(&str, &str, &str)> {
    for (start, _) in pattern.match_indices('<') {
        let (name, after) = pattern[start + 1..].split_once('>')?;
        if PLACEHOLDERS.contains(&name.split(':').next().unwrap_or_default()) {
            return Some((&pattern[..start], name, after));
        }
    }
    None
}

fn is_a(kind: &str, value: &str) -> bool {
    match kind {
        "time" => trefoil::Timestamp::parse(value).is_some() && value.ends_with('Z'),
        "uuid" => value.len() == 36 && trefoil::parse_event_id(value).is_some(),
        "token" => Token::parse(value).is_ok(),
        "number" => value.parse::<i64>().is_ok(),
        _ => true,
    }
}
