//! What the index relies on in the storage: a map that was loaded is there after every reopen,
//! whatever was dropped before.

use tempfile::TempDir;
use trefoil_storage::{LocalOptions, LocalStorage, Storage as _};

fn load(storage: &LocalStorage, name: &str) {
    let loaded = storage.load(name, &mut |sink| sink(b"key".to_vec(), name.into()));
    loaded.unwrap();
}

/// The newest map is dropped, the storage is closed, and a map of another name takes its place.
#[test]
fn a_map_survives_when_the_one_before_it_was_dropped() {
    let directory = TempDir::new().unwrap();
    let open = || LocalStorage::open(directory.path(), LocalOptions::default()).unwrap();
    let mut kept: Vec<String> = Vec::new();
    for round in 0..20 {
        let storage = open();
        for name in &kept {
            let map = storage.map(name).unwrap();
            let map = map.unwrap_or_else(|| panic!("{name} is missing in round {round}"));
            assert_eq!(map.get(b"key").unwrap().unwrap(), name.as_bytes());
        }
        for number in 0..3 {
            let name = format!("kept-{round}-{number}");
            load(&storage, &name);
            kept.push(name);
        }
        load(&storage, "given-up");
        storage.drop_map("given-up").unwrap();
    }
}
