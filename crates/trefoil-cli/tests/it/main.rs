//! Tests of the built binary over its real protocols.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "tests wait by the real clock")]

mod backup;
mod boxoffice;
mod cases;
mod cli;
mod clients;
mod console;
mod consumers;
mod crash;
mod damage;
mod dcb;
mod documents;
mod durability;
mod eventodb;
mod harness;
mod hostile;
mod monitoring;
mod namespaces;
#[cfg(feature = "object-storage")]
mod object_storage;
mod openapi;
mod packages;
mod python;
mod releases;
mod removal;
mod retention;
mod seats;
mod soak;
mod sse;
mod state;
mod tls;
