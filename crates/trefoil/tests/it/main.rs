//! Tests of the library at its public interface.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "tests wait by the real clock")]

mod asynchronous;
mod concurrent;
mod dcb;
mod directory;
mod extremes;
mod failing_disk;
mod large_commits;
mod long_streams;
mod model;
mod property;
mod snapshots;
mod state;
mod storage;
mod tracking;
mod waiting;
