//! Trefoil as a library: an event database in your process.
//!
//! One durable log per namespace. Events belong to streams, streams to categories; a commit appends
//! any number of events to any number of streams, all or nothing, and is on disk before it is
//! answered.
//!
//! ```
//! use trefoil::{Commit, Database, NewEvent, Options, Selection};
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
//! for event in db.read(&Selection::category("account").limit(100))? {
//!     println!("{} {}", event.position(), event.event_type());
//! }
//! assert_eq!(db.version("account-1")?, Some(0));
//! # Ok(())
//! # }
//! ```
//!
//! Events also have tags. A decision that depends on some of them reads those, and commits on the
//! condition that nothing new has come to them:
//!
//! ```
//! use trefoil::{Commit, Database, Error, NewEvent, Options, Query, QueryItem, Selection};
//!
//! # fn main() -> trefoil::Result<()> {
//! # let db = Database::in_memory(&Options::default())?;
//! let seats = Query::from(QueryItem::any().of_type("SeatTaken").tagged("show:7"))
//!     .or(QueryItem::any().of_type("SeatTaken").tagged("guest:ada"));
//! let (taken, head) = db.read_with_head(&Selection::query(seats.clone()))?;
//! assert!(taken.is_empty());
//!
//! let seat = NewEvent::without_stream("SeatTaken", "{}")
//!     .with_tag("show:7")
//!     .with_tag("guest:ada");
//! let take = Commit::new([seat]).fail_if_new(seats, head);
//! db.commit(take.clone())?;
//! assert!(matches!(db.commit(take), Err(Error::ConditionFailed { position: 1, .. })));
//! # Ok(())
//! # }
//! ```
//!
//! [`Database::open`] keeps the log in a directory. [`Namespaces`] holds many databases under one
//! directory, each behind a token of its own.

pub mod application;
pub mod archive;
mod background;
pub mod backup;
mod database;
pub mod home;
mod index;
mod namespaces;
mod read;
mod removal;
mod state;
mod stats;
mod time;
pub mod tools;
mod transfer;
mod write;

pub use database::host::{Host, ServingThread, TurnWork};
pub use database::options::Options;
pub use database::{Database, Info, Recovery, Replacement};
pub use namespaces::{
    AuditActor, AuditRecord, AuditedAction, Grant, LogState, MAIN_TOKEN, MemoryUse, NamespaceEntry,
    NamespaceSettings, Namespaces, NamespacesOptions, NewNamespace, NewToken, OpenDatabase, Quota,
    QuotaKeeper, Quotas, SERVER_TOKEN, TokenEntry, TokenReview,
};
pub use read::Page;
pub use read::explain::{ExplainedItem, ExplainedTerm, Explanation, Role, Strategy};
pub use read::listing::{CategoryInfo, List, NameInfo, StreamInfo};
pub use read::look::StateSnapshot;
pub use read::stored_commit::StoredCommit;
pub use read::subscription::{Subscription, SubscriptionProgress};
pub use removal::{KnownRedaction, RemoveBefore, RetentionPolicy, RetentionTarget, Truncated};
pub use state::{ChangePage, ChangedEntry, EntryEdit, StateChange, Watch, Word};
pub use stats::{
    BackgroundWork, Histogram, HistogramSnapshot, RequestStage, StatsSnapshot, Striped, TotalStats,
    Trace, WorkStats,
};
pub use time::clock::{Clock, ManualTime, TimeSource};
pub use transfer::{StateExport, StateLine};
pub use trefoil_core::{
    Appended, Cause, Commit, Committed, Condition, ConsumerGroup, DEFAULT_NAMESPACE, Damage,
    Denial, Direction, Error, Event, EventId, Filter, Ids, ImportedEvent, Json, NamespaceId,
    NewEvent, Payload, Permission, Query, QueryItem, Result, Scope, Scopes, Selection, Source,
    StartAt, Timestamp, Token, TokenError, Tracking, category, limits, parse_event_id,
};
pub use trefoil_seats as seats;
pub use trefoil_state::{
    Allowance, Call, CommandAccess, CommandError, CommandSpec, Commands, EntryMeaning, KeyFacts,
    Keys, Meter, Reply, SetTimer, Survey, ValueKind,
};
pub use write::transaction::{Executed, Guard, Step, Transaction, Wanted};

/// How Redis reads and writes words, for a server that speaks its protocol.
pub mod redis {
    pub use trefoil_state::{
        format_double, index_range, matches_glob, parse_integer, string_range,
    };
}

/// The examples of the README and of the page about the library are compiled and run like those above.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/library.md")]
struct Manual;
