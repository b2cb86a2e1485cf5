//! Trefoil over RESP, the protocol of Redis.
//!
//! ```text
//! threads      what runs the connections
//! connection   a socket: requests in, replies out
//! parser       requests out of bytes; inline: those that people type
//! encoder      replies into bytes, in both versions of the protocol
//! output       replies on their way to a client
//! session      one client: who it is, what it has begun
//! dispatch     what becomes of a request
//! pending      requests that are carried out together; weight: those that take or answer much
//! pieces       long replies, made as the client takes them
//! multi        requests that wait for EXEC; transact: EXEC and its like; wishes: how it is to be
//! criteria     conditions and queries in words
//! command      every command that is not about state
//! clients      everybody who is connected; usage: what is counted of each command
//! failure      errors as RESP tells them
//! ```
//!
//! All requests that have arrived are carried out together: their writes share a commit group, and
//! their replies leave in one piece. What is answered is described in `docs/resp.md`.

mod clients;
mod command;
mod connection;
mod criteria;
mod dispatch;
mod encoder;
mod failure;
mod inline;
mod metrics;
mod multi;
mod output;
mod parser;
mod pending;
mod pieces;
mod session;
mod threads;
mod transact;
mod usage;
mod weight;
mod wishes;
mod words;

pub(crate) use clients::Clients;
pub(crate) use connection::{refuse, serve};
pub(crate) use metrics::RespMetrics;
pub(crate) use threads::{Threads, default_threads};
