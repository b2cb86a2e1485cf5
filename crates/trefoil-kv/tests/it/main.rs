//! Tests of the crate at its public interface.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod memory;
