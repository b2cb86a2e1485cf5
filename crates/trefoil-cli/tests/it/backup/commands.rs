//! What each command does, and what it refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::{Backups, exported};
use crate::harness::{SMALL_PARTS, Server, Value};

/// All files below a directory.
pub(super) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

/// Writes events, state, and a tracked position.
fn fill(server: &Server, from: u64) {
    let (mut client, mut resp) = (server.client(), server.resp());
    for number in from..from + 100 {
        let commit = json!(["commit", {
            "events": [{"stream": "account-1", "type": "Deposited", "data": {"n": number}}],
            "state": [["RPUSH", "list", number.to_string()]],
            "tracking": {"source": "upstream", "position": number + 1},
        }]);
        client.rpc(&commit).ok();
    }
    assert_eq!(
        resp.line(&format!("SET greeting hello-{from}")),
        Value::ok()
    );
}

#[test]
fn a_server_is_backed_up_and_restored() {
    let directory = TempDir::new().unwrap();
    let (data, repository) = (directory.path().join("data"), directory.path().join("b"));
    let server = Server::on(&data, &SMALL_PARTS);
    let backups = Backups::of(&server, &repository);
    let token = server.client().create_namespace("tenant-a");
    server.client_with(&token).write("a-1", &json!({"of": "a"}));
    let quotas = json!({"eventsPerSecond": 1000, "diskBytes": 1_000_000_000});
    let set = json!(["ns.settings", "tenant-a", {"quotas": quotas}]);
    server.client().rpc(&set).ok();
    server.client().create_namespace("unused");
    fill(&server, 0);
    let first = &backups.ok("create", &[])[0];
    let names = first["namespaces"].as_array().unwrap().iter();
    let names: Vec<&str> = names
        .map(|one| one["namespace"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["default", "tenant-a", "unused"]);
    let expected = exported(&server);
    fill(&server, 100);

    // Nothing new is nothing written but two small documents.
    let n_files = files(&repository).len();
    let second = &backups.ok("create", &["--namespace", "tenant-a"])[0];
    assert_eq!(second["writtenBytes"], 0);
    assert_eq!(files(&repository).len(), n_files + 1);

    let restored = directory.path().join("restored");
    let id = first["backup"].as_str().unwrap();
    let into = ["--data-dir", restored.to_str().unwrap()];
    backups.ok("verify", &["--backup", id]);
    let told = backups.ok("restore", &[&into[..], &["--backup", id]].concat());
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|one| one["token"].is_null()), "{told:?}");
    let again = backups.fails(1, "restore", &into);
    assert!(
        again.contains("tenant-a: ") && again.contains("exists"),
        "{again}"
    );
    let beside = ["--namespace", "tenant-a", "--as", "beside"];
    let told = backups.ok("restore", &[&into[..], &beside].concat());
    let beside = told[0]["token"].as_str().unwrap();

    let copy = Server::on(&restored, &SMALL_PARTS);
    assert_eq!(exported(&copy), expected);
    let (mut client, mut resp) = (copy.client(), copy.resp());
    assert_eq!(
        client.rpc(&json!(["events.tracking", "upstream"])).ok(),
        100
    );
    assert_eq!(resp.line("LLEN list"), Value::Integer(100));
    assert_eq!(resp.line("GET greeting"), Value::bulk("hello-0"));
    for token in [&token, beside] {
        let read = copy.client_with(token).rpc(&json!(["stream.get", "a-1"]));
        assert_eq!(read.ok().as_array().unwrap().len(), 1);
    }
    let settings = client.rpc(&json!(["ns.settings", "tenant-a"])).ok();
    assert_eq!(settings["settings"]["quotas"], quotas);
    // Life goes on where it was.
    assert_eq!(client.write("account-1", &json!({})), 101);
}

