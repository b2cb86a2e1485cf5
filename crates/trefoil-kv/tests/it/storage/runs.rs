//! Maps that were loaded: objects, and files in a cache that may be lost or damaged.

use std::fs;
use std::path::{Path, PathBuf};

use trefoil_core::{Direction, Error};
use trefoil_kv::KvStorage;
use trefoil_kv::contract::KvEngine as _;
use trefoil_storage::Storage as _;

use super::Place;

const N_ENTRIES: u32 = 20_000;

fn load(storage: &KvStorage, name: &str) {
    let loaded = storage.load(name, &mut |sink| {
        (0..N_ENTRIES).try_for_each(|number| {
            let value = format!("{name} {number}").repeat(3);
            sink(number.to_be_bytes().to_vec(), value.into_bytes())
        })
    });
    loaded.unwrap();
}

fn check(storage: &KvStorage, name: &str) {
    let map = storage.map(name).unwrap().unwrap();
    for direction in [Direction::Forwards, Direction::Backwards] {
        let entries = map.scan(b"", b"", direction);
        let mut numbers: Vec<u32> = entries
            .map(|entry| u32::from_be_bytes(entry.unwrap().0[..].try_into().unwrap()))
            .collect();
        if direction == Direction::Backwards {
            numbers.reverse();
        }
        assert!(numbers.into_iter().eq(0..N_ENTRIES));
    }
    let value = map.get(&77_u32.to_be_bytes()).unwrap().unwrap();
    assert_eq!(value, format!("{name} 77").repeat(3));
}

/// The files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

fn objects(place: &Place) -> Vec<String> {
    place.engine.objects().list("objects/", "", 1000).unwrap()
}

#[test]
fn a_map_is_found_on_another_machine() {
    let place = Place::new();
    let storage = place.open();
    load(&storage, "one");
    load(&storage, "two");
    check(&storage, "one");
    let other = tempfile::tempdir().unwrap();
    let storage = place.open_in(other.path()).unwrap();
    assert_eq!(storage.map_names().unwrap(), ["one", "two"]);
    check(&storage, "one");
    check(&storage, "two");
    assert!(storage.usage().unwrap().map_bytes > 100_000);
}

#[test]
fn a_cached_file_that_is_missing_or_damaged_is_fetched_again() {
    let spoils: [fn(&Path); 4] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, b"").unwrap(),
        |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes.truncate(bytes.len() - 1);
            fs::write(path, bytes).unwrap();
        },
        |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes.iter_mut().for_each(|byte| *byte = 0);
            fs::write(path, bytes).unwrap();
        },
    ];
    for (number, spoil) in spoils.into_iter().enumerate() {
        let place = Place::new();
        load(&place.open(), "run");
        let found = files(place.directory.path());
        assert!(!found.is_empty());
        for path in found {
            spoil(&path);
        }
        let storage = place.open();
        check(&storage, "run");
        assert!(!files(place.directory.path()).is_empty(), "{number}");
        check(&place.open(), "run");
    }
}

#[test]
fn a_file_that_is_damaged_while_it_is_open_is_fetched_again() {
    let place = Place::new();
    let storage = place.open();
    load(&storage, "run");
    let map = storage.map("run").unwrap().unwrap();
    let mut scan = map.scan(b"", b"", Direction::Forwards);
    let first = scan.next().unwrap().unwrap().0;
    assert_eq!(first, 0_u32.to_be_bytes()[..]);
    for path in files(place.directory.path()) {
        let length = fs::metadata(&path).unwrap().len();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(0).unwrap();
        file.set_len(length).unwrap();
    }
    let rest = scan.map(|entry| u32::from_be_bytes(entry.unwrap().0[..].try_into().unwrap()));
    assert!(rest.eq(1..N_ENTRIES));
    check(&storage, "run");
}

#[test]
fn an_object_that_is_missing_or_changed_is_damage() {
    let place = Place::new();
    load(&place.open(), "run");
    let name = objects(&place).pop().unwrap();
    let (bytes, version) = place.engine.objects().get(&name).unwrap().unwrap();
    let mut changed = bytes.to_vec();
    changed[0] ^= 1;
    let objects = place.engine.objects();
    objects.replace(&name, &version, changed.into()).unwrap();
    let open = || {
        let cache = tempfile::tempdir().unwrap();
        let storage = place.open_in(cache.path()).unwrap();
        storage.map("run").map(drop)
    };
    assert!(matches!(open(), Err(Error::Damaged(_))));
    objects.delete(&name).unwrap();
    assert!(matches!(open(), Err(Error::Damaged(_))));
    objects.create(&name, bytes).unwrap();
    open().unwrap();
}

#[test]
fn a_dropped_map_leaves_nothing() {
    let place = Place::new();
    let storage = place.open();
    load(&storage, "run");
    let held = storage.map("run").unwrap().unwrap();
    assert!(!objects(&place).is_empty());
    storage.drop_map("run").unwrap();
    assert_eq!(objects(&place), [""; 0]);
    assert!(held.get(&1_u32.to_be_bytes()).unwrap().is_some());
    assert!(storage.map("run").unwrap().is_none());
    drop(held);
    assert!(files(place.directory.path()).is_empty());
    // The name can be used again, and what comes is another map.
    load(&storage, "run");
    check(&storage, "run");
}

#[test]
fn what_another_machine_cached_is_not_taken_for_a_new_map() {
    let place = Place::new();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let storage = place.open_in(one.path()).unwrap();
    load(&storage, "first");
    let storage = place.open_in(two.path()).unwrap();
    storage.drop_map("first").unwrap();
    load(&storage, "second");
    let storage = place.open_in(one.path()).unwrap();
    assert_eq!(storage.map_names().unwrap(), ["second"]);
    check(&storage, "second");
}
