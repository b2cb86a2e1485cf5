//! What the server tells of its commands, compared with what Redis tells of its own.

use tempfile::TempDir;

use super::redis::Redis;
use crate::harness::{Resp, Server, Value};

/// Commands that take more words than in Redis 7.0.
const WIDER: [&str; 3] = ["exec", "zrank", "zrevrank"];

/// Requests with keys in all kinds of places, and some without or with too few.
const REQUESTS: &str = "\
GET a
GET
MSET a 1 b 2
MSET a 1 b
DEL a b c
SORT a
SORT a BY w LIMIT 0 1 GET g STORE d
SORT a STORE d STORE e
SORT a LIMIT STORE d
SORT_RO a GET g
ZUNIONSTORE d 2 a b WEIGHTS 1 2
ZUNIONSTORE d 0 a
ZUNIONSTORE d 3 a b
ZINTERSTORE d x a
ZDIFFSTORE d 1 a
ZINTER 2 a b
ZINTER 5 a b
ZUNION 1 a
ZDIFF 1 a
ZINTERCARD 2 a b LIMIT 1
SINTERCARD 2 a b
SINTERSTORE d a b
LMPOP 2 a b LEFT
LMPOP -1 a LEFT
ZMPOP 1 a MIN
BITOP AND d a b
LCS a b
COPY a b
ZRANGESTORE d s 0 1
OBJECT ENCODING a
MEMORY USAGE a
WATCH a b
CONFIG GET a
CLIENT ID
ECHO a
NOSUCH a";

fn pair() -> Option<(Redis, Resp, TempDir, Server, Resp)> {
    let redis = Redis::start()?;
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &["--log-level=warn"]);
    let (theirs, ours) = (Resp::connect(redis.port).unwrap(), server.resp());
    Some((redis, theirs, data, server, ours))
}

fn name_of(described: &Value) -> String {
    let name = described.elements().unwrap()[0].bytes();
    String::from_utf8_lossy(name).into_owned()
}

/// A description without the notes on keys and without subcommands, which have one of their own.
fn comparable(described: &Value) -> Value {
    let mut parts = described.elements().unwrap().to_vec();
    if WIDER.contains(&name_of(described).as_str()) {
        parts[1] = Value::NilBulk;
    }
    let keys = parts[8].elements().unwrap().iter();
    parts[8] = Value::Array(keys.map(without_notes).collect());
    parts.truncate(9);
    Value::Array(parts)
}

fn without_notes(keys: &Value) -> Value {
    let fields = keys.elements().unwrap().chunks_exact(2);
    let fields = fields.filter(|field| field[0].bytes() != b"notes");
    Value::Array(fields.flatten().cloned().collect())
}

#[test]
fn commands_are_described_as_in_redis() {
    let Some((_redis, mut theirs, _data, _server, mut ours)) = pair() else {
        return;
    };
    let names = ours.line("COMMAND LIST");
    let mut n_compared = 0;
    for name in names.elements().unwrap() {
        let request = [b"COMMAND", &b"INFO"[..], name.bytes()];
        let (expected, found) = (theirs.call(&request), ours.call(&request));
        let expected = expected.elements().unwrap()[0].clone();
        let found = found.elements().unwrap()[0].clone();
        if matches!(expected, Value::NilArray | Value::NilBulk) {
            continue;
        }
        n_compared += 1;
        assert_eq!(comparable(&found), comparable(&expected));
        let inner = |described: &Value| -> Vec<String> {
            let inner = described.elements().unwrap()[9].elements().unwrap();
            inner.iter().map(name_of).collect()
        };
        let known = inner(&expected);
        for name in inner(&found) {
            let is_newer = ["client|no-touch", "client|setinfo", "debug|sleep"];
            assert!(
                known.contains(&name) || is_newer.contains(&&*name),
                "{name}"
            );
        }
    }
    assert!(n_compared > 150, "{n_compared}");
}

#[test]
fn keys_are_found_as_in_redis() {
    let Some((_redis, mut theirs, _data, _server, mut ours)) = pair() else {
        return;
    };
    for request in REQUESTS.lines() {
        let request = format!("COMMAND GETKEYS {request}");
        assert_eq!(ours.line(&request), theirs.line(&request), "{request}");
    }
}

/// Commands whose arguments are told of otherwise: they take more than in Redis 7.0, Redis leaves out
/// what they take, or puts one argument into a block of its own.
const WRITTEN_OTHERWISE: [&str; 8] = [
    "bitop",
    "client|kill",
    "client|list",
    "command|getkeys",
    "config|get",
    "exec",
    "zrank",
    "zrevrank",
];

/// The fields of a reply that is a map.
fn field<'a>(map: &'a Value, name: &str) -> Option<&'a Value> {
    let mut pairs = map.elements().unwrap().chunks_exact(2);
    let pair = pairs.find(|pair| pair[0].bytes() == name.as_bytes());
    pair.map(|pair| &pair[1])
}

/// How a command is written: the words that stand for themselves, what is a key, what may be left out
/// or repeated, and what belongs together. The names of other values are our own.
fn written(argument: &Value) -> String {
    let text = |name: &str| {
        let value = field(argument, name).map(|value| value.bytes());
        String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
    };
    let kind = match text("type").as_str() {
        kind @ ("pure-token" | "oneof" | "block" | "key" | "pattern") => kind.to_owned(),
        _ => "value".to_owned(),
    };
    let flags = field(argument, "flags").map(|flags| flags.elements().unwrap());
    let flags = flags.unwrap_or_default().iter();
    let mut flags: Vec<String> = flags
        .map(|flag| String::from_utf8_lossy(flag.bytes()).into_owned())
        .collect();
    flags.sort();
    let parts = field(argument, "arguments").map(|parts| parts.elements().unwrap());
    let parts: Vec<String> = parts.unwrap_or_default().iter().map(written).collect();
    format!("{kind} {} {} {parts:?}", text("token"), flags.join(" "))
}

#[test]
fn every_command_says_what_it_does_and_how_it_is_written() {
    let Some((_redis, mut theirs, _data, _server, mut ours)) = pair() else {
        return;
    };
    let names = ours.line("COMMAND LIST");
    let mut n_compared = 0;
    for name in names.elements().unwrap() {
        let shown = String::from_utf8_lossy(name.bytes()).into_owned();
        let request = [b"COMMAND", &b"DOCS"[..], name.bytes()];
        let (expected, found) = (theirs.call(&request), ours.call(&request));
        let document = &found.elements().unwrap()[1];
        let summary = field(document, "summary").unwrap().bytes();
        assert!(
            summary.len() > 5 && summary[0].is_ascii_uppercase(),
            "{shown}"
        );
        assert!(field(document, "group").is_some(), "{shown}");
        assert!(field(document, "since").is_some(), "{shown}");
        let arguments = |document: &Value| -> Vec<String> {
            let found = field(document, "arguments").map(|found| found.elements().unwrap());
            found.unwrap_or_default().iter().map(written).collect()
        };
        let Some(expected) = expected.elements().unwrap().get(1) else {
            continue;
        };
        if !WRITTEN_OTHERWISE.contains(&shown.as_str()) {
            n_compared += 1;
            assert_eq!(arguments(document), arguments(expected), "{shown}");
        }
    }
    assert!(n_compared > 150, "{n_compared}");
}