#[test]
fn a_namespace_is_restored_to_a_point() {
    let directory = TempDir::new().unwrap();
    let (data, repository) = (directory.path().join("data"), directory.path().join("b"));
    let server = Server::on(&data, &SMALL_PARTS);
    let backups = Backups::of(&server, &repository);
    fill(&server, 0);
    backups.ok("create", &[]);
    fill(&server, 100);
    let told = server.client().rpc(&json!(["stream.last", "account-1"]));
    let told = told.ok();
    let time = told.as_array().unwrap().last().unwrap().as_str().unwrap();
    server.client().write("account-1", &json!({"n": "later"}));
    let newest = backups.ok("create", &[]).remove(0);

    // Each commit of `fill` has one event, and the last one has none.
    for (name, point, n_events) in [
        ("by-position", ["--to-position", "150"], 150),
        ("by-commit", ["--to-commit", "50"], 50),
        ("by-time", ["--to-time", time], 200),
    ] {
        let into = directory.path().join(name);
        let into = [
            "--data-dir",
            into.to_str().unwrap(),
            "--namespace",
            "default",
        ];
        let told = backups.ok("restore", &[&into[..], &point].concat());
        assert!(told[0]["commit"].as_u64().unwrap() >= n_events, "{told:?}");
        let copy = Server::on(&directory.path().join(name), &SMALL_PARTS);
        assert_eq!(exported(&copy).len() as u64, n_events, "{name}");
        let length = Value::Integer(i64::try_from(n_events).unwrap());
        assert_eq!(copy.resp().line("LLEN list"), length, "{name}");
    }

    let elsewhere = directory.path().join("none");
    let into = ["--data-dir", elsewhere.to_str().unwrap()];
    let fails = |code, point: &[&str]| backups.fails(code, "restore", &[&into[..], point].concat());
    let said = fails(2, &["--to-position", "7"]);
    assert!(said.contains("need one --namespace"), "{said}");
    let one = ["--namespace", "default"];
    let said = fails(1, &[&one[..], &["--to-position", "999"]].concat());
    assert!(said.contains("position 999 is not there"), "{said}");
    let said = fails(4, &["--to-time", "2200-01-01"]);
    let id = newest["backup"].as_str().unwrap();
    assert!(
        said.contains("no backup of 2200-01-01T00:00:00Z"),
        "{said} {id}"
    );
    let both = [&one[..], &["--to-position", "7", "--to-commit", "7"]].concat();
    fails(2, &both);
}

#[test]
fn a_namespace_backs_itself_up_and_nobody_else() {
    let directory = TempDir::new().unwrap();
    let (data, repository) = (directory.path().join("data"), directory.path().join("b"));
    let server = Server::on(&data, &SMALL_PARTS);
    let backups = Backups::of(&server, &repository);
    let token = server.client().create_namespace("tenant-a");
    let made = &backups.ok("create", &["--token", &token])[0];
    assert_eq!(made["namespaces"].as_array().unwrap().len(), 1);
    assert_eq!(made["namespaces"][0]["namespace"], "tenant-a");
    let refused = ["--token", &token, "--namespace", "default"];
    let refused = backups.fails(5, "create", &refused);
    assert!(refused.contains("AUTH_UNAUTHORIZED"), "{refused}");
    let missing = backups.fails(4, "create", &["--namespace", "nobody"]);
    assert!(missing.contains("nobody"), "{missing}");
    // With new tokens the old one opens nothing.
    let restored = directory.path().join("restored");
    let into = ["--data-dir", restored.to_str().unwrap(), "--new-tokens"];
    let told = backups.ok("restore", &into);
    let copy = Server::on(&restored, &SMALL_PARTS);
    assert_eq!(copy.client_with(&token).get("/export").status, 403);
    let new = told[0]["token"].as_str().unwrap();
    assert_eq!(copy.client_with(new).get("/export").status, 200);
}

