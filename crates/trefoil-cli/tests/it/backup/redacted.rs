//! Redactions in archives and in what is restored: the bytes are nowhere in an archive after the stated time,
//! and they do not come back with an old backup if somebody knows of the redaction.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use serde_json::json;
use tempfile::TempDir;

use super::archive::{archiving, catch_up};
use super::{Backups, errors};
use crate::harness::{Client, SMALL_PARTS, Server, seeded};
use crate::removal::secrets::{SecretEvent, check_gone, check_there, wait_until_gone};

fn write_secrets(client: &mut Client, random: &mut Rng, n: usize) -> Vec<SecretEvent> {
    let write = |_| {
        client.write("account-1", &json!({"text": "nobody minds this"}));
        SecretEvent::write(client, random)
    };
    (0..n).map(write).collect()
}

fn n_lines(archive: &Path) -> usize {
    // The entries are there, too.
    fs::read_dir(archive.join("archive/default"))
        .unwrap()
        .count()
        - 1
}

#[test]
fn redactions_reach_every_log_of_an_archive_after_an_outage_and_a_crash() {
    let directory = TempDir::new().unwrap();
    let (data, archive) = (directory.path().join("data"), directory.path().join("a"));
    let earlier = directory.path().join("earlier");
    let mut random = seeded();
    let server = archiving(&data, &archive, &SMALL_PARTS);
    let backups = Backups::of(&server, &archive);
    let mut redacted = write_secrets(&mut server.client(), &mut random, 4);
    let position = redacted.last().unwrap().position;
    catch_up(&server);
    let kept = write_secrets(&mut server.client(), &mut random, 3);
    catch_up(&server);
    assert!(server.terminate().success());
    // The same events are in two logs: the namespace goes on from an earlier point.
    let point = position.to_string();
    let into = [
        "--data-dir",
        earlier.to_str().unwrap(),
        "--to-position",
        &point,
    ];
    backups.ok(
        "restore",
        &[&into[..], &["--namespace", "default"]].concat(),
    );
    let server = archiving(&earlier, &archive, &SMALL_PARTS);
    let mut client = server.client();
    redacted.extend(write_secrets(&mut client, &mut random, 3));
    catch_up(&server);
    assert_eq!(n_lines(&archive), 2);
    check_there(&archive, &redacted);
    // Nothing can be written there when the events are redacted, and then the server is killed.
    let away = directory.path().join("away");
    fs::rename(&archive, &away).unwrap();
    fs::write(&archive, "").unwrap();
    redacted.iter().for_each(|event| event.redact(&mut client));
    wait_until_gone(&earlier, &redacted);
    server.kill();
    fs::remove_file(&archive).unwrap();
    fs::rename(&away, &archive).unwrap();
    // What a write that was cut off has left goes as well.
    let line = fs::read_dir(archive.join("archive/default")).unwrap();
    let line = line.map(|entry| entry.unwrap().path()).min().unwrap();
    let partial = line.join("pieces/cut-off.partial");
    fs::write(&partial, redacted[0].texts()[0]).unwrap();
    let server = archiving(&earlier, &archive, &SMALL_PARTS);
    wait_until_gone(&archive, &redacted);
    assert!(!partial.exists());
    check_there(&archive, &kept);
    server.client().write("account-1", &json!({}));
    catch_up(&server);
    assert_eq!(n_lines(&archive), 2, "it is the same log");
    backups.ok("verify", &["--archive"]);
    assert!(server.terminate().success());
    let restored = directory.path().join("restored");
    let told = backups.restore(&restored);
    assert_eq!(told[0]["redacted"], 0, "{told:?}");
    let copy = Server::on(&restored, &SMALL_PARTS);
    let mut client = copy.client();
    redacted
        .iter()
        .for_each(|event| event.check_stub(&mut client));
}

