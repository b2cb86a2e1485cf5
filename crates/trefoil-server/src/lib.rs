//! Trefoil over HTTP: the API of EventoDB, and what goes beyond it.
//!
//! ```text
//! connection   a socket, HTTP/1 or HTTP/2, its timeouts
//! service      one request: route, log, count
//! auth         whose namespace the request may touch
//! rpc          /rpc, one file per method
//! sse          /subscribe and /events
//! import       /import, and export: /export
//! ```
//!
//! The server knows namespaces and databases by their public interface only. What it answers is
//! described in `docs/http.md`.

mod auth;
mod body;
mod budget;
mod config;
mod connection;
mod error;
mod export;
mod import;
mod json;
mod limits;
mod listener;
mod metrics;
mod opened;
mod pages;
mod query;
mod reading;
mod record;
mod response;
mod rpc;
mod server;
mod service;
mod sse;

pub use config::Config;
pub use server::Server;

/// The version that the server reports.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
