//! Tests of the library at its public interface.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "tests wait by the real clock")]

mod asynchronous;
mod cold_disk;
mod concurrent;
mod dcb;
mod directory;
mod examples;
mod extremes;
mod failing_disk;
mod large_commits;
mod long_streams;
mod model;
mod properties;
mod property;
mod removal;
mod removal_copies;
mod retention;
mod retention_space;
mod snapshots;
mod state;
mod storage;
mod switches;
mod tracking;
mod waiting;
mod wakes;

use std::path::Path;
use std::sync::Arc;

use trefoil::home::{Claim, LocalHome};

/// Claims the namespace in a directory, for the tools.
fn claim(directory: &Path) -> Arc<dyn Claim> {
    LocalHome::claim_existing(directory).unwrap()
}
