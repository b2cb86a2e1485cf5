//! The contract of storages.

use trefoil_kv::contract::KvLimits;
use trefoil_kv::memory::MemoryOptions;
use trefoil_storage::conformance::{check, check_reopened};

use super::{Place, TINY};

fn conforms(place: &Place) {
    check(&place.open());
    check_reopened(&place.open());
    // A machine without a cache has everything, too.
    let other = tempfile::tempdir().unwrap();
    let storage = place.open_in(other.path()).unwrap();
    trefoil_storage::Storage::end(&storage);
    assert_eq!(trefoil_storage::Storage::end(&storage).commit, 9);
}

#[test]
fn it_keeps_the_contract() {
    conforms(&Place::new());
}

#[test]
fn it_keeps_the_contract_if_everything_is_split() {
    conforms(&Place::tiny());
}

#[test]
fn it_keeps_the_contract_with_values_as_long_as_batches() {
    let limits = KvLimits {
        value_bytes: 4096,
        batch_bytes: 4096,
        ..TINY
    };
    conforms(&Place::with(MemoryOptions {
        limits,
        ..MemoryOptions::default()
    }));
}
