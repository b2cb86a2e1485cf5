//! Objects that were changed or deleted by somebody else: an error that says so and names what is
//! damaged, never fewer events than there were.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Storage;
use super::world::World;

const EVENTS: usize = 40;

/// Every file below a directory whose path contains `part`, in order.
fn objects(directory: &Path, part: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(objects(&path, part));
        } else if path.to_str().unwrap().contains(part) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn garble(object: &Path) {
    let mut bytes = std::fs::read(object).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(object, bytes).unwrap();
}

fn delete(object: &Path) {
    std::fs::remove_file(object).unwrap();
}

/// Does something to the object in the middle of those that have `part` in their path, and reads.
#[track_caller]
fn check(part: &str, damage: fn(&Path), expected: &str) {
    let storage = Storage::in_a_directory();
    let world = World::start(&storage);
    let mut client = world.server().client();
    for number in 0..EVENTS {
        client.write("account-1", &json!({"number": number}));
    }
    world.stop();
    let directory = storage.url.strip_prefix("file://").unwrap();
    let objects = objects(Path::new(directory), part);
    damage(&objects[objects.len() / 2]);
    let world = World::start(&storage);
    let call = json!(["stream.get", "account-1", {"batchSize": EVENTS}]);
    let answer = world.server().client().rpc(&call);
    assert_eq!(answer.code(), "DAMAGED", "{part}: {}", answer.text());
    assert!(
        answer.text().contains(expected),
        "{part}: {}",
        answer.text()
    );
    world.kill();
}

#[test]
fn events_that_were_changed_are_damaged() {
    check("/wal/", garble, "checksum mismatch in stores/");
}

#[test]
fn events_that_were_deleted_are_damaged() {
    check("/wal/", delete, "wal truncated at wal file");
}

#[test]
fn what_belongs_to_a_namespace_is_damaged_if_it_was_changed_or_deleted() {
    check("/facts", garble, "its checksum does not match) in ns/");
    check("/facts", delete, "the namespace is missing in ns/");
    check("/own/", garble, "its checksum does not match) in ns/");
    check("/epochs/", garble, "the epoch of '");
}
