//! A database in a directory agrees with the model, whatever is done with it.

use tempfile::TempDir;
use trefoil::{Database, Options};

use crate::property::{Open, check};

fn directory() -> Open {
    let directory = TempDir::new().unwrap();
    Box::new(move |options| Database::open(directory.path(), options))
}

/// Everything small, so that moves of the tail, merges, rotation and compression happen all the
/// time and reads cross all of them.
#[test]
fn a_database_with_tiny_parts_agrees_with_the_model() {
    let options = Options::default()
        .with_tail_events_max(8)
        .with_segment_bytes_max(4096)
        .with_plain_segments(1);
    check(directory, &options, 200, 160);
}

/// The parts as they are in production: everything is in the tail and in one segment.
#[test]
fn a_database_with_default_parts_agrees_with_the_model() {
    check(directory, &Options::default(), 80, 120);
}
