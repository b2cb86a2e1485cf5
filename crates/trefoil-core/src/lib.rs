//! The words of Trefoil: names, events, commits, reads, queries, limits and errors.
//!
//! Everything here is a value or a pure function. There is no file, socket, clock or random number
//! in this crate; what needs one takes it as an argument.

mod both;
mod cause;
mod commit;
mod error;
mod event;
mod id;
mod json;
pub mod limits;
mod name;
mod namespace;
mod payload;
mod permission;
mod query;
mod redaction;
mod selection;
mod time;
mod touch;
mod tracking;
mod varint;

pub use both::both;
pub use cause::Cause;
pub use commit::{
    Appended, Commit, Committed, Condition, Ids, validate_conditions, validate_ids,
    validate_stream_name,
};
pub use error::{Damage, Error, Result, is_disk_full};
pub use event::{Event, EventItem, ImportedEvent, NewEvent};
pub use id::{EventId, located_position, make_event_id, parse_event_id};
pub use json::{Json, correlation_category, is_json, is_json_object};
pub use name::{cardinal_id, category, group_hash, in_group, stream_group_hash, stream_id};
pub use namespace::{NamespaceId, Token, TokenError};
pub use payload::Payload;
pub use permission::{Denial, Permission, Scope, Scopes};
pub use query::{Query, QueryItem};
pub use selection::{ConsumerGroup, Direction, Filter, Selection, Source, StartAt};
pub use time::Timestamp;
pub use touch::{EVENTS_TOUCHED, touch_bodies};
pub use tracking::Tracking;
pub use varint::{put_bytes, put_varint, take_bytes, take_varint};

/// The name of the namespace that exists from the start and whose token administers the others.
pub const DEFAULT_NAMESPACE: &str = "default";