#[test]
fn redacted_bytes_are_nowhere_in_an_archive_whenever_the_server_is_killed() {
    let directory = TempDir::new().unwrap();
    let (data, archive) = (directory.path().join("data"), directory.path().join("a"));
    let mut random = seeded();
    let mut redacted = Vec::new();
    for round in 0..3 {
        let server = archiving(&data, &archive, &SMALL_PARTS);
        let mut client = server.client();
        let events = write_secrets(&mut client, &mut random, 6);
        catch_up(&server);
        check_there(&archive, &events);
        events.iter().for_each(|event| event.redact(&mut client));
        redacted.extend(events);
        let life = Duration::from_millis(random.u64(..4000));
        thread::sleep(life);
        eprintln!("round {round}: killed {life:?} after the redaction");
        server.kill();
    }
    let server = archiving(&data, &archive, &SMALL_PARTS);
    wait_until_gone(&archive, &redacted);
    wait_until_gone(&data, &redacted);
    assert_eq!(n_lines(&archive), 1);
    let backups = Backups::of(&server, &archive);
    backups.ok("verify", &["--archive"]);
    assert!(server.terminate().success());
    check_gone(&archive, &redacted);
    check_gone(&data, &redacted);
}

/// Writes so much that a backup has parts which the next one shares, and that there is an index, by which the
/// namespace is known again.
fn write_much(client: &mut Client) {
    for _ in 0..70 {
        client.write("account-1", &json!({}));
    }
    for _ in 0..12 {
        client.write("account-1", &json!({"text": "x".repeat(400_000)}));
    }
}

#[test]
fn what_is_restored_is_redacted_again_if_somebody_knows() {
    let directory = TempDir::new().unwrap();
    let (data, repository) = (directory.path().join("data"), directory.path().join("b"));
    let mut random = seeded();
    let server = Server::on(&data, &SMALL_PARTS);
    let backups = Backups::of(&server, &repository);
    let mut client = server.client();
    let redacted = write_secrets(&mut client, &mut random, 3);
    write_much(&mut client);
    let before = backups.ok("create", &[]).remove(0);
    let before = ["--backup", before["backup"].as_str().unwrap()];
    redacted.iter().for_each(|event| event.redact(&mut client));
    wait_until_gone(&data, &redacted);
    backups.ok("create", &[]);
    assert!(server.terminate().success());
    check_there(&repository, &redacted);
    let into = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let restore = |name: &str, arguments: &[&str]| {
        let into = into(name);
        let told = backups.ok("restore", &[&["--data-dir", &into], arguments].concat());
        let until = told[0]["redactionsKnownUntil"].is_string();
        (
            told[0]["redacted"].clone(),
            told[0]["knowsLaterRedactions"].clone(),
            until,
        )
    };

    // The newer backup has the log as it is now.
    assert_eq!(restore("newer", &[]), (json!(0), json!(false), false));
    check_gone(&directory.path().join("newer"), &redacted);
    // Nobody knows.
    let output = backups.run(
        "restore",
        &[&["--data-dir", &into("older")], &before[..]].concat(),
    );
    assert!(output.status.success(), "{}", errors(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("later redactions are not known"), "{said}");
    check_there(&directory.path().join("older"), &redacted);
    // The namespace beside which it is restored knows, and so does the one that is replaced.
    let beside = ["--namespace", "default", "--as", "beside"];
    let beside = [&before[..], &beside].concat();
    assert_eq!(restore("data", &beside), (json!(3), json!(true), false));
    check_gone(&data, &redacted);
    let replace = [&before[..], &["--replace", "--yes"]].concat();
    assert_eq!(restore("data", &replace), (json!(3), json!(true), false));
    check_gone(&data, &redacted);
    // What was restored is another namespace of the name, so it may not know all of them.
    assert_eq!(restore("data", &replace), (json!(3), json!(false), false));
    check_gone(&data, &redacted);

    // The archive knows.
    let server = archiving(&data, &repository, &SMALL_PARTS);
    let mut client = server.client();
    redacted
        .iter()
        .for_each(|event| event.check_stub(&mut client));
    catch_up(&server);
    assert!(server.terminate().success());
    assert_eq!(restore("archived", &before), (json!(3), json!(false), true));
    let archived = directory.path().join("archived");
    check_gone(&archived, &redacted);
    let copy = Server::on(&archived, &SMALL_PARTS);
    let mut client = copy.client();
    redacted
        .iter()
        .for_each(|event| event.check_stub(&mut client));
    // Without the older backup nothing is left of them.
    check_there(&repository, &redacted);
    backups.ok("prune", &["--keep", "1"]);
    check_gone(&repository, &redacted);
}
