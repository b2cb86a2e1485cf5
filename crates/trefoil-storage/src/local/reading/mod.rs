//! Reading the log's files.
//!
//! - What is read here and there goes through a cache of blocks that counts against the budget of
//!   memory: [`file`] is a file that is read through it, and [`gather`] gets the blocks of several
//!   places of a read together.
//! - What is read in order is a [`walk`]: in large pieces, each asked for before it is needed, past
//!   the cache.

pub(super) mod file;
pub(super) mod gather;
pub(super) mod walk;

use std::sync::Arc;

use super::disk::Disk;
use super::options::LocalOptions;
use crate::file_cache::FileCache;

/// What files are read with.
#[derive(Debug, Clone)]
pub(super) struct FileAccess {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) cache: Arc<FileCache>,
}

impl FileAccess {
    pub(super) fn of(options: &LocalOptions) -> Self {
        Self {
            disk: Arc::clone(&options.disk),
            cache: Arc::clone(options.cache.files()),
        }
    }
}
