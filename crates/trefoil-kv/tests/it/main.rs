//! Tests of the crate at its public interface.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod memory;
mod storage;

// What the library's own tests compare databases with.
#[path = "../../../trefoil/tests/it/model/mod.rs"]
mod model;
#[path = "../../../trefoil/tests/it/property/mod.rs"]
mod property;
#[path = "../../../trefoil/tests/it/waiting.rs"]
mod waiting;
