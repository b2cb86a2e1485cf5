//! Blocks that were read, for all stores of an engine together.

use std::path::Path;
use std::sync::Arc;

use foyer::{
    BlockEngineConfig, DeviceBuilder as _, FsDeviceBuilder, HybridCacheBuilder, PsyncIoEngineConfig,
};
use slatedb::db_cache::foyer::{FoyerCache, FoyerCacheOptions};
use slatedb::db_cache::foyer_hybrid::FoyerHybridCache;
use slatedb::db_cache::{CachedEntry, DbCache};

use crate::connect::ConnectError;
use crate::options::StoreOptions;

/// Where blocks are, below the cache directory.
const BLOCKS: &str = "blocks";
/// How many parts the memory has, each with a lock.
const SHARDS: usize = 8;
/// In what pieces the disk is written and freed.
const PIECE: usize = 16 << 20;

/// Returns the cache. Must be called on the runtime.
pub(crate) async fn build(options: &StoreOptions) -> Result<Arc<dyn DbCache>, ConnectError> {
    match &options.cache_directory {
        Some(directory) => hybrid(&directory.join(BLOCKS), options).await,
        None => Ok(Arc::new(FoyerCache::new_with_opts(FoyerCacheOptions {
            max_capacity: options.cache_memory as u64,
            shards: SHARDS,
        }))),
    }
}

async fn hybrid(
    directory: &Path,
    options: &StoreOptions,
) -> Result<Arc<dyn DbCache>, ConnectError> {
    let cannot = |error: &dyn std::fmt::Display| {
        let directory = directory.display();
        ConnectError(format!("cannot keep a cache in '{directory}': {error}"))
    };
    std::fs::create_dir_all(directory).map_err(|error| cannot(&error))?;
    let device = FsDeviceBuilder::new(directory)
        .with_capacity(options.cache_disk.max(PIECE * 2))
        .build()
        .map_err(|error| cannot(&error))?;
    let cache = HybridCacheBuilder::new()
        .with_name("trefoil")
        .memory(options.cache_memory)
        .with_shards(SHARDS)
        .with_weighter(|_, entry: &CachedEntry| entry.size())
        .storage()
        .with_io_engine_config(PsyncIoEngineConfig::new())
        .with_engine_config(BlockEngineConfig::new(device).with_block_size(PIECE))
        .build()
        .await
        .map_err(|error| cannot(&error))?;
    Ok(Arc::new(FoyerHybridCache::new_with_cache(cache)))
}
