//! Blocks that were read, for all stores of an engine together.

use std::fs::{File, TryLockError};
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

/// A cache, and the lock on its directory if it has one.
pub(crate) type LockedCache = (Arc<dyn DbCache>, Option<File>);

/// Returns the cache. A directory that another one uses is left to it: then this one is in memory
/// alone. Must be called on the runtime.
pub(crate) async fn build(options: &StoreOptions) -> Result<LockedCache, ConnectError> {
    if let Some(directory) = &options.cache_directory {
        let directory = directory.join(BLOCKS);
        if let Some(lock) = lock(&directory).map_err(|error| cannot(&directory, &error))? {
            return Ok((hybrid(&directory, options).await?, Some(lock)));
        }
    }
    let cache = FoyerCache::new_with_opts(FoyerCacheOptions {
        max_capacity: options.cache_memory as u64,
        shards: SHARDS,
    });
    Ok((Arc::new(cache), None))
}

fn cannot(directory: &Path, error: &dyn std::fmt::Display) -> ConnectError {
    let directory = directory.display();
    ConnectError(format!("cannot keep a cache in '{directory}': {error}"))
}

/// Returns the lock on a directory, which is made; `None` if another one has it.
fn lock(directory: &Path) -> std::io::Result<Option<File>> {
    std::fs::create_dir_all(directory)?;
    let path = directory.with_extension("lock");
    let file = File::options().create(true).append(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

async fn hybrid(
    directory: &Path,
    options: &StoreOptions,
) -> Result<Arc<dyn DbCache>, ConnectError> {
    let device = FsDeviceBuilder::new(directory)
        .with_capacity(options.cache_disk.max(PIECE * 2))
        .build()
        .map_err(|error| cannot(directory, &error))?;
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
        .map_err(|error| cannot(directory, &error))?;
    Ok(Arc::new(FoyerHybridCache::new_with_cache(cache)))
}
