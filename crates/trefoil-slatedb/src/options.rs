//! What can be chosen about a store.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How a [`SlateEngine`](crate::SlateEngine) works.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Where blocks that were read are kept on this machine, besides memory. What is there may be
    /// deleted while nothing runs.
    pub cache_directory: Option<PathBuf>,
    /// How much memory keeps blocks that were read, for all stores together.
    pub cache_memory: usize,
    /// How much of the disk keeps them, if there is a directory for that.
    pub cache_disk: usize,
    /// How long after a write to a store the next one to it may begin. Commits that come meanwhile are
    /// written together: fewer requests, and each commit waits longer.
    pub write_spacing: Duration,
    /// How long a write may take. After that it is not known whether it happened, and the store is
    /// opened again.
    pub write_deadline: Duration,
    /// How long a read, an opening, or a call for an object may take.
    pub read_deadline: Duration,
    /// Variables, such as `AWS_ENDPOINT_URL`, that count instead of those of the environment.
    pub variables: BTreeMap<String, String>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            cache_directory: None,
            cache_memory: 64 << 20,
            cache_disk: 4 << 30,
            write_spacing: Duration::ZERO,
            write_deadline: Duration::from_secs(15),
            read_deadline: Duration::from_secs(30),
            variables: BTreeMap::new(),
        }
    }
}
