//! State: what a namespace remembers besides its events, changed by the same commits.
//!
//! ```text
//! words          commands written as words
//! watch          keys that a transaction must find unchanged
//! stored_replies the replies of transactions that have a name
//! tracking       how far writers have come in other logs
//! view           what a transaction sees and changes: staged entries over durable ones, and the way back
//! reading        what a command sees that only reads: durable entries
//! staged         the entries that a view has staged
//! recent_reads   the last few entries that a view has read
//! store          the durable entries: those since the last checkpoint in memory, the others in a map
//! memory         how much memory the entries since the last checkpoint take
//! read_cache     the entries of the map that were read recently, in memory
//! merged_scan    several scans over entries as one
//! tree           entries in order, of which a copy costs nothing
//! snapshot       what replaces changes that the log may drop
//! change         changes of entries as the log keeps them
//! account        what a commit changed, for people
//! ```
//!
//! Everything is entries, bytes under bytes in one order, so that there is one way to log, roll
//! back, checkpoint and rebuild them.

mod account;
mod change;
mod memory;
mod merged_scan;
mod read_cache;
mod reading;
mod recent_reads;
mod snapshot;
mod staged;
mod store;
#[cfg(test)]
mod store_tests;
mod stored_replies;
mod tracking;
mod tree;
mod view;
mod watch;
mod words;

pub(crate) use account::page as change_page;
pub use account::{ChangePage, ChangedEntry, EntryEdit, StateChange};
pub(crate) use change::Changes;
pub(crate) use read_cache::ReadCache;
pub(crate) use reading::DurableView;
pub(crate) use snapshot::snapshot_commit;
pub(crate) use store::{ChangedEntries, STATE_END, StateStore, StoreReader};
pub(crate) use stored_replies::StoredReplies;
pub(crate) use tracking::{is_carried, trackings};
pub(crate) use view::{ToClean, TouchedKeys, View};
pub use watch::Watch;
pub(crate) use watch::Watches;
pub use words::Word;
