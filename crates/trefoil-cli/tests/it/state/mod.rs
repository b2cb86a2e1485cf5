//! State over RESP, with real clients and against a real Redis.

mod cases;
mod clients;
mod crash;
mod described;
mod differential;
pub(crate) mod dump;
mod lookups;
mod redis;
