//! Trefoil over HTTP (the API of EventoDB, and what goes beyond it), over gRPC (the API of UmaDB)
//! and over RESP (the protocol of Redis).
//!
//! ```text
//! stream       a socket, perhaps behind TLS
//! tls          the certificate of the listeners
//! connection   a stream, HTTP/1 or HTTP/2, its timeouts
//! connections  who is connected, and who has to make room
//! threads      the threads that serve gRPC and RESP
//! peers        the other nodes of a cluster
//! budget       the memory for all clients
//! service      one request: route, log, count
//! web          which web pages may send it, and read the answer
//! auth         whose namespace the request may touch
//! console      /, the web console
//! rpc          /rpc, one file per method
//! dcb          /dcb/read and /dcb/append
//! sse          /subscribe and /events
//! subscriptions  who follows what, over any protocol
//! import       /import, and export: /export
//! grpc         everything over gRPC
//! resp         everything over RESP
//! ```
//!
//! The server knows namespaces and databases by their public interface only. What it answers is
//! described in `docs/http.md`, `docs/grpc.md` and `docs/resp.md`.

mod archive;
mod auth;
mod backup;
mod body;
mod budget;
mod config;
mod connection;
mod connections;
mod console;
mod criteria;
mod dcb;
mod error;
mod export;
mod grpc;
mod import;
mod json;
mod limits;
mod listener;
mod memory;
mod metrics;
mod need;
mod new_event;
mod openapi;
mod openings;
mod pages;
mod panics;
mod peers;
mod permit;
mod query;
mod reading;
mod ready;
mod record;
mod reply_memory;
mod requests;
mod resp;
mod response;
mod rpc;
mod seldom;
mod served_file;
mod server;
mod service;
mod sse;
mod state_record;
mod stream;
mod strict;
mod subscriptions;
mod threads;
mod tls;
mod visits;
mod web;

pub use archive::ArchiveProgress;
pub use config::{Config, GrpcConfig, PeersConfig, RespConfig, ShownSetting};
pub use limits::{CLIENT_MEMORY_MIN, CONNECTION_THREADS_MAX};
pub use memory::memory_limit;
pub use server::Server;
pub use tls::Tls;
pub use web::Web;

/// The version that the server reports.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
