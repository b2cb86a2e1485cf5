//! Runs the files of `tests/resp`. Each begins with `mode test` or `mode production` and talks to a
//! server of its own:
//!
//! ```text
//! # A comment.
//! A> WORD "a word" …     client A sends these words, connecting if it has not yet
//! [1 "bulk" +OK -ERR …]  and this must come back: see `Display` of `Value`
//! A>> WORD …             client A sends these words, and nothing comes back for them
//! A closed               the server has closed the connection of client A
//! ```
//!
//! `<token>` among the words is the development token; `<any>` in a reply stands for anything, and
//! `<number>` for digits.

use std::collections::HashMap;

use trefoil::Token;

use super::Client;
use crate::harness::{TestServer, each_case_file};

#[test]
fn every_case_is_answered_as_written() {
    let mut failures = Vec::new();
    let mut n_cases = 0;
    each_case_file("resp", |server, name, text| {
        n_cases += run(server, name, text, &mut failures);
    });
    assert!(n_cases > 100, "{n_cases} cases");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn run(server: &TestServer, file: &str, text: &str, failures: &mut Vec<String>) -> usize {
    let mut clients: HashMap<&str, Client> = HashMap::new();
    let mut reply: Option<String> = None;
    let mut n_cases = 0;
    for (index, line) in text.lines().enumerate().skip(1) {
        let place = format!("{file}:{}", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, words)) = line.split_once("> ").filter(|(name, _)| is_name(name)) {
            assert_eq!(
                reply, None,
                "{place}: nothing was expected of the request before"
            );
            let is_silent = name.ends_with('>');
            let client = clients.entry(name.trim_end_matches('>'));
            let client = client.or_insert_with(|| Client::connect(server));
            let words = split(words);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            client.send(&words);
            if !is_silent {
                reply = Some(client.reply().to_string());
            }
        } else if let Some(name) = line.strip_suffix(" closed") {
            clients.get_mut(name).unwrap().check_closed();
            n_cases += 1;
        } else {
            let reply = reply
                .take()
                .unwrap_or_else(|| panic!("{place}: nothing was asked"));
            n_cases += 1;
            if !matches(line, &reply) {
                failures.push(format!("{place}: {line}\n  came back as {reply}"));
            }
        }
    }
    assert_eq!(
        reply, None,
        "{file}: nothing was expected of the last request"
    );
    n_cases
}

fn is_name(name: &str) -> bool {
    let name = name.trim_end_matches('>');
    name.len() == 1 && name.chars().all(|letter| letter.is_ascii_uppercase())
}

/// Words between spaces, or between double quotes.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap(),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.replace("<token>", Token::development().reveal()));
        rest = after.trim_start();
    }
    words
}

/// Whether the reply is what was expected.
fn matches(expected: &str, reply: &str) -> bool {
    for wildcard in ["<any>", "<number>"] {
        let Some((before, after)) = expected.split_once(wildcard) else {
            continue;
        };
        if before.contains("<any>") || before.contains("<number>") {
            continue;
        }
        let Some(rest) = reply.strip_prefix(before) else {
            return false;
        };
        let ends = rest.char_indices().map(|(end, _)| end).chain([rest.len()]);
        let fits = |part: &str| wildcard == "<any>" || is_number(part);
        return ends
            .filter(|end| fits(&rest[..*end]))
            .any(|end| matches(after, &rest[end..]));
    }
    expected == reply
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
