//! kill -9 while namespaces come and go and while all events are replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Client, SMALL_PARTS, Server, seeded};

/// What a client was told of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Told {
    /// There, with this token and one event.
    Written(String),
    Deleted,
    /// An answer is missing: it may be there or not.
    Nothing,
}

/// Creates, fills and deletes namespaces until the server is gone.
fn come_and_go(mut client: Client, server: &Server, prefix: &str) -> Vec<(String, Told)> {
    let mut told = Vec::new();
    for n in 0.. {
        let id = format!("{prefix}-{n}");
        let Ok(created) = client.try_rpc(&json!(["ns.create", id])) else {
            told.push((id, Told::Nothing));
            break;
        };
        let token = created.ok()["token"].as_str().unwrap().to_owned();
        let message = json!({"type": "E", "data": {"id": id}});
        let call = json!(["stream.write", "mine-1", message]);
        if server.client_with(&token).try_rpc(&call).is_err() {
            told.push((id, Told::Nothing));
            break;
        }
        told.push((id.clone(), Told::Written(token)));
        if n % 2 == 0 {
            let deleted = client.try_rpc(&json!(["ns.delete", id]));
            told.last_mut().unwrap().1 = match deleted {
                Ok(answer) => {
                    assert_eq!(answer.ok()["messagesDeleted"], 1);
                    Told::Deleted
                }
                Err(_) => Told::Nothing,
            };
        }
    }
    told
}

fn listed(server: &Server) -> BTreeSet<String> {
    let list = server.client().rpc(&json!(["ns.list"])).ok();
    let ids = list.as_array().unwrap().iter();
    ids.map(|entry| entry["namespace"].as_str().unwrap().to_owned())
        .collect()
}

/// The namespaces that have a directory.
fn directories(data: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap());
    let directories = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let names = directories.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with('_')).collect()
}

#[test]
fn namespaces_that_come_and_go_under_kills_are_there_or_gone() {
    let data = TempDir::new().unwrap();
    let mut random = seeded();
    let mut books = BTreeMap::<String, Told>::new();
    for round in 0..15 {
        let server = Server::on(data.path(), &["--log-level=warn"]);
        let listed = listed(&server);
        for (id, told) in &books {
            match told {
                Told::Written(token) => {
                    assert!(listed.contains(id), "{id} was acknowledged and is gone");
                    let rows = server
                        .client_with(token)
                        .rpc(&json!(["stream.get", "mine-1"]));
                    assert_eq!(rows.ok()[0][4]["id"], id.as_str());
                }
                Told::Deleted => assert!(!listed.contains(id), "{id} was deleted and is back"),
                Told::Nothing => {}
            }
        }
        let orphans: Vec<_> = directories(data.path())
            .difference(&listed)
            .cloned()
            .collect();
        assert!(
            orphans.is_empty(),
            "directories of no namespace: {orphans:?}"
        );
        books.retain(|_, told| *told != Told::Nothing);
        thread::scope(|scope| {
            let server = &server;
            let spawn = |number: usize| {
                let prefix = format!("r{round}-{number}");
                scope.spawn(move || come_and_go(server.client(), server, &prefix))
            };
            let threads: Vec<_> = (0..3).map(spawn).collect();
            thread::sleep(Duration::from_millis(40 + random.u64(..200)));
            server.signal("KILL");
            for thread in threads {
                books.extend(thread.join().unwrap());
            }
        });
        server.kill();
    }
    assert!(books.len() > 30, "too little happened: {}", books.len());
}

const GENERATION_EVENTS: u64 = 400;

fn generation(number: u64) -> String {
    let line = |n: u64| {
        let id = format!("{number:08x}-0000-4000-8000-{n:012x}");
        let stream = format!("gen-{}", n % 5);
        json!({"id": id, "stream": stream, "type": "E", "pos": n / 5, "gpos": n + 1,
            "data": {"generation": number}, "meta": null, "time": "2025-01-15T10:00:00Z"})
        .to_string()
            + "\n"
    };
    (0..GENERATION_EVENTS).map(line).collect()
}

/// A forced import replaces everything: afterwards there is the old or the new.
#[test]
fn a_forced_import_under_kills_never_mixes_generations() {
    let data = TempDir::new().unwrap();
    let mut random = seeded();
    let mut seen = BTreeSet::new();
    let mut acknowledged = 0;
    // How long an import takes on this machine, in milliseconds.
    let mut duration = None;
    for number in 1..=20 {
        let server = Server::on(data.path(), &SMALL_PARTS);
        let rows = server
            .client()
            .rpc(&json!(["category.get", "", {"batchSize": -1}]))
            .ok();
        let rows = rows.as_array().unwrap();
        if let Some(first) = rows.first() {
            let found = first[5]["generation"].as_u64().unwrap();
            assert!(
                found >= acknowledged,
                "generation {acknowledged} was acknowledged"
            );
            assert_eq!(rows.len() as u64, GENERATION_EVENTS);
            for (row, position) in rows.iter().zip(1..) {
                let expected = (Value::from(position), Value::from(found));
                assert_eq!((row[4].clone(), row[5]["generation"].clone()), expected);
            }
            seen.insert(found);
        } else {
            assert_eq!(acknowledged, 0, "what was there is gone");
        }
        let body = generation(number);
        thread::scope(|scope| {
            let mut client = server.client();
            let import = scope.spawn(move || {
                client.try_request("POST", "/import?force=true", &[], body.as_bytes())
            });
            let started = Instant::now();
            if let Some(duration) = duration {
                thread::sleep(Duration::from_millis(random.u64(..duration * 3 / 2)));
                server.signal("KILL");
            }
            let answer = import.join().unwrap();
            duration.get_or_insert(started.elapsed().as_millis() as u64 + 1);
            if answer.is_ok_and(|answer| answer.text().contains(r#""done":true"#)) {
                acknowledged = number;
            }
        });
        server.kill();
    }
    assert!(seen.len() > 1, "no import was ever seen: {seen:?}");
}
