//! Where a namespace keeps its bytes: an append-only log and ordered maps.
//!
//! [`Storage`] is the contract. It knows nothing of events: the log holds opaque items under dense
//! positions, the maps hold bytes under bytes, a snapshot stands for changes that the log forgets. [`MemoryStorage`] keeps everything in memory,
//! [`LocalStorage`] in segment files and fjall. With the feature `testing` there are
//! `conformance`, which every implementation passes, and a disk that fails.

#[cfg(not(target_os = "linux"))]
compile_error!("Trefoil runs on Linux only");

mod cache;
mod completion;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod contract;
mod edits;
mod file_cache;
pub mod local;
mod memory;
mod range;

/// What implementations of [`Storage`] share.
pub mod parts {
    pub use crate::contract::{check_key, dropped, no_item, no_such_snapshot};
    pub use crate::edits::Edits;
    pub use crate::local::{LoadedMaps, check_name};
}

pub use cache::BlockCache;
pub use completion::{Completer, Completion, Pending};
pub use contract::{
    Batch, Entry, Fill, FindMap, Group, GroupLimits, Items, KEY_BYTES_MAX, Label, LogEnd, Map,
    ReadReach, Record, Scan, Sink, Snapshot, Storage, StorageWork, StoredItem, Upkeep, Usage,
    VisitEntry, VisitItem, VisitLabel,
};
pub use local::{LocalOptions, LocalStorage, Stopwatch};
pub use memory::MemoryStorage;
