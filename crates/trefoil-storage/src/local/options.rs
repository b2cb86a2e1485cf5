//! How a namespace on disk is tuned.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use super::disk::{Disk, RealDisk};
use crate::BlockCache;

/// The size of a namespace's first segment: small, so that thousands of namespaces are cheap.
const SEGMENT_BYTES_MIN: u64 = 256 * 1024;
/// Where the doubling of segment sizes ends.
const SEGMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The bytes of a cache that no other storage shares.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;

/// Measures how long something takes.
pub trait Stopwatch: Debug + Send + Sync {
    /// Returns the time since some moment in the past, by a clock that is never set.
    fn elapsed(&self) -> Duration;
}

/// A stopwatch that stands still, where nobody wants to know.
#[derive(Debug, Clone, Copy, Default)]
struct StoppedWatch;

impl Stopwatch for StoppedWatch {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// Settings of a [`LocalStorage`](super::LocalStorage).
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// The size of the first segment.
    pub segment_bytes_min: u64,
    /// The size up to which segments double, at most 1 GiB. A larger group gets a segment of its
    /// own.
    pub segment_bytes_max: u64,
    /// How many of the newest full segments stay uncompressed.
    pub plain_segments: usize,
    /// The zstd level of old segments.
    pub compression_level: i32,
    /// Blocks that were read; other storages may share it.
    pub cache: Arc<BlockCache>,
    /// How many files of the maps may be open at once.
    pub cached_files_max: usize,
    /// Where changes to the log's files go; tests put a failing disk here.
    pub disk: Arc<dyn Disk>,
    /// Measures the work that the storage tells of.
    pub stopwatch: Arc<dyn Stopwatch>,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            segment_bytes_min: SEGMENT_BYTES_MIN,
            segment_bytes_max: SEGMENT_BYTES_MAX,
            plain_segments: 4,
            compression_level: 3,
            cache: Arc::new(BlockCache::new(CACHE_BYTES)),
            cached_files_max: 64,
            disk: Arc::new(RealDisk),
            stopwatch: Arc::new(StoppedWatch),
        }
    }
}