#[test]
fn a_stopped_server_gives_the_same_backup() {
    let directory = TempDir::new().unwrap();
    let (data, repository) = (directory.path().join("data"), directory.path().join("b"));
    let server = Server::on(&data, &SMALL_PARTS);
    fill(&server, 0);
    let backups = Backups::of(&server, &repository);
    backups.ok("create", &[]);
    assert!(server.terminate().success());
    let from = ["--data-dir", data.to_str().unwrap()];
    let second = &backups.ok("create", &from)[0];
    // The log is the same; what is new is at most the entry of the registry.
    assert!(second["writtenBytes"].as_u64().unwrap() < 4096, "{second}");
    assert_eq!(backups.ok("list", &[]).len(), 2);
    let pruned = &backups.ok("prune", &["--keep", "1"])[0];
    assert_eq!(
        (&pruned["removed"], &pruned["kept"]),
        (&json!(1), &json!(1))
    );
    backups.ok("verify", &[]);
    let left = backups.ok("list", &[]);
    assert_eq!(left[0]["id"], second["backup"]);
}

#[test]
fn a_namespace_is_replaced_by_its_backup_if_asked_for() {
    let directory = TempDir::new().unwrap();
    let (data, repository) = (directory.path().join("data"), directory.path().join("b"));
    let server = Server::on(&data, &SMALL_PARTS);
    fill(&server, 0);
    let backups = Backups::of(&server, &repository);
    backups.ok("create", &[]);
    let expected = exported(&server);
    fill(&server, 100);
    let after = exported(&server);
    let into = ["--data-dir", data.to_str().unwrap()];
    let refused = backups.fails(1, "restore", &into);
    assert!(refused.contains("in use"), "{refused}");
    assert!(server.terminate().success());
    let replace = [&into[..], &["--replace"]].concat();
    let refused = backups.fails(2, "restore", &replace);
    assert!(refused.contains("--yes"), "{refused}");
    let server = Server::on(&data, &SMALL_PARTS);
    assert_eq!(exported(&server), after);
    assert!(server.terminate().success());
    backups.ok("restore", &[&replace[..], &["--yes"]].concat());
    let server = Server::on(&data, &SMALL_PARTS);
    assert_eq!(exported(&server), expected);
}

#[test]
fn damage_is_named_and_nothing_is_restored() {
    let directory = TempDir::new().unwrap();
    let (data, repository) = (directory.path().join("data"), directory.path().join("b"));
    let server = Server::on(&data, &SMALL_PARTS);
    fill(&server, 0);
    let backups = Backups::of(&server, &repository);
    backups.ok("create", &[]);
    let restored = directory.path().join("restored");
    let into = ["--data-dir", restored.to_str().unwrap()];
    let parts = files(&repository.join("parts"));
    assert!(parts.len() >= 3, "{parts:?}");
    let documents = files(&repository.join("backups"));
    for file in parts.iter().chain(&documents) {
        let name = file.file_name().unwrap().to_str().unwrap();
        let sound = fs::read(file).unwrap();
        let mut changed = sound.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 0x10;
        for damaged in [Some(&changed[..]), Some(&sound[..middle]), None] {
            match damaged {
                Some(bytes) => fs::write(file, bytes).unwrap(),
                None if documents.contains(file) => continue,
                None => fs::remove_file(file).unwrap(),
            }
            for (action, arguments) in [("verify", &[][..]), ("restore", &into[..])] {
                let said = backups.fails(1, action, arguments);
                assert!(said.contains(name), "{action} of {name}: {said}");
            }
        }
        fs::write(file, sound).unwrap();
    }
    backups.ok("verify", &[]);
    // What was left of the attempts does not stand in the way.
    backups.restore(&restored);
}

#[test]
fn a_place_that_is_no_repository_is_left_alone() {
    let directory = TempDir::new().unwrap();
    let server = Server::in_test_mode();
    let missing = directory.path().join("missing");
    let backups = Backups::of(&server, &missing);
    for action in ["list", "verify"] {
        let said = backups.fails(4, action, &[]);
        assert!(said.contains("no repository"), "{said}");
    }
    assert!(!missing.exists());
    let other = directory.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("letter"), "dear").unwrap();
    let backups = Backups::of(&server, &other);
    let said = backups.fails(1, "create", &[]);
    assert!(said.contains("other things"), "{said}");
}

