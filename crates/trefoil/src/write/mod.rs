//! Writing: commits are queued, staged in groups, made durable with one sync per group, added to
//! the index, published, and answered.
//!
//! A caller that finds the queue without a leader leads it, or sees to it that somebody does:
//! `database/lead.rs` says who. The leader drains the queue until it is empty; there is no timer.
//!
//! ```text
//! request     what is demanded, and who asks for it; caller: how the answer gets there
//! queue       requests in order, and who leads
//! rehearsal   stages a request for show, so that the writer waits for nothing that it reads
//! writer      the leader's loop; pace: how long its groups take
//! chain       groups of large requests, staged while the one before is appended; runway: by whom
//! decide      the requests of a group, one after the other, and their answers
//! stage       decides about one request; conditions, known, execute, import, remove and clean are parts
//! overlay     what the group has staged so far, for the requests that follow
//! encoder     the group as records of the log
//! append      hands the group to the storage, and makes it visible
//! ```

mod append;
mod caller;
mod carry;
mod chain;
#[cfg(test)]
mod chain_tests;
mod changes;
mod clean;
mod conditions;
mod decide;
mod encoder;
mod execute;
mod import;
mod known;
#[cfg(test)]
mod later_tests;
mod overlay;
mod pace;
mod queue;
mod rehearsal;
mod remove;
mod request;
mod runway;
mod stage;
#[cfg(test)]
mod stage_tests;
mod staged;
#[cfg(test)]
mod tests;
pub(crate) mod transaction;
mod writer;

pub(crate) use caller::Caller;
pub(crate) use carry::carry_over;
pub(crate) use changes::{
    changes_of_commit, indexed_changes, logged_bytes, put_state, state_changes,
};
pub(crate) use conditions::check_version;
pub(crate) use execute::CheckedTransaction;
pub(crate) use import::ImportBatch;
pub(crate) use request::{Executions, Work, WriteRequest};
pub(crate) use runway::RunBeside;
pub(crate) use stage::Front;
pub(crate) use writer::{Flight, Led, Writer, freeze};
