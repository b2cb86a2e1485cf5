//! State: what a namespace remembers besides its events, changed by the same commits.
//!
//! ```text
//! watch      keys that a transaction must find unchanged
//! remembered the replies of transactions that have a name
//! tracking   how far writers have come in other logs
//! view       what a transaction sees and changes: staged entries over durable ones, and the way back
//! lately     the entries that a view has read lately
//! store      the durable entries: those since the last checkpoint in memory, the others in a map
//! memory     how much of it those take that are there
//! cached     the map, of which what was read lately is in memory
//! merged     several walks over entries as one
//! name       names of entries that compare fast
//! snapshot   what stands for changes that the log may forget
//! change     changes of entries as the log keeps them
//! ```
//!
//! Everything is entries, bytes under bytes in one order, so that there is one way to log, roll
//! back, checkpoint and rebuild them.

mod cached;
mod change;
mod lately;
mod memory;
mod merged;
mod name;
mod remembered;
mod snapshot;
mod store;
#[cfg(test)]
mod store_tests;
mod tracking;
mod view;
mod watch;

pub(crate) use cached::Rows;
pub(crate) use change::Changes;
pub(crate) use remembered::Remembered;
pub(crate) use snapshot::snapshot_commit;
pub(crate) use store::{Entries, STATE_END, Store};
pub(crate) use tracking::is_carried;
pub(crate) use view::{Due, Touched, View};
pub use watch::Watch;
pub(crate) use watch::Watches;
