//! Clients that are wrong, huge, slow or gone: each gets the right error or is dropped, the others
//! are answered, and memory stays bounded.

mod connections;
mod long_names;
mod memory;
mod requests;
mod transactions;

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::Server;

/// How much more memory than before the server may hold after and during an attack.
const GROWTH_KIB_MAX: u64 = 512 << 10;

/// The server answers somebody else, and soon.
#[track_caller]
fn assert_alive(server: &Server) {
    let started = Instant::now();
    let mut client = server.client();
    assert_eq!(client.get("/health").status, 200);
    client.write("alive-1", &json!({}));
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "answered after {:?}",
        started.elapsed()
    );
}
