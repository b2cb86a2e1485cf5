//! Writing: commits are queued, staged in groups, made durable with one sync per group, added to
//! the index, published, and answered.
//!
//! Whoever finds the queue without a leader leads it: a blocking caller on its own thread, an
//! asynchronous one by handing the lead to a background thread. The leader drains the queue until
//! it is empty; there is no timer.

mod append;
mod carry;
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
mod queue;
mod stage;
#[cfg(test)]
mod stage_tests;
mod staged;
#[cfg(test)]
mod tests;
pub(crate) mod transaction;
mod writer;

pub(crate) use carry::carry_over;
pub(crate) use changes::{logged_bytes, state_changes};
pub(crate) use conditions::check_version;
pub(crate) use execute::CheckedTransaction;
pub(crate) use import::Import;
pub(crate) use queue::{Execution, Executions, Request, Work};
pub(crate) use stage::Front;
pub(crate) use writer::{Flight, Led, Writer, freeze};
