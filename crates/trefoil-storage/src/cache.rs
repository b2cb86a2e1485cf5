//! One cache for all namespaces of a process: memory goes to whatever is read the most.

use std::fmt;
use std::sync::Arc;

use lsm_tree::Cache;

use crate::file_cache::FileCache;

/// Blocks of logs in files have this part of the cache, and blocks of maps the rest. An event that is not
/// here costs a system call even if the operating system has it.
const FILES_PART: u64 = 2;

/// Blocks that were read, of all storages that were opened with it.
pub struct BlockCache {
    /// Blocks of maps. Trees have numbers that are unique in a process.
    maps: Arc<Cache>,
    /// Blocks of logs in files.
    files: Arc<FileCache>,
    bytes_max: u64,
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("BlockCache")
            .field("bytes_max", &self.bytes_max())
            .finish_non_exhaustive()
    }
}

impl BlockCache {
    /// Returns a cache of this many bytes.
    pub fn new(bytes_max: u64) -> Self {
        let file_bytes = bytes_max / FILES_PART;
        Self {
            maps: Arc::new(Cache::with_capacity_bytes(bytes_max - file_bytes)),
            files: Arc::new(FileCache::new(file_bytes)),
            bytes_max,
        }
    }

    /// Returns how many bytes it may take.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Returns how many bytes of memory it takes.
    pub fn bytes(&self) -> u64 {
        self.maps.size() + self.files.n_bytes()
    }

    pub(crate) fn maps(&self) -> &Arc<Cache> {
        &self.maps
    }

    pub(crate) fn files(&self) -> &Arc<FileCache> {
        &self.files
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::LoadedMaps;

    #[test]
    fn one_that_is_read_the_most_may_have_all_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let cache = BlockCache::new(1536 * 1024);
        let maps = ["idle", "busy"].map(|name| {
            let maps = LoadedMaps::open(dir.path().join(name), &cache, 0).unwrap();
            let mut fill = |sink: &mut crate::Sink<'_>| {
                let mut keys = 0..20_000_u32;
                keys.try_for_each(|key| sink(key.to_be_bytes().into(), [0; 32].into()))
            };
            maps.load("map", &mut fill).unwrap();
            maps
        });
        let read = |maps: &LoadedMaps| {
            let map = maps.map("map").unwrap().unwrap();
            for key in 0..20_000_u32 {
                assert!(map.get(&key.to_be_bytes()).unwrap().is_some());
            }
        };
        let [idle, busy] = maps;
        read(&idle);
        let bytes = cache.bytes();
        assert!(bytes > 512 * 1024, "{bytes}");
        for _ in 0..4 {
            read(&busy);
        }
        assert!(cache.bytes() > bytes && cache.bytes() <= cache.bytes_max());
        assert!(idle.held_bytes() > 20_000, "a filter has 10 bits per key");
        assert!(idle.held_bytes() < 200_000);
    }
}
