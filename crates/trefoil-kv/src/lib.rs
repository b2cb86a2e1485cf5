//! Trefoil on an ordered key-value store with one fenced writer, and objects beside it.
//!
//! [`contract`] says what an engine must do, and `conformance` checks it. [`memory`] is one in
//! memory. [`KvStorage`] keeps one generation of a namespace in any of them, and [`KvHome`] all
//! namespaces of a server or a cluster.

#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod contract;
mod home;
pub mod memory;
mod storage;

pub use home::{KvHome, KvHomeOptions};
pub use storage::{KvStorage, KvStorageOptions, LogRoom, erase_generation, generations};
