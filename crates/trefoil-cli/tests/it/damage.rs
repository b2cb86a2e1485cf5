//! Data that is missing or damaged when the server starts: it says so, and serves what is sound.

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{ADMIN, Client, Server, binary};

/// A data directory with two namespaces of two events each, and the token of `side`.
fn stopped() -> (TempDir, String) {
    let above = TempDir::new().unwrap();
    let server = Server::on(&above.path().join("data"), &["--log-level=warn"]);
    let created = server.client().rpc(&json!(["ns.create", "side"])).ok();
    let token = created["token"].as_str().unwrap().to_owned();
    for token in [ADMIN, &token] {
        for _ in 0..2 {
            write(&server, token).ok();
        }
    }
    assert!(server.terminate().success());
    (above, token)
}

fn write(server: &Server, token: &str) -> crate::harness::Response {
    let message = json!({"type": "T", "data": {}});
    let call = json!(["stream.write", "a-1", message]);
    server.client_with(token).rpc(&call)
}

fn verify(data: &Path) -> Output {
    binary().arg("verify").arg(data).output().unwrap()
}

/// The side namespace cannot be used, and says why; the other one can.
#[track_caller]
fn assert_only_side_fails(data: &Path, token: &str, why: &str) {
    let found = verify(data);
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    let server = Server::on(data, &["--log-level=warn"]);
    let refused = write(&server, token);
    assert_eq!(refused.status, 500);
    let text = String::from_utf8_lossy(&refused.body).into_owned();
    assert!(text.contains("\"DAMAGED\""), "{text}");
    assert!(text.contains(why), "{text}");
    assert!(!text.contains("repair"), "{text}");
    write(&server, ADMIN).ok();
    assert!(server.terminate().success());
}

#[test]
fn a_namespace_that_is_missing_is_not_served_as_an_empty_one() {
    for missing in ["", "generation", "1", "1/log", "1/log/0000000001.segment"] {
        let (above, token) = stopped();
        let data = above.path().join("data");
        assert_eq!(verify(&data).status.code(), Some(0));
        let path = data.join("side").join(missing);
        match path.is_dir() {
            true => fs::remove_dir_all(&path).unwrap(),
            false => fs::remove_file(&path).unwrap(),
        }
        assert_only_side_fails(&data, &token, "missing");
        let found = String::from_utf8(verify(&data).stdout).unwrap();
        assert!(found.contains("missing"), "{missing}: {found}");
        assert!(found.contains("restore it from a backup"), "{found}");
    }
}

#[test]
fn a_flipped_bit_in_the_last_record_after_a_clean_stop_is_damage() {
    let (above, token) = stopped();
    let data = above.path().join("data");
    let path = data.join("side/1/log/0000000001.segment");
    let bytes = fs::read(&path).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[bytes[last] ^ 1], last as u64).unwrap();
    assert_only_side_fails(&data, &token, "was closed at commit 2");
    file.write_all_at(&bytes[last..=last], last as u64).unwrap();
    assert_eq!(verify(&data).status.code(), Some(0));
    let server = Server::on(&data, &["--log-level=warn"]);
    assert_eq!(write(&server, &token).ok()["globalPosition"], 3);
}

#[test]
fn damage_of_the_registry_and_of_what_is_due_is_found() {
    let (above, token) = stopped();
    let data = above.path().join("data");
    let due = data.join("default/due");
    fs::write(&due, "1763000000123 0000000000000000\n").unwrap();
    let found = verify(&data);
    assert_eq!(found.status.code(), Some(1));
    let said = String::from_utf8(found.stdout).unwrap();
    assert!(said.contains(due.to_str().unwrap()), "{said}");
    fs::remove_file(due).unwrap();
    assert_eq!(verify(&data).status.code(), Some(0));
    let meta = data.join("_meta/side.json");
    let mut bytes = fs::read(&meta).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&meta, &bytes).unwrap();
    let found = verify(&data);
    assert_eq!(found.status.code(), Some(1));
    let said = String::from_utf8(found.stdout).unwrap();
    assert!(said.contains(meta.to_str().unwrap()), "{said}");
    // The server serves the others, and says which one it does not serve.
    let server = Server::on(&data, &["--log-level=warn"]);
    write(&server, ADMIN).ok();
    assert_eq!(write(&server, &token).status, 403);
    let health = server.client().rpc(&json!(["sys.health"])).ok();
    assert_eq!(health["refusingWrites"], json!(["side"]));
    let log = server.log();
    assert!(log.contains(meta.to_str().unwrap()), "{log}");
    bytes[at] ^= 1;
    fs::write(&meta, bytes).unwrap();
    server.client().rpc(&json!(["ns.reopen", "side"])).ok();
    assert_eq!(write(&server, &token).ok()["globalPosition"], 3);
}

