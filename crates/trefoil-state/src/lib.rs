//! Redis data structures and their commands, as pure logic over ordered entries.
//!
//! ```text
//! command    every command: its name, its arity, what it does; one file per family
//! application  commands beside those of Redis, and what falls due: how to add them
//! keyspace   keys and what is under them: types, expiry, elements of collections, garbage
//! meta       what is remembered of a key: its type, when it expires, where its elements are
//! copy       copies of values
//! named      elements that have names
//! blocks     elements in a row, found by index and by order
//! pack       the fields of a small hash, in one entry
//! string     the bytes of strings, short and long
//! fields     when fields of hashes expire
//! cleaning   removing what is no longer there for anybody
//! survey     how many keys there are, and how many of them expire
//! layout     the names of all entries
//! meaning    what an entry is, told to people
//! space      what must be there to stand on: ordered entries, bytes under bytes
//! meter      how much memory replies take while they are made
//! reply      what a command replies, and stored: how that is kept; error: why it does not
//! ```
//!
//! Nothing here does I/O or reads a clock. The caller of a command brings the entries and the time,
//! and takes back what the command did to the entries if it fails.

mod application;
mod blocks;
mod cleaning;
mod command;
mod copy;
mod error;
mod fields;
mod garbage;
mod glob;
mod keyspace;
mod layout;
mod long_double;
mod meaning;
mod meta;
mod meter;
mod named;
mod number;
mod pack;
mod reply;
mod space;
mod stored;
mod string;
mod survey;

pub use application::{Application, HashReader, SetTimer, Timer};
pub use cleaning::{Expired, ExpiryPlace};
pub use command::{
    ArgumentReader, Call, CommandAccess, CommandSpec, Commands, Keys, index_range, string_range,
};
pub use error::{CommandError, SYNTAX};
pub use garbage::{Collected, GarbagePlace, Portion};
pub use glob::matches_glob;
pub use keyspace::{CommandMoment, Keyspace, damaged};
pub use layout::{KEY_BYTES_MAX, ROOT, STRING_BYTES_MAX};
pub use meaning::{EntryMeaning, KeyFacts};
pub use meta::{ValueKind, is_younger};
pub use meter::{Allowance, Meter};
pub use number::{format_double, parse_double, parse_integer};
pub use reply::Reply;
pub use space::{MemorySpace, Space, SpaceScan};
pub use string::{StoredString, StringDraft};
pub use survey::Survey;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
