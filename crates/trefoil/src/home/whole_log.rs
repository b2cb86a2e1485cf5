//! What a home can do with any [`Storage`]: read the whole log, and remove all maps.

use std::sync::Arc;

use trefoil_core::{Error, Result};
use trefoil_storage::local::{Finding, LogReport};
use trefoil_storage::{BlockCache, ReadReach};

use super::{Claim, VerifiedLog};

/// Little memory for caches: everything is read once.
const CACHE_BYTES: u64 = 1024 * 1024;

fn little_cache() -> Arc<BlockCache> {
    Arc::new(BlockCache::new(CACHE_BYTES))
}

/// Opens the generation that counts and reads all records of its log.
pub(super) fn verify(claim: &(impl Claim + ?Sized)) -> Result<VerifiedLog> {
    let opened = claim.open(claim.facts()?.generation, &little_cache(), &|_| Ok(0))?;
    let mut log = LogReport {
        snapshot: opened.storage.snapshot(),
        ..LogReport::default()
    };
    let replayed = opened.storage.replay(0, &mut |record| {
        log.records += 1;
        log.commits += u64::from(record.n_commits);
        log.items += record.items.len() as u64;
        log.bytes += (record.items.n_bytes() + record.commits.len() + record.changes.len()) as u64;
        Ok(())
    });
    let snapshot = opened.storage.read_snapshot(&mut |_, _| Ok(()));
    for read in [replayed, snapshot] {
        match read {
            Ok(()) => {}
            Err(Error::Damaged(damage)) => log.findings.push(Finding {
                file: opened.place.join(damage.file),
                offset: damage.offset,
                position: damage.position,
                what: damage.what,
            }),
            Err(error) => return Err(error),
        }
    }
    Ok(VerifiedLog {
        log,
        beside: Vec::new(),
    })
}

/// Removes all maps of the generation that counts, once its log and its snapshot have been read.
pub(super) fn remove_maps(claim: &(impl Claim + ?Sized), reach: &ReadReach<'_>) -> Result<()> {
    let generation = claim.facts()?.generation;
    let storage = claim.open(generation, &little_cache(), reach)?.storage;
    storage.replay(0, &mut |_| Ok(()))?;
    storage.read_snapshot(&mut |_, _| Ok(()))?;
    let mut names = storage.map_names()?;
    names.sort();
    names.iter().try_for_each(|name| storage.drop_map(name))
}
