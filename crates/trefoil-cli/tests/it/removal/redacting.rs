//! Redacted bytes are in no file after the stated time, also if the server is killed at any point.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::check_sound;
use super::search::found;
use super::secrets::{PATIENCE, SecretEvent, check_gone, check_there, wait_until_gone};
use crate::harness::{Client, SMALL_PARTS, Server, seeded};

const ROUNDS: usize = 4;
/// A redaction is followed after five seconds, so this is before, while and after that is done.
const LIFE_MILLIS: u64 = 7_000;

/// With 160 of these the first segment is full.
fn write_others(client: &mut Client, n: u64) {
    for number in 0..n {
        let text = "nobody minds this ".repeat(100);
        client.write("account-1", &json!({"n": number, "text": text}));
    }
}

/// Writes events with secrets among others: some in segments that are compressed, some in the newest.
fn write_secrets(client: &mut Client, random: &mut fastrand::Rng) -> Vec<SecretEvent> {
    let mut events = Vec::new();
    for _ in 0..8 {
        write_others(client, 30);
        events.push(SecretEvent::write(client, random));
    }
    events
}

/// Waits until something of these events is in a file of this kind.
fn wait_for_files(data: &Path, events: &[SecretEvent], extension: &str) {
    let texts: Vec<&str> = events.iter().flat_map(SecretEvent::texts).collect();
    let is_it = |(_, path): &(&str, PathBuf)| path.extension().is_some_and(|it| it == extension);
    let deadline = Instant::now() + PATIENCE;
    while !found(data, &texts).iter().any(is_it) {
        assert!(Instant::now() < deadline, "no {extension} has any of it");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn redacted_bytes_are_nowhere_whenever_the_server_is_killed() {
    let data = TempDir::new().unwrap();
    let mut random = seeded();
    let mut redacted = Vec::new();
    for round in 0..ROUNDS {
        let server = Server::on(data.path(), &SMALL_PARTS);
        let mut client = server.client();
        let events = write_secrets(&mut client, &mut random);
        check_there(data.path(), &events);
        events.iter().for_each(|event| event.redact(&mut client));
        redacted.extend(events);
        let life = Duration::from_millis(random.u64(..LIFE_MILLIS));
        // Something is written meanwhile.
        write_others(&mut client, 20);
        thread::sleep(life);
        redacted
            .iter()
            .for_each(|event| event.check_stub(&mut client));
        eprintln!("round {round}: killed {life:?} after the redaction");
        server.kill();
    }
    let server = Server::on(data.path(), &SMALL_PARTS);
    wait_until_gone(data.path(), &redacted);
    let mut client = server.client();
    redacted
        .iter()
        .for_each(|event| event.check_stub(&mut client));
    assert!(server.terminate().success());
    check_gone(data.path(), &redacted);
    check_sound(data.path());
}

#[test]
fn a_secret_is_found_in_every_kind_of_file_before_it_is_redacted() {
    let data = TempDir::new().unwrap();
    let mut random = seeded();
    let server = Server::on(data.path(), &SMALL_PARTS);
    let mut client = server.client();
    let events = write_secrets(&mut client, &mut random);
    write_others(&mut client, 40);
    let newest = [SecretEvent::write(&mut client, &mut random)];
    wait_for_files(data.path(), &events, "compressed");
    wait_for_files(data.path(), &newest, "segment");
    // Closed, the index has everything.
    assert!(server.terminate().success());
    check_there(data.path(), &events);
    check_there(data.path(), &newest);
    let maps = data.path().join("default/1/maps");
    let in_index = events
        .iter()
        .flat_map(|event| [event.texts()[2], event.texts()[3]]);
    let in_index: Vec<&str> = in_index.collect();
    assert_eq!(found(&maps, &in_index).len(), in_index.len());
}
