//! Removing events: a stream is truncated or deleted by a commit, and what is removed is hidden from
//! everybody from then on.
//!
//! ```text
//! entries   what is known of removals, as entries of the state
//! hidden    what a read asks about each event that it finds
//! stream    where a stream ends and how many events it has, whatever the index still knows of it
//! resolve   what a request to remove something comes to
//! truncate  the calls of the database
//! dropping  removed events go from the log for good
//! dropping_again what a restored log has of them is noted again
//! redaction what single events say is removed, and a stub stays
//! again     redactions that others know, and what they come to in a restored namespace
//! edits     how often the log was edited because of all this
//! upkeep    the work that this leaves behind, and when it is due
//! recount   how many of them the index has lost
//! retention policies by which the background removes events
//! ```
//!
//! A stream has a *floor*: the first global position that it keeps. All its events before that are
//! removed. The highest floor of a namespace is in memory: nothing needs to be asked of an event at or
//! after it.

mod again;
mod dropping;
mod dropping_again;
#[cfg(test)]
mod dropping_tests;
mod edits;
mod entries;
mod hidden;
mod recount;
mod redaction;
#[cfg(test)]
mod redaction_tests;
mod resolve;
mod retention;
mod stream;
mod truncate;
mod upkeep;

pub use again::KnownRedaction;
pub(crate) use again::known_redactions;
pub(crate) use dropping::DroppedStream;
pub(crate) use edits::log_edits;
pub(crate) use entries::{
    RemovedCounts, StreamRemoval, TOTAL, highest_floor, is_entry, is_of_events,
    removed_in_category, removed_in_total, stream_removal, subject_of_entry,
};
pub(crate) use hidden::HiddenEvents;
pub(crate) use recount::LostEvents;
pub(crate) use redaction::{
    PendingRedactions, Redaction, RedactionWork, all_redactions, is_redaction, no_event,
};
pub(crate) use resolve::RemovalWork;
pub(crate) use retention::{KnownPolicies, PolicyWork, RetentionWork};
pub use retention::{RetentionPolicy, RetentionTarget};
pub(crate) use stream::{n_kept, true_end};
pub use truncate::{RemoveBefore, Truncated};
pub(crate) use upkeep::RemovalUpkeep;
