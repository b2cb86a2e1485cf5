//! A limit on the memory of another process, files in memory included: a control group.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Where control groups are, and the file of one that holds its limit: the first kind has a tree for
/// memory alone.
const KINDS: [(&str, &str); 2] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
    ("/sys/fs/cgroup", "memory.max"),
];

/// A control group with one process, which is removed when this is dropped; the process must have
/// ended by then.
#[derive(Debug)]
pub(super) struct MemoryLimit(PathBuf);

impl MemoryLimit {
    /// Limits what a process takes from now on.
    pub(super) fn of(process: u32, bytes: u64) -> Result<Self> {
        let [first, second] = KINDS;
        let (root, limit) = match Path::new(first.0).exists() {
            true => first,
            false => second,
        };
        let group = Path::new(root).join(format!("trefoil-bench-{process}"));
        let why = || format!("cannot limit memory with {}", group.display());
        fs::create_dir(&group).with_context(why)?;
        let limited = Self(group.clone());
        fs::write(group.join(limit), bytes.to_string()).with_context(why)?;
        fs::write(group.join("cgroup.procs"), process.to_string()).with_context(why)?;
        Ok(limited)
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}
