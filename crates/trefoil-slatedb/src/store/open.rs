//! Opens a store for one writer.
//!
//! SlateDB counts its writers one by one, and the epochs of the contract may skip numbers. So an object
//! beside the store has the epoch of whoever may write. An opener reads SlateDB's count first, then
//! puts its epoch into the object, and then opens SlateDB on condition that the count is still the
//! same. An opener with a higher epoch that came in between has counted on or will do so: then the
//! condition fails, and the object says who is right.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use slatedb::admin::Admin;
use slatedb::{Db, VersionedManifest};
use trefoil_kv::contract::{KvError, KvObjects as _, KvResult};
use xxhash_rust::xxh3::xxh3_64;

use super::clock::StoreClock;
use super::last_time::last_time;
use super::segments::FirstByte;
use super::{SlateKv, settings};
use crate::engine::EngineShared;
use crate::error::{is_too_late, of_read};
use crate::objects::StoreObjects;

/// How often an opener with the highest epoch tries again because others opened in between.
const ATTEMPTS: usize = 8;
/// How far the clock of this machine may be behind that of the last writer. SlateDB removes what is
/// old, so its clock must not be far ahead of that of the store.
const MAX_BEHIND: Duration = Duration::from_secs(60);

/// Opens a store.
pub(crate) fn open(
    shared: &Arc<EngineShared>,
    epochs: &StoreObjects,
    name: &str,
    path: &Path,
    epoch: u64,
) -> KvResult<SlateKv> {
    let mut is_announced = false;
    let mut last = KvError::Fenced;
    for _ in 0..ATTEMPTS {
        let manifest = look(shared, path)?;
        let writers = manifest.as_ref().map_or(0, VersionedManifest::writer_epoch);
        let clock = clock_after(shared, path, manifest.as_ref())?;
        announce(epochs, name, epoch, is_announced)?;
        is_announced = true;
        match build(shared, path, writers, clock) {
            Err(KvError::Fenced) => {}
            // Two who make the same SlateDB find each other's objects.
            Err(error @ KvError::Damaged(_)) if writers == 0 => last = error,
            opened => return opened,
        }
    }
    Err(last)
}

/// Returns what a SlateDB says of itself; `None` if there is none.
fn look(shared: &Arc<EngineShared>, path: &Path) -> KvResult<Option<VersionedManifest>> {
    let store = Arc::clone(&shared.connection.store);
    let admin = Admin::builder(path.clone(), store).build();
    let read = async move { admin.read_manifest(None).await };
    match shared.wait(shared.options.read_deadline, read) {
        Some(Ok(manifest)) => Ok(manifest),
        Some(Err(error)) => Err(of_read(&error)),
        None => Err(late()),
    }
}

/// Returns a clock that is not behind what was left in a SlateDB. Its tasks begin at once when it is
/// opened, so the clock is right before that.
fn clock_after(
    shared: &Arc<EngineShared>,
    path: &Path,
    manifest: Option<&VersionedManifest>,
) -> KvResult<StoreClock> {
    let clock = StoreClock::new();
    let Some(manifest) = manifest else {
        return Ok(clock);
    };
    let behind = clock.catch_up(last_time(shared, path, manifest)?, MAX_BEHIND);
    if behind > MAX_BEHIND {
        return Err(KvError::Unavailable(format!(
            "the clock of this machine is {} s behind the last write to the store",
            behind.as_secs()
        )));
    }
    Ok(clock)
}

pub(super) fn late() -> KvError {
    KvError::Unavailable("opening a store took too long".to_owned())
}

/// Puts an epoch into the object of a store, unless a higher one is there.
fn announce(epochs: &StoreObjects, name: &str, epoch: u64, is_announced: bool) -> KvResult<()> {
    for _ in 0..ATTEMPTS {
        let found = epochs.get(name)?;
        let number = match &found {
            Some((bytes, _)) => Some(parse(name, bytes)?),
            None => None,
        };
        match number {
            Some(number) if number == epoch && is_announced => return Ok(()),
            Some(number) if number >= epoch => return Err(KvError::Fenced),
            // Whoever erased the store has taken it away.
            None if is_announced => return Err(KvError::Fenced),
            _ => {}
        }
        let bytes = Bytes::from(epoch.to_string());
        let written = match &found {
            Some((_, version)) => epochs.replace(name, version, bytes)?,
            None => epochs.create(name, bytes)?,
        };
        if written.is_some() {
            return Ok(());
        }
    }
    Err(KvError::Fenced)
}

fn parse(name: &str, bytes: &[u8]) -> KvResult<u64> {
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| KvError::Damaged(format!("the epoch of '{name}' cannot be read")))
}

/// Opens a SlateDB that has had this many writers.
fn build(
    shared: &Arc<EngineShared>,
    path: &Path,
    writers: u64,
    clock: StoreClock,
) -> KvResult<SlateKv> {
    let clock = Arc::new(clock);
    let connection = &shared.connection;
    let builder = Db::builder(path.clone(), Arc::clone(&connection.store))
        .with_settings(settings::settings(connection.abilities.is_shared))
        .with_system_clock(Arc::clone(&clock) as _)
        .with_segment_extractor(Arc::new(FirstByte))
        .with_db_cache(Arc::clone(&shared.cache), xxh3_64(path.as_ref().as_bytes()))
        .with_expected_epoch(writers);
    // A build that is dropped half way leaves tasks behind that nobody can end, so it goes on.
    let mut building = shared.handle().spawn(builder.build());
    let deadline = shared.options.read_deadline;
    let waited = shared.wait(deadline * 2, async move {
        match tokio::time::timeout(deadline, &mut building).await {
            Ok(built) => Some(built),
            Err(_) => {
                tokio::spawn(async move {
                    if let Ok(Ok(db)) = building.await {
                        let _ = db.close().await;
                    }
                });
                None
            }
        }
    });
    let db = match waited.flatten() {
        Some(Ok(Ok(db))) => db,
        Some(Ok(Err(error))) if is_too_late(&error) => return Err(KvError::Fenced),
        Some(Ok(Err(error))) => return Err(of_read(&error)),
        Some(Err(error)) => return Err(KvError::Unavailable(error.to_string())),
        None => return Err(late()),
    };
    Ok(SlateKv::start(Arc::clone(shared), db, clock))
}
