//! A thousand namespaces in one server: bounded memory, threads and disk, and walls between them.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{ADMIN, Server, Sse};

const ON_DISK: usize = 1000;
const IN_USE: usize = 200;
/// Generous bounds that a leak or a cost per namespace of the wrong order still breaks.
const MEMORY_BYTES_MAX: u64 = 256 << 20;
const THREADS_MAX: u64 = 128;
const DISK_BYTES_PER_USED_MAX: u64 = 1 << 20;
const DISK_BYTES_PER_UNUSED_MAX: u64 = 64 << 10;

fn name(number: usize) -> String {
    format!("tenant-{number:04}")
}

/// Bytes that the files below a directory occupy.
fn disk_bytes(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap());
    let size = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => disk_bytes(&entry.path()),
        false => entry.metadata().unwrap().blocks() * 512,
    };
    entries.map(size).sum()
}

fn create_all(server: &Server) -> BTreeMap<String, String> {
    let parts = thread::scope(|scope| {
        let create = |part: usize| {
            let mut client = server.client();
            let numbers = (0..ON_DISK).filter(move |number| number % 4 == part);
            numbers
                .map(|n| (name(n), client.create_namespace(&name(n))))
                .collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..4)
            .map(|part| scope.spawn(move || create(part)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });
    parts.into_iter().flatten().collect()
}

/// Writes to and reads from namespaces, each with its own token, several at a time.
fn use_all(server: &Server, tokens: &BTreeMap<String, String>, version: u64) {
    let used: Vec<_> = tokens.iter().take(IN_USE).collect();
    thread::scope(|scope| {
        for part in used.chunks(IN_USE / 8) {
            scope.spawn(move || {
                for (id, token) in part {
                    let mut client = server.client_with(token);
                    assert_eq!(client.write("mine-1", &json!({"id": id})), version + 1);
                    let rows = client.rpc(&json!(["stream.get", "mine-1"])).ok();
                    let rows = rows.as_array().unwrap();
                    assert_eq!(rows.len() as u64, version + 1);
                    assert!(
                        rows.iter().all(|row| row[4]["id"] == **id),
                        "{id} sees {rows:?}"
                    );
                }
            });
        }
    });
}

#[test]
fn a_thousand_namespaces_stay_small_and_apart() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &["--log-level=warn"]);
    let tokens = create_all(&server);
    assert_eq!(tokens.len(), ON_DISK);
    let empty = disk_bytes(data.path());
    assert!(
        empty < ON_DISK as u64 * DISK_BYTES_PER_UNUSED_MAX,
        "{empty} bytes on disk, unused"
    );
    use_all(&server, &tokens, 0);
    assert_bounded(&server, data.path());
    check_walls(&server, &tokens);
    let status = server.terminate();
    assert!(status.success());

    let server = Server::on(data.path(), &["--log-level=warn"]);
    use_all(&server, &tokens, 1);
    assert_bounded(&server, data.path());
    let listed = server.client().rpc(&json!(["ns.list"])).ok();
    assert_eq!(listed.as_array().unwrap().len(), ON_DISK + 1);
    delete_one(&server, data.path(), &tokens);
}

fn assert_bounded(server: &Server, data: &Path) {
    let (memory, threads, disk) = (
        server.status("VmRSS") << 10,
        server.status("Threads"),
        disk_bytes(data),
    );
    eprintln!(
        "{IN_USE} in use: {} MiB, {threads} threads, {} MiB on disk",
        memory >> 20,
        disk >> 20
    );
    assert!(memory < MEMORY_BYTES_MAX, "{memory} bytes of memory");
    assert!(threads < THREADS_MAX, "{threads} threads");
    let allowed =
        IN_USE as u64 * DISK_BYTES_PER_USED_MAX + ON_DISK as u64 * DISK_BYTES_PER_UNUSED_MAX;
    assert!(disk < allowed, "{disk} bytes on disk");
}

