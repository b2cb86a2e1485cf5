//! Tests of the engine on memory, files and S3 services.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "tests wait by the real clock")]

mod conformance;
mod costs;
mod hung;
mod killed;
mod refused;
mod services;