#[test]
fn without_its_key_an_encrypted_repository_tells_nothing() {
    let directory = TempDir::new().unwrap();
    let (data, repository) = (directory.path().join("data"), directory.path().join("b"));
    let server = Server::on(&data, &SMALL_PARTS);
    let token = server.client().create_namespace("secret-tenant");
    let secret = "a-word-that-nobody-may-read";
    server
        .client_with(&token)
        .write("s-1", &json!({"word": secret}));
    let key = |name: &str, digits: &str| {
        let file = directory.path().join(name);
        fs::write(&file, format!("{digits}\n")).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (right, wrong) = (
        key("right", &"5e".repeat(32)),
        key("wrong", &"5f".repeat(32)),
    );
    let short = key("short", "5e");
    let backups = Backups::of(&server, &repository);
    let said = backups.fails(2, "create", &["--key-file", &short]);
    assert!(said.contains("64 hexadecimal digits"), "{said}");
    backups.ok("create", &["--key-file", &right]);
    let again = &backups.ok("create", &["--key-file", &right])[0];
    assert_eq!(again["writtenBytes"], 0);
    for (arguments, expected) in [
        (&[][..], "is encrypted: name its key"),
        (&["--key-file", &wrong][..], "with another key"),
    ] {
        for action in ["create", "list", "verify"] {
            let said = backups.fails(1, action, arguments);
            assert!(said.contains(expected), "{said}");
        }
    }
    for file in files(&repository) {
        let name = file.to_str().unwrap();
        assert!(!name.contains("secret"), "{name}");
        let bytes = fs::read(&file).unwrap();
        for word in [secret, "secret-tenant", "sha256"] {
            let is_there = bytes
                .windows(word.len())
                .any(|window| window == word.as_bytes());
            assert!(!is_there, "{name} has {word}");
        }
    }
    let restored = directory.path().join("restored");
    let into = [
        "--data-dir",
        restored.to_str().unwrap(),
        "--key-file",
        &right,
    ];
    assert_eq!(backups.ok("restore", &into).len(), 2);
    let copy = Server::on(&restored, &SMALL_PARTS);
    let answer = copy.client_with(&token).get("/export");
    assert!(answer.text().contains(secret));
    // A repository that is not encrypted stays so.
    let plain = directory.path().join("plain");
    let backups = Backups::of(&server, &plain);
    backups.ok("create", &[]);
    let said = backups.fails(1, "create", &["--key-file", &right]);
    assert!(said.contains("is not encrypted"), "{said}");
}

#[test]
fn a_backup_of_which_parts_are_removed_meanwhile_does_not_count() {
    let directory = TempDir::new().unwrap();
    let (data, repository) = (directory.path().join("data"), directory.path().join("b"));
    let server = Server::on(&data, &SMALL_PARTS);
    let backups = Backups::of(&server, &repository);
    let token = server.client().create_namespace("a-first");
    server.client_with(&token).write("a-1", &json!({}));
    // What is read of the other one takes seconds.
    let large = "x".repeat(100_000);
    for _ in 0..3 {
        server.client().write("account-1", &json!({"large": large}));
    }
    let mut slow = backups.command("create", &["--limit-rate", "100KiB"]);
    let slow = slow.spawn().unwrap();
    let parts = || {
        let mut parts = files(&repository.join("parts"));
        parts.retain(|part| part.extension().is_none());
        parts
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while parts().is_empty() {
        assert!(Instant::now() < deadline, "nothing is written");
        thread::sleep(Duration::from_millis(5));
    }
    fs::remove_file(&parts()[0]).unwrap();
    let output = slow.wait_with_output().unwrap();
    let said = super::errors(&output);
    assert!(
        said.contains("was removed while the backup was made"),
        "{said}"
    );
    assert!(backups.ok("list", &[]).is_empty());
    backups.ok("create", &[]);
    backups.ok("verify", &[]);
}
