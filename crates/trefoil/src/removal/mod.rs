//! Removing events: a stream is truncated or deleted by a commit, and what is removed is hidden from
//! everybody from then on.
//!
//! ```text
//! entries   what is known of removals, as entries of the state
//! hidden    what a read asks about each event that it finds
//! stream    where a stream ends and how many events it has, whatever the index still knows of it
//! resolve   what a request to remove something comes to
//! truncate  the calls of the database
//! ```
//!
//! A stream has a *floor*: the first global position that it keeps. All its events before that are
//! removed. The highest floor of a namespace is in memory: nothing needs to be asked of an event at or
//! after it.

mod entries;
mod hidden;
mod resolve;
mod stream;
mod truncate;

pub(crate) use entries::{
    RemovedCounts, StreamRemoval, TOTAL, highest_floor, is_of_events, removed_in_category,
    removed_in_total, stream_removal, subject_of_entry,
};
pub(crate) use hidden::HiddenEvents;
pub(crate) use resolve::RemovalWork;
pub(crate) use stream::{n_kept, true_end};
pub use truncate::{RemoveBefore, Truncated};
