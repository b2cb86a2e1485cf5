//! Trefoil on an ordered key-value store with one fenced writer, and objects beside it.
//!
//! [`contract`] says what an engine must do. [`memory`] is one in memory.

pub mod contract;
pub mod memory;
