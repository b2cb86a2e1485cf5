//! Trefoil as a library: an event database in your process.
//!
//! One durable log per namespace. Events belong to streams, streams to categories; a commit appends
//! any number of events to any number of streams, all or nothing, and is on disk before it is
//! answered.
//!
//! ```
//! use trefoil::{Commit, Database, NewEvent, Options, Read};
//!
//! # fn main() -> trefoil::Result<()> {
//! let db = Database::in_memory(&Options::default())?;
//!
//! // Two streams, one commit. It fails if somebody else has opened the account before.
//! let opened = NewEvent::new("account-1", "Opened", r#"{"owner":"Ada"}"#);
//! let logged = NewEvent::new("audit-2026", "AccountOpened", r#"{"account":1}"#);
//! let committed = db.commit(Commit::new([opened, logged]).expect_version("account-1", -1))?;
//! assert_eq!(committed.position, 2);
//!
//! for event in db.read(&Read::category("account").limit(100))? {
//!     println!("{} {}", event.position(), event.event_type());
//! }
//! assert_eq!(db.version("account-1")?, Some(0));
//! # Ok(())
//! # }
//! ```
//!
//! [`Database::open`] keeps the log in a directory. [`Namespaces`] holds many databases under one
//! directory, each behind a token of its own.

mod background;
mod database;
mod demand;
mod duty;
mod engine;
mod home;
mod index;
mod label;
mod listing;
mod namespaces;
mod options;
mod read;
mod stats;
mod subscription;
pub mod tools;
mod write;

pub use database::{Database, Info, Recovery};
pub use listing::{CategoryInfo, List, StreamInfo};
pub use namespaces::{
    NamespaceEntry, Namespaces, NamespacesOptions, NewNamespace, OpenDatabase, Settings,
};
pub use options::Options;
pub use read::Page;
pub use stats::{HistogramSnapshot, StatsSnapshot};
pub use subscription::Subscription;
pub use trefoil_core::{
    Appended, Commit, Committed, Condition, ConsumerGroup, DEFAULT_NAMESPACE, Damage, Direction,
    Error, Event, EventId, Filter, From, ImportedEvent, NamespaceId, NewEvent, Payload, Read,
    Result, Source, Timestamp, Token, TokenError, limits, parse_event_id,
};

/// The README's example is compiled and run like the one above.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
