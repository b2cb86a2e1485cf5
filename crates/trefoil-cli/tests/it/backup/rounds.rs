//! Backups under full load, round after round, with kill -9 of the server and of the backup in between:
//! whatever happens, a backup that counts can be restored, and is what the server had at its commit.
//!
//! `TREFOIL_SOAK_ROUNDS` sets how many rounds there are; `cargo xtask soak backup` runs 20.

use std::path::Path;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::load::{ARGUMENTS, check, rounds, under_load};
use super::{Backups, exported};
use crate::harness::{Server, seeded};

#[test]
fn what_is_restored_is_of_one_commit() {
    let directory = TempDir::new().unwrap();
    let (data, repository) = (directory.path().join("data"), directory.path().join("b"));
    let mut random = seeded();
    let (mut made, mut n_events) = (0, 0);
    for round in 0..rounds() {
        let server = Server::on(&data, &ARGUMENTS);
        let backups = Backups::of(&server, &repository);
        let pause = Duration::from_millis(random.u64(..400));
        let backup = under_load(&server, round, || {
            thread::sleep(Duration::from_millis(300));
            cut_off(&backups, pause, made);
            // The next one goes on from there.
            let backup = backups.ok("create", &[]).remove(0);
            made += 1;
            let mut under_way = backups.command("create", &[]).spawn().unwrap();
            thread::sleep(pause / 4);
            server.signal("KILL");
            // It fails, or it was faster.
            made += usize::from(under_way.wait().unwrap().success());
            backup
        });
        server.kill();
        assert_eq!(list(&backups), made);
        let position = backup["namespaces"][0]["position"].as_u64().unwrap();
        let server = Server::on(&data, &ARGUMENTS);
        let original = exported(&server);
        drop(server);
        let id = backup["backup"].as_str().unwrap();
        n_events = restore_and_check(&backups, directory.path(), id, position, &original);
        eprintln!("round {round}: {n_events} events");
    }
    assert!(n_events > 100 * rounds() as usize, "{n_events}");
}

/// A backup that is killed leaves nothing that counts.
fn cut_off(backups: &Backups<'_>, pause: Duration, made: usize) {
    let slow = ["--limit-rate", "64KiB"];
    let mut cut = backups.command("create", &slow).spawn().unwrap();
    thread::sleep(Duration::from_millis(100) + pause);
    cut.kill().unwrap();
    assert!(!cut.wait().unwrap().success());
    if made > 0 {
        assert_eq!(list(backups), made);
    }
}

fn list(backups: &Backups<'_>) -> usize {
    backups.ok("list", &[]).len()
}

/// Restores a backup elsewhere and compares. Returns how many events it has.
fn restore_and_check(
    backups: &Backups<'_>,
    directory: &Path,
    id: &str,
    position: u64,
    original: &[String],
) -> usize {
    let restored = directory.join(format!("restored-{id}"));
    backups.ok("verify", &["--backup", id]);
    let into = restored.to_str().unwrap();
    backups.ok("restore", &["--data-dir", into, "--backup", id]);
    let copy = Server::on(&restored, &ARGUMENTS);
    let n_events = check(&copy, position, original);
    assert!(copy.terminate().success());
    std::fs::remove_dir_all(&restored).unwrap();
    n_events
}