fn all_paths(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(all_paths(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn a_new_data_directory_is_its_owners_alone_and_an_open_one_is_warned_of() {
    let above = TempDir::new().unwrap();
    let data = above.path().join("data");
    let start = || Server::on(&data, &["--log-level=warn", "--tail-events-max=2"]);
    let server = start();
    for _ in 0..8 {
        write(&server, ADMIN).ok();
    }
    let log = server.log();
    assert!(!log.contains("chmod"), "{log}");
    assert!(server.terminate().success());
    for path in all_paths(&data) {
        let found = path.metadata().unwrap();
        assert_eq!(found.mode() & 0o077, 0, "{}", path.display());
    }
    let chmod = std::process::Command::new("chmod")
        .args(["-R", "go+rX"])
        .arg(&data)
        .status();
    assert!(chmod.unwrap().success());
    let server = start();
    let log = server.log();
    let advice = format!("chmod -R go-rwx {}", data.display());
    assert!(log.contains(&advice), "{log}");
    let lock = data.join("_meta/LOCK").metadata().unwrap();
    assert_eq!(lock.mode() & 0o077, 0, "nobody else can hold the lock");
}

/// The files of the log of `side` that end like this.
fn log_files(data: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = all_paths(&data.join("side/1/log"));
    files.retain(|path| path.extension().is_some_and(|other| other == extension));
    files.sort();
    files
}

/// Writes events of 4 KiB of which little can be compressed.
fn write_large(client: &mut Client, n_events: u64) {
    let mut random = 1_u64;
    for _ in 0..n_events {
        let mut text = String::new();
        while text.len() < 4000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            text.push_str(&format!("{random:x}"));
        }
        let message = json!({"type": "T", "data": {"text": text}});
        client.rpc(&json!(["stream.write", "a-1", message])).ok();
    }
}

#[test]
fn files_that_are_cut_short_under_a_server_cost_nobody_else() {
    const N_EVENTS: u64 = 600;
    let above = TempDir::new().unwrap();
    let data = above.path().join("data");
    let small = [
        "--log-level=warn",
        "--segment-size-max=256KiB",
        "--plain-segments=2",
    ];
    let server = Server::on(&data, &small);
    let created = server.client().rpc(&json!(["ns.create", "side"])).ok();
    let token = created["token"].as_str().unwrap().to_owned();
    write(&server, ADMIN).ok();
    write_large(&mut server.client_with(&token), N_EVENTS);
    let deadline = Instant::now() + Duration::from_secs(60);
    while log_files(&data, "compressed").len() < 3 || log_files(&data, "offsets").len() < 2 {
        assert!(Instant::now() < deadline, "nothing was compressed");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(server.terminate().success());

    let server = Server::on(&data, &small);
    let mut client = server.client_with(&token);
    let mut get = |position: u64| client.rpc(&json!(["events.get", position]));
    let (first, last) = (get(1), get(N_EVENTS));
    assert!(first.status == 200 && last.status == 200);
    let cut = [
        log_files(&data, "compressed").remove(0),
        log_files(&data, "segment").remove(0),
    ];
    for path in &cut {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    }
    let mut said = String::new();
    let mut n_read = 0;
    for position in 1..=N_EVENTS {
        let answer = get(position);
        match answer.status {
            200 => n_read += 1,
            500 => said.push_str(&String::from_utf8_lossy(&answer.body)),
            other => panic!("{other}"),
        }
    }
    assert!(n_read > N_EVENTS / 2 && n_read < N_EVENTS, "{n_read}");
    for path in &cut {
        assert!(
            said.contains(path.file_name().unwrap().to_str().unwrap()),
            "{said}"
        );
    }
    assert!(said.contains("\"DAMAGED\""), "{said}");
    let page = json!(["stream.get", "a-1", {"position": 0, "batchSize": 500}]);
    assert_eq!(client.rpc(&page).status, 500);
    write(&server, ADMIN).ok();
    assert_eq!(write(&server, &token).ok()["globalPosition"], N_EVENTS + 1);
    assert!(server.terminate().success());
    let found = verify(&data);
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    let found = String::from_utf8(found.stdout).unwrap();
    for path in &cut {
        assert!(found.contains(path.to_str().unwrap()), "{found}");
    }
}
