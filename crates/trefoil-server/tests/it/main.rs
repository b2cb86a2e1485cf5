//! The server over real sockets. `cases` runs the text files of `tests/cases`; the other modules
//! test what a request and its answer cannot tell.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "tests wait by the real clock")]

mod application;
mod bad_input;
mod cases;
mod client;
mod connections;
mod failing_disk;
mod fidelity;
mod grpc;
mod harness;
mod http;
mod import_export;
mod nodes;
mod other_node;
mod other_storage;
mod resp;
mod sessions;
mod shutdown;
mod slow_storage;
mod state_export;
mod subscriptions;
mod tokens;
