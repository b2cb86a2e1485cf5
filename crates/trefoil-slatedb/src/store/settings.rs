//! How a SlateDB is set up.

use std::time::Duration;

use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, GarbageCollectorDirectoryOptions,
    GarbageCollectorOptions, Settings,
};

use super::clock::IDLE_POLL;

/// How large a table is that memory is written to. It is held in memory until then.
const TABLE: usize = 16 << 20;
/// How much may be in memory before writes wait.
const MAX_UNFLUSHED: usize = 64 << 20;
/// How large a table becomes by merging.
const MERGED_TABLE: usize = 64 << 20;
/// How many tables may wait to be merged: of one kind of keys, and in all.
const MAX_TABLES_PER_KEY: usize = 32;
const MAX_TABLES: usize = 512;
/// How often a request is repeated, a second apart: without a limit SlateDB never gives up. Calls have
/// deadlines of their own; this is for what runs in the background.
const RETRIES: u32 = 60;
/// How long changing the manifest may take.
const MANIFEST_TIMEOUT: Duration = Duration::from_secs(60);
/// How often garbage is looked for, and how old it must be.
const COLLECTION: Duration = Duration::from_secs(600);
const MIN_AGE: Duration = Duration::from_secs(900);
/// How long a moment can be read after what it reads was merged.
const MOMENT: Duration = Duration::from_secs(3600);

/// Returns the settings. A store that is not shared cannot replace objects on a condition.
pub(super) fn settings(is_shared: bool) -> Settings {
    Settings {
        // Every group is flushed by its writer.
        flush_interval: None,
        manifest_poll_interval: IDLE_POLL,
        manifest_update_timeout: MANIFEST_TIMEOUT,
        l0_sst_size_bytes: TABLE,
        l0_max_ssts: MAX_TABLES,
        l0_max_ssts_per_key: MAX_TABLES_PER_KEY,
        max_unflushed_bytes: MAX_UNFLUSHED,
        object_store_max_retries: Some(RETRIES),
        compactor_options: Some(compactor()),
        garbage_collector_options: Some(collector(is_shared)),
        ..Settings::default()
    }
}

fn compactor() -> CompactorOptions {
    CompactorOptions {
        poll_interval: IDLE_POLL,
        manifest_update_timeout: MANIFEST_TIMEOUT,
        max_concurrent_compactions: 2,
        checkpoint_lifetime: MOMENT,
        object_store_max_retries: Some(RETRIES),
        worker: Some(CompactionWorkerOptions {
            compactions_poll_interval: IDLE_POLL,
            max_concurrent_compactions: 2,
            max_sst_size: MERGED_TABLE,
            max_subcompactions: 1,
            object_store_max_retries: Some(RETRIES),
            ..CompactionWorkerOptions::default()
        }),
        ..CompactorOptions::default()
    }
}

fn collector(is_shared: bool) -> GarbageCollectorOptions {
    let directory = GarbageCollectorDirectoryOptions {
        interval: Some(COLLECTION),
        min_age: MIN_AGE,
        dry_run: false,
    };
    GarbageCollectorOptions {
        manifest_options: Some(directory),
        wal_options: Some(directory),
        // What fences an old writer must stay as long as that could wake up.
        wal_fence_options: None,
        compacted_options: Some(directory),
        compactions_options: Some(directory),
        detach_options: None,
        boundary_files_enabled: is_shared,
        object_store_max_retries: Some(RETRIES),
        ..GarbageCollectorOptions::default()
    }
}
