//! State: what a namespace remembers besides its events, changed by the same commits.
//!
//! ```text
//! tracking   how far writers have come in other logs
//! view       what a transaction sees and changes: staged entries over durable ones, with savepoints
//! store      the durable entries: those since the last checkpoint in memory, the others in a map
//! change     changes of entries as the log keeps them
//! ```
//!
//! Everything is entries, bytes under bytes in one order, so that there is one way to log, roll
//! back, checkpoint and rebuild them.

mod change;
mod store;
mod tracking;
mod view;

pub(crate) use store::{Entries, STATE_END, Store};
pub(crate) use view::{Savepoint, View};
