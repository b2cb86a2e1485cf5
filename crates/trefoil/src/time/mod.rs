//! Time: what time it is, when something is due, and who is woken for it.
//!
//! ```text
//! clock   what time it is; nothing else in the product reads a clock
//! agenda  what is to be cleaned of a database, and its deadline
//! timer   one thread that wakes each sleeper when its deadline has come
//! closed  the deadlines of namespaces that are closed
//! wake    where the deadline of a closed database is kept
//! recent  how long something took lately
//! ```
//!
//! A deadline is a time by the wall clock, in milliseconds since 1970. How long something takes is
//! measured by the steady clock.

pub(crate) mod agenda;
pub(crate) mod clock;
pub(crate) mod closed;
pub(crate) mod recent;
pub(crate) mod slowness;
pub(crate) mod timer;
pub(crate) mod wake;

/// The deadline of something that is not due at any time.
pub(crate) const NEVER: u64 = u64::MAX;
