//! The sample does what every storage and every home must do.

use trefoil_sample_storage::{VecHome, VecStorage};

#[test]
fn the_storage_keeps_the_contract() {
    let storage = VecStorage::default();
    trefoil_storage::conformance::check(&storage);
    trefoil_storage::conformance::check_reopened(&storage.reopen());
}

#[test]
fn the_home_keeps_the_contract() {
    let home = VecHome::default();
    trefoil::home::conformance::check(&home);
    trefoil::home::conformance::check_reopened(&home);
}
