//! The latest time that the writers of a SlateDB have left in it.
//!
//! SlateDB refuses times before those that it finds: of rows, and of tables and compactions, whose
//! names begin with a time. A writer whose clock was ahead has left times that are yet to come.

use std::sync::Arc;

use object_store::path::Path;
use slatedb::admin::Admin;
use slatedb::{Error, VersionedManifest, WalReader};
use trefoil_kv::contract::KvResult;

use super::open::late;
use crate::engine::EngineShared;
use crate::error::of_read;

/// Returns it, in milliseconds since 1970.
pub(super) fn last_time(
    shared: &Arc<EngineShared>,
    path: &Path,
    manifest: &VersionedManifest,
) -> KvResult<i64> {
    let store = Arc::clone(&shared.connection.store);
    let admin = Admin::builder(path.clone(), Arc::clone(&store)).build();
    let reader = WalReader::new(path.clone(), store);
    let first_file = manifest.replay_after_wal_id() + 1;
    let in_manifest = of_manifest(manifest);
    let read = async move {
        let rows = of_rows(&reader, first_file).await?;
        let compactions = of_compactions(&admin).await?;
        Ok(in_manifest.max(rows).max(compactions))
    };
    match shared.wait(shared.options.read_deadline, read) {
        Some(Ok(last)) => Ok(last),
        Some(Err(error)) => Err(of_read(&error)),
        None => Err(late()),
    }
}

fn of_manifest(manifest: &VersionedManifest) -> i64 {
    let tables = manifest.all_sst_views();
    let made = tables.map(|view| milliseconds(view.sst.id.value().timestamp_ms()));
    made.max().unwrap_or(0).max(manifest.last_l0_clock_tick())
}

/// Returns the time of the last row that is in no table yet.
async fn of_rows(reader: &WalReader, first_file: u64) -> Result<i64, Error> {
    let mut last = 0;
    let files = reader.list(first_file..).await?;
    for file in files.iter().rev() {
        let mut rows = file.iterator().await?;
        let mut is_empty = true;
        while let Some(row) = rows.next().await? {
            is_empty = false;
            last = last.max(row.create_ts.unwrap_or(0));
        }
        // A file without rows fences an earlier writer.
        if !is_empty {
            break;
        }
    }
    Ok(last)
}

async fn of_compactions(admin: &Admin) -> Result<i64, Error> {
    let found = admin.read_compactions(None).await?;
    let begun = found.iter().flat_map(|found| found.recent_compactions());
    let begun = begun.map(|compaction| milliseconds(compaction.id().timestamp_ms()));
    Ok(begun.max().unwrap_or(0))
}

fn milliseconds(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use slatedb::Db;
    use slatedb::compactor::{CompactionSpec, SourceId};
    use slatedb::config::{FlushOptions, FlushType};
    use slatedb_common::clock::SystemClock as _;

    use super::*;
    use crate::store::FirstByte;
    use crate::store::clock::StoreClock;
    use crate::{SlateEngine, StoreOptions, StoreUrl};

    const MINUTE: Duration = Duration::from_secs(60);

    /// A compaction that began ahead of time made the store fail when it was opened.
    #[test]
    fn the_time_of_a_compaction_counts() {
        let engine = SlateEngine::connect(&StoreUrl::Memory, StoreOptions::default()).unwrap();
        let shared = Arc::clone(&engine.shared);
        let store = Arc::clone(&shared.connection.store);
        let path = Path::from("stores/x");
        let ahead = StoreClock::new();
        let begun = ahead.now().timestamp_millis() + 30_000;
        ahead.catch_up(begun, MINUTE);
        let (at, clock) = (path.clone(), Arc::new(ahead));
        let compacted = shared.wait(MINUTE, async move {
            let builder = Db::builder(at.clone(), Arc::clone(&store));
            let builder = builder.with_segment_extractor(Arc::new(FirstByte));
            let db = builder.build().await.unwrap();
            db.put(b"a", b"1").await.unwrap();
            let flush_type = FlushType::MemTable;
            let flushed = db.flush_with_options(FlushOptions { flush_type });
            flushed.await.unwrap();
            let manifest = db.manifest();
            db.close().await.unwrap();
            let sources = manifest.all_sst_views();
            let sources = sources.map(|view| SourceId::SstView(view.id)).collect();
            let compaction = CompactionSpec::for_segment(Bytes::from("a"), sources, 0);
            let admin = Admin::builder(at, store).with_system_clock(clock).build();
            admin.submit_compaction(compaction).await.unwrap();
            manifest
        });
        let manifest = compacted.unwrap();
        assert!(of_manifest(&manifest) < begun);
        let last = last_time(&shared, &path, &manifest).unwrap();
        assert!(last >= begun, "{last} is before {begun}");
    }
}
