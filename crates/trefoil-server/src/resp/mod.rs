//! Trefoil over RESP, the protocol of Redis.
//!
//! ```text
//! connection   a stream; input: requests out of its bytes; output: replies into its bytes
//! outbox       replies of all connections, which leave at the end of a turn
//! session      one client's requests, from words to replies in their order: read this first
//! profile      who the client is, and how it wants to be answered
//! read         how a command reads; pieces: long replies, made as the client takes them
//! relay        requests whose namespace is on another node
//! multi        transactions, from MULTI to EXEC; wishes: how they are to be
//! command      every command that is not about state
//! criteria     conditions and queries in words
//! parser       requests out of bytes; inline: those that people type
//! encoder      replies into bytes, in both versions of the protocol
//! failure      errors as RESP tells them
//! clients      all clients that are connected; usage: what is counted of each command
//! ```
//!
//! All requests that have arrived are carried out together: their writes share a commit group, and
//! their replies leave in one piece. What is answered is described in `docs/resp.md`.

mod clients;
mod command;
mod connection;
mod criteria;
mod encoder;
mod failure;
mod inline;
mod input;
mod metrics;
mod multi;
mod outbox;
mod output;
mod parser;
mod pieces;
mod profile;
mod read;
mod relay;
mod remembered;
mod session;
mod slow;
mod stream;
mod usage;
mod wishes;
mod words;

pub(crate) use clients::RespClients;
pub(crate) use connection::{refuse, serve};
#[cfg(test)]
pub(crate) use failure::of_error as reply_of;
pub(crate) use metrics::RespMetrics;
