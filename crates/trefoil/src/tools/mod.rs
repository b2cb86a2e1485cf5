//! Looking at a database that is not open, and mending what can be mended.
//!
//! All of these take a claim to a namespace, or a home, so they refuse what a server has open.

mod compare;
mod copy;
mod gaps;
mod inspect;
mod removals;
#[cfg(test)]
mod removals_tests;
mod verify;

use std::sync::Arc;

use trefoil_core::{Error, NamespaceId, Result, Token};
use trefoil_storage::{BlockCache, Storage};

use crate::backup::stored_origin;
use crate::home::{Claim, Home};
use crate::index::Manifest;
use crate::{Clock, Database, KnownRedaction, Options, namespaces};

pub(crate) use copy::make_namespace;
pub use copy::{Copied, CopyStep, copy_namespace};
pub(crate) use gaps::Gaps;
pub use inspect::{Inspection, RunInfo, inspect};
pub use trefoil_storage::Snapshot;
pub use trefoil_storage::local::{Finding, RecordInfo, SegmentInfo, SegmentKind};
pub(crate) use verify::{EventOrder, events_of};
pub use verify::{VerifyReport, VerifyStep, verify};

pub use crate::namespaces::RegistryReport;

/// What repairing a database did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repaired {
    /// How many events were read from the log and indexed again.
    pub events: u64,
}

/// How many bytes of maps a tool caches.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;

fn tool_cache() -> Arc<BlockCache> {
    Arc::new(BlockCache::new(CACHE_BYTES))
}

/// Opens the log and the maps of a namespace that is not open.
pub(crate) fn open_storage(claim: &dyn Claim) -> Result<Arc<dyn Storage>> {
    let generation = claim.facts()?.generation;
    let opened = claim.open(generation, &tool_cache(), &Manifest::reach)?;
    Ok(opened.storage)
}

/// Throws the maps of a database away and rebuilds them from the log and the snapshot of the state,
/// and so with whatever else of it is damaged and can be made again. If the process ends midway, the
/// next opening does the rest. A log that lacks what the maps know of is refused.
pub fn repair(claim: Arc<dyn Claim>, options: &Options) -> Result<Repaired> {
    claim.remove_derived(&Manifest::reach)?;
    let database = Database::open_claimed(claim, options)?;
    database.checkpoint()?;
    let events = database.recovery().replayed_events;
    database.close()?;
    Ok(Repaired { events })
}

/// What a namespace knows of redactions.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RedactionsOf {
    /// What tells it from others that had its name, as [`NamespaceBackup::origin`]; `None` if that is not
    /// known.
    ///
    /// [`NamespaceBackup::origin`]: crate::backup::NamespaceBackup::origin
    pub origin: Option<String>,
    /// All its redactions, in the order of their positions.
    pub redactions: Vec<KnownRedaction>,
}

/// Returns all redactions of a namespace of a home that no server has open.
pub fn redactions(home: &dyn Home, id: &NamespaceId, options: &Options) -> Result<RedactionsOf> {
    let entry = home.entry(id)?;
    let entry = entry.ok_or_else(|| Error::NamespaceNotFound(id.to_string()))?;
    if !namespaces::is_made(id, &entry)? && !home.has_storage(id)? {
        return Ok(RedactionsOf::default());
    }
    let claim = home.claim(id, entry.stamp.incarnation, true)?;
    let database = Database::open_claimed(claim, options)?;
    let found = RedactionsOf {
        origin: stored_origin(database.engine()?.storage.as_ref())?,
        redactions: database.redactions()?,
    };
    database.close()?;
    Ok(found)
}

/// Gives a namespace of a home another main token, `token` or a random one, and returns it. From then on
/// the one that it had opens nothing.
pub fn rotate_token(home: Arc<dyn Home>, id: &str, token: Option<Token>) -> Result<Token> {
    namespaces::rotate_token(home, id, token, Clock::default().now())
}

/// Verifies the registry of a home: that its entries are what was written, and that each namespace
/// that was made is there.
pub fn verify_registry(home: &dyn Home) -> Result<RegistryReport> {
    namespaces::verify(home)
}
