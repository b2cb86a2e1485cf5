//! What is inside a database, for people.

use std::sync::Arc;

use trefoil_core::{Direction, Result};
use trefoil_storage::local::{RecordInfo, SegmentInfo};
use trefoil_storage::{Snapshot, Storage};

use super::tool_cache;
use crate::home::Claim;
use crate::index::{Manifest, describe_entry};

/// A run of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo {
    /// The map that holds it.
    pub map: String,
    /// The first position it covers.
    pub first_position: u64,
    /// The last position it covers.
    pub last_position: u64,
    /// How many events it covers.
    pub events: u64,
}

/// A database that is open for inspection.
#[derive(Debug)]
pub struct Inspection {
    // Fields are dropped in this order: the claim goes last.
    storage: Arc<dyn Storage>,
    /// The log's segments, in order.
    pub segments: Vec<SegmentInfo>,
    /// The snapshot of the state, if there is one.
    pub snapshot: Option<Snapshot>,
    /// The last commit that the index on disk covers.
    pub checkpoint_commit: u64,
    /// The runs of the index, oldest first.
    pub runs: Vec<RunInfo>,
    _claim: Arc<dyn Claim>,
}

/// Opens a database for inspection. Like any opening, this cuts an unfinished write from the end of
/// the log.
pub fn inspect(claim: Arc<dyn Claim>) -> Result<Inspection> {
    let generation = claim.facts()?.generation;
    let storage = claim.open(generation, &tool_cache(), &|_| Ok(0))?.storage;
    let manifest = Manifest::load(storage.as_ref())?;
    let (checkpoint_commit, runs) =
        manifest.map_or((0, Vec::new()), |manifest| (manifest.commit, manifest.runs));
    let run_info = |run: crate::index::ManifestRun| RunInfo {
        map: run.name,
        first_position: run.first_position,
        last_position: run.last_position,
        events: run.events,
    };
    Ok(Inspection {
        segments: storage.segments(),
        snapshot: storage.snapshot(),
        storage,
        checkpoint_commit,
        runs: runs.into_iter().map(run_info).collect(),
        _claim: claim,
    })
}

impl Inspection {
    /// Hands the records of a segment to `visit`, in order.
    pub fn records(&self, segment: u64, visit: &mut dyn FnMut(RecordInfo)) -> Result<()> {
        self.storage.records(segment, visit)
    }

    /// Hands each entry of a run to `visit`, as text: what it is, and what it holds. Stops when
    /// `visit` returns `false`.
    pub fn keys(&self, run: &str, visit: &mut dyn FnMut(&str, &str) -> bool) -> Result<()> {
        let Some(map) = self.storage.map(run)? else {
            return Err(trefoil_core::Error::invalid(format!(
                "there is no run {run}"
            )));
        };
        for entry in map.scan(&[], &[], Direction::Forwards) {
            let (key, value) = entry?;
            let (key, value) = describe_entry(&key, &value);
            if !visit(&key, &value) {
                break;
            }
        }
        Ok(())
    }
}
