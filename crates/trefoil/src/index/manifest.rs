//! The manifest: which runs make up the index, and up to where in the log they reach.
//!
//! It is one value in one map, replaced atomically. A run counts from the moment the manifest names
//! it; a run that no manifest names is left over from a crash and is dropped.

use serde::{Deserialize, Serialize};
use trefoil_core::{Damage, Error, Result, Timestamp};
use trefoil_storage::{Batch, FindMap, Storage};

use super::missing::MissingEvents;

/// The map and the key that hold the manifest.
pub(crate) const MAP: &str = "manifest";
const KEY: &[u8] = b"index";
const VERSION: u32 = 1;
/// What the names of runs begin with.
pub(crate) const RUN_PREFIX: &str = "run-";

/// The state of the index on disk.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Manifest {
    version: u32,
    /// The last commit whose events are in the runs.
    pub(crate) commit: u64,
    /// The highest time that the server itself gave to an event.
    pub(crate) clock: i64,
    /// The seed of the hashes of ids.
    pub(crate) id_seed: u64,
    /// The number of the next run.
    pub(crate) next_run: u64,
    /// The runs, oldest first.
    pub(crate) runs: Vec<ManifestRun>,
}

/// A run, as the manifest describes it.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ManifestRun {
    pub(crate) name: String,
    pub(crate) first_position: u64,
    pub(crate) last_position: u64,
    pub(crate) events: u64,
    pub(crate) highest_time: i64,
    /// What the log does not have any more of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) missing: Option<MissingEvents>,
}

impl Manifest {
    /// Returns the manifest of an index without runs.
    pub(crate) fn new(id_seed: u64) -> Self {
        Self {
            version: VERSION,
            commit: 0,
            clock: 0,
            id_seed,
            next_run: 1,
            runs: Vec::new(),
        }
    }

    /// Reads the manifest, if there is one.
    pub(crate) fn load(storage: &dyn Storage) -> Result<Option<Self>> {
        Self::find(&|name| storage.map(name))
    }

    /// Returns the last commit that the index knows of; 0 if there is none.
    pub(crate) fn reach(find_map: &FindMap<'_>) -> Result<u64> {
        Ok(Self::find(find_map)?.map_or(0, |manifest| manifest.commit))
    }

    fn find(find_map: &FindMap<'_>) -> Result<Option<Self>> {
        let Some(map) = find_map(MAP)? else {
            return Ok(None);
        };
        let Some(value) = map.get(KEY)? else {
            return Ok(None);
        };
        let manifest: Self = serde_json::from_slice(&value)
            .map_err(|error| damaged(format!("the manifest is unreadable: {error}")))?;
        if manifest.version != VERSION {
            return Err(damaged(format!(
                "the index has format version {}, this program knows {VERSION}",
                manifest.version
            )));
        }
        Ok(Some(manifest))
    }

    /// Replaces the manifest, together with what else is in `batch`, and returns when it is
    /// durable.
    pub(crate) fn store(&self, storage: &dyn Storage, mut batch: Batch) -> Result<()> {
        let value = serde_json::to_vec(self)
            .map_err(|error| Error::invalid(format!("manifest: {error}")))?;
        batch.put(MAP, KEY, value);
        storage.write(&batch)
    }

    /// Returns a name for a new run.
    pub(crate) fn new_run_name(&mut self) -> String {
        let name = format!("{RUN_PREFIX}{:010}", self.next_run);
        self.next_run += 1;
        name
    }

    /// Returns the highest time of all events in the runs.
    pub(crate) fn highest_time(&self) -> Timestamp {
        Timestamp(self.runs.last().map_or(i64::MIN, |run| run.highest_time))
    }
}

/// Returns what says that the maps are not what was written.
pub(crate) fn damaged(what: String) -> Error {
    Error::Damaged(Box::new(Damage {
        file: "maps".into(),
        offset: 0,
        position: 0,
        what,
        help: "run `trefoil repair`, which rebuilds the maps from the log".to_owned(),
    }))
}
