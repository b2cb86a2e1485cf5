//! What is read from a data directory: of each namespace its events, its state, what is known of
//! it, and how far it has read other logs.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::contents::{BOX_OFFICE, LATER_EVENT, SOON_EVENT, SOURCES};
use crate::harness::{Resp, Server, binary};
use crate::state::dump;

/// What a release read from a namespace.
pub(super) struct Expected {
    pub(super) namespace: String,
    pub(super) token: String,
    contents: NamespaceContents,
}

/// What is read from a namespace, as text that can be kept.
#[derive(Debug, PartialEq)]
pub(super) struct NamespaceContents {
    /// The export, a line for each event.
    events: String,
    /// A line for each key: when it expires, or -1, its name, and the rest.
    state: String,
    /// What `ns.info` says, and the tracked positions.
    facts: Value,
}

/// Reads all of a namespace.
pub(super) fn read_namespace(server: &Server, id: &str, token: &str) -> NamespaceContents {
    let url = format!("http://127.0.0.1:{}", server.port);
    let mut export = binary();
    export.args(["export", "--url", &url, "--token", token]);
    let exported = export.output().unwrap();
    assert!(exported.status.success(), "{exported:?}");
    let mut client = server.client_with(token);
    let mut info = client.rpc(&json!(["ns.info", id])).ok();
    let tracking = |source: &&str| client.rpc(&json!(["events.tracking", source])).ok();
    let tracking: Vec<Value> = SOURCES.iter().map(tracking).collect();
    info["tracking"] = json!(tracking);
    NamespaceContents {
        events: String::from_utf8(exported.stdout).unwrap(),
        state: state(server, token),
        facts: info,
    }
}

fn state(server: &Server, token: &str) -> String {
    let mut connection = Resp::connect(server.resp_port).unwrap();
    connection.call(&["AUTH", token]);
    let line = |(key, [kind, value, expires, fields]): (_, [_; 4])| {
        let expires = format!("{expires:?}");
        let expires = expires.trim_start_matches(':');
        format!("{expires} {key:?} {kind:?} {value:?} {fields:?}\n")
    };
    dump::dump(&mut connection).into_iter().map(line).collect()
}

impl Expected {
    /// Keeps what was read from a namespace.
    pub(super) fn write(directory: &Path, id: &str, token: &str, contents: &NamespaceContents) {
        let file = |extension: &str| directory.join(format!("{id}.{extension}"));
        fs::write(file("ndjson"), &contents.events).unwrap();
        fs::write(file("state"), &contents.state).unwrap();
        let facts = json!({"token": token, "facts": contents.facts});
        fs::write(file("json"), facts.to_string()).unwrap();
    }

    /// Reads what was kept of all namespaces.
    pub(super) fn read_all(directory: &Path) -> Vec<Self> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
            .collect();
        names.sort();
        names
            .into_iter()
            .map(|namespace| Self::read(directory, namespace))
            .collect()
    }

    fn read(directory: &Path, namespace: String) -> Self {
        let text = |extension: &str| {
            fs::read_to_string(directory.join(format!("{namespace}.{extension}"))).unwrap()
        };
        let mut kept: Value = serde_json::from_str(&text("json")).unwrap();
        Self {
            token: kept["token"].as_str().unwrap().to_owned(),
            contents: NamespaceContents {
                events: text("ndjson"),
                state: text("state"),
                facts: kept["facts"].take(),
            },
            namespace,
        }
    }

    /// Compares what is read now. In the box office holds have ended since, and their seats are
    /// free; everywhere, keys have expired.
    #[track_caller]
    pub(super) fn compare(&self, read: &NamespaceContents) {
        let now = now();
        let (before, after) = (&self.contents, read);
        if self.namespace != BOX_OFFICE {
            assert_eq!(after.facts, before.facts, "{}", self.namespace);
            assert_eq!(after.events, before.events, "{}", self.namespace);
        }
        assert!(after.events.starts_with(&before.events));
        let new = after.events[before.events.len()..].lines();
        for line in new {
            let event: Value = serde_json::from_str(line).unwrap();
            assert_eq!(event["type"], "HoldExpired");
        }
        let is_later_free = self.later_hold_ends().is_some_and(|end| end <= now);
        let is_compared = |line: &&str| {
            let mut words = line.split(' ');
            let expires: i64 = words.next().unwrap().parse().unwrap();
            let key = words.next().unwrap();
            let is_free = key.contains(SOON_EVENT) || is_later_free && key.contains(LATER_EVENT);
            !is_free && (expires == -1 || expires > now)
        };
        let (before, after): (Vec<&str>, Vec<&str>) = (
            before.state.lines().filter(is_compared).collect(),
            after.state.lines().filter(is_compared).collect(),
        );
        assert_eq!(after, before, "{}", self.namespace);
    }

    /// When the long hold ends, as its event says.
    fn later_hold_ends(&self) -> Option<i64> {
        let mut events = self.contents.events.lines();
        let reserved =
            events.find(|line| line.contains("\"SeatsReserved\"") && line.contains(LATER_EVENT))?;
        let event: Value = serde_json::from_str(reserved).unwrap();
        event["data"]["expires_at"].as_i64()
    }
}

fn now() -> i64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_1970.unwrap().as_millis() as i64
}
