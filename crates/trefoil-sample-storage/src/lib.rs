//! A storage and a home that keep everything in a `Vec`: what another crate has to write to keep
//! Trefoil's data elsewhere.
//!
//! [`VecStorage`] is one namespace's log, maps and snapshot. A thread of its own appends, as a
//! storage behind a network would. [`VecHome`] is where a server's namespaces live. Both pass the
//! conformance suites.

mod home;
mod storage;

pub use home::VecHome;
pub use storage::VecStorage;