/// A token opens its own namespace and no other, and administers nothing.
fn check_walls(server: &Server, tokens: &BTreeMap<String, String>) {
    let (one, two) = (&tokens[&name(0)], &tokens[&name(1)]);
    let (begin, secret) = one.rsplit_once('_').unwrap();
    let forged = format!("{}_{secret}", two.rsplit_once('_').unwrap().0);
    let refused = server
        .client_with(&forged)
        .rpc(&json!(["stream.get", "mine-1"]));
    assert_eq!(
        (refused.status, refused.code()),
        (403, "AUTH_UNAUTHORIZED".to_owned())
    );
    let guessed = format!("{begin}_{}", "0".repeat(64));
    assert_eq!(
        server
            .client_with(&guessed)
            .rpc(&json!(["ns.streams"]))
            .status,
        403
    );
    for call in [
        json!(["ns.delete", name(1)]),
        json!(["ns.info", name(1)]),
        json!(["ns.list"]),
        json!(["ns.create", "another"]),
    ] {
        assert_eq!(server.client_with(one).rpc(&call).status, 403, "{call}");
    }
    for id in [
        "../up",
        "a/b",
        "..",
        ".hidden",
        "_meta",
        "a\u{0}b",
        "",
        "é",
        &"x".repeat(129),
    ] {
        let refused = server.client().rpc(&json!(["ns.create", id]));
        assert_eq!(
            (refused.status, refused.code()),
            (400, "INVALID_REQUEST".to_owned()),
            "{id:?}"
        );
    }
}

/// Deleting takes the directory away, also while the namespace is open and followed.
fn delete_one(server: &Server, data: &Path, tokens: &BTreeMap<String, String>) {
    let (id, token) = (name(0), &tokens[&name(0)]);
    assert!(data.join(&id).is_dir());
    let deleted = server.client().rpc(&json!(["ns.delete", id])).ok();
    assert_eq!(deleted["messagesDeleted"], 2);
    assert!(!data.join(&id).exists(), "the directory is gone");
    assert_eq!(
        server
            .client_with(token)
            .rpc(&json!(["stream.get", "mine-1"]))
            .status,
        403
    );
    let again = server.client().rpc(&json!(["ns.create", id])).ok();
    assert_ne!(again["token"], Value::from(token.as_str()), "a new secret");
    let mut fresh = server.client_with(again["token"].as_str().unwrap());
    assert_eq!(fresh.rpc(&json!(["stream.get", "mine-1"])).ok(), json!([]));
    assert_eq!(
        server
            .client_with(ADMIN)
            .rpc(&json!(["ns.delete", "default"]))
            .status
            / 100,
        4
    );
}

/// Far more namespaces in use than may be open: they are closed and opened again under the hands
/// of their clients, who notice nothing.
#[test]
fn namespaces_that_take_turns_lose_nothing() {
    const NAMESPACES: usize = 24;
    const ROUNDS: u64 = 12;
    let data = TempDir::new().unwrap();
    let arguments = [
        "--open-namespaces-max=8",
        "--tail-events-max=8",
        "--segment-size-max=32KiB",
        "--log-level=warn",
    ];
    let server = Server::on(data.path(), &arguments);
    let tokens: Vec<String> = (0..NAMESPACES)
        .map(|n| server.client().create_namespace(&name(n)))
        .collect();
    let follower = Sse::subscribe(&server, &tokens[0], "category=turn");
    thread::scope(|scope| {
        for part in tokens.chunks(4) {
            let server = &server;
            scope.spawn(move || {
                let mut clients: Vec<_> =
                    part.iter().map(|token| server.client_with(token)).collect();
                for round in 0..ROUNDS {
                    for client in &mut clients {
                        let event = json!({"stream": "turn-1", "type": "E", "data": {"n": round}});
                        let events = vec![event; 5];
                        let written = client.rpc(&json!(["commit", {"events": events}])).ok();
                        assert_eq!(written["globalPosition"], (round + 1) * 5);
                    }
                }
            });
        }
    });
    for position in 0..ROUNDS * 5 {
        assert_eq!(
            follower.data()["position"],
            position,
            "a subscription ended or jumped"
        );
    }
    drop(follower);
    let check = |server: &Server| {
        for token in &tokens {
            let rows = server
                .client_with(token)
                .rpc(&json!(["category.get", "turn"]))
                .ok();
            let rows = rows.as_array().unwrap();
            assert_eq!(rows.len() as u64, ROUNDS * 5);
            let dense = rows
                .iter()
                .zip(1u64..)
                .all(|(row, position)| row[4] == position);
            assert!(dense, "{rows:?}");
        }
    };
    check(&server);
    assert!(server.terminate().success());
    check(&Server::on(data.path(), &arguments));
}
