//! Retention: policies say how long and how many events are kept, of a stream or of each stream of a
//! category, and the background removes the others.
//!
//! ```text
//! policy    what a policy says, and the calls of the database
//! entries   policies as entries of the state, and how far they are applied
//! pass      when policies are applied, and in which steps
//! sweep     which events are beyond a policy
//! ```
//!
//! What is beyond a policy is removed as by a truncation: a step of a pass is one commit that raises the
//! floors of some streams. No pass looks at what has not changed. Of a category it is known up to which
//! position its events are too old, and up to which they were counted.

mod entries;
mod pass;
#[cfg(test)]
mod pass_tests;
mod policy;
mod sweep;

pub(crate) use entries::KnownPolicies;
pub(super) use entries::is_policy;
pub(super) use pass::RetentionUpkeep;
pub(crate) use pass::RetentionWork;
pub(crate) use policy::PolicyWork;
pub use policy::{RetentionPolicy, RetentionTarget};
