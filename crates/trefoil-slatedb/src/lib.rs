//! Trefoil on object stores, by SlateDB.
//!
//! [`SlateEngine`] is a [`KvEngine`](trefoil_kv::contract::KvEngine) at a [`StoreUrl`]: a bucket of an S3
//! service, a directory, or memory. Below the URL, `objects/` has the objects, `stores/` one SlateDB
//! for each store, and `epochs/` who may write to it.
//!
//! - `connect/`: URLs, and the client of each kind of store
//! - `objects/`: whole pieces of data, written on a condition
//! - `store/`: an open SlateDB: its settings, its one writer, its reads
//! - `engine.rs`: the runtime that all of it runs on

mod connect;
mod engine;
mod error;
mod objects;
mod options;
mod store;

pub use connect::{BucketService, ConnectError, StoreUrl};
pub use engine::SlateEngine;
pub use options::StoreOptions;
