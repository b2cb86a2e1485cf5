//! Backups of an object storage, and backups that are kept in one.

use std::process::{Command, Output};

use serde_json::Value as Json;
use tempfile::TempDir;

use super::Storage;
use super::tools::make_a_snapshot;
use super::world::World;
use crate::harness::{ADMIN, binary};

/// `trefoil backup ACTION` on a repository in a storage.
fn backup(repository: &Storage, place: &TempDir, port: Option<u16>) -> Command {
    let mut command = binary();
    command
        .envs(&repository.variables)
        .current_dir(place.path())
        .arg("backup");
    if let Some(port) = port {
        command
            .env("TREFOIL_URL", format!("http://127.0.0.1:{port}"))
            .env("TREFOIL_TOKEN", ADMIN);
    }
    command
}

#[track_caller]
fn done(output: &Output) -> Vec<Json> {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// A storage is backed up while it is served and when it is not, and restored to another one.
fn all_of_it(repository: &Storage) {
    let place = TempDir::new().unwrap();
    let (storage, target) = (Storage::in_a_directory(), Storage::in_a_directory());
    let url = repository.url.as_str();
    let world = World::start(&storage);
    let written = world.write();
    make_a_snapshot(world.server());
    let create = |port: Option<u16>, arguments: &[&str]| {
        let mut command = backup(repository, &place, port);
        command.args(["create", url, "--json"]).args(arguments);
        done(&command.output().unwrap()).remove(0)
    };
    let port = Some(world.server().port);
    let first = create(port, &[]);
    assert_eq!(first["namespaces"].as_array().unwrap().len(), 2, "{first}");
    assert_eq!(create(port, &[])["writtenBytes"], 0);
    world.stop();
    create(None, &["--storage", &storage.url]);

    let run = |arguments: &[&str]| {
        let mut command = backup(repository, &place, None);
        command.arg(arguments[0]).arg(url).arg("--json");
        done(&command.args(&arguments[1..]).output().unwrap())
    };
    assert_eq!(run(&["list"]).len(), 3);
    assert_eq!(run(&["prune", "--keep", "1"])[0]["removed"], 2);
    assert_eq!(run(&["verify"]).len(), 2);
    assert_eq!(run(&["restore", "--storage", &target.url]).len(), 2);
    let world = World::start(&target);
    world.check(&written);
    world.stop();
}

#[test]
fn backups_are_kept_in_files() {
    all_of_it(&Storage::in_a_directory());
}

#[test]
fn backups_are_kept_on_s3() {
    if let Some(repository) = Storage::on_s3() {
        all_of_it(&repository);
    }
}
