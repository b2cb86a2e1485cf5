//! How many events a run has that the log does not have any more.
//!
//! The log drops events in small numbers, and a run is written again without them when there are enough of
//! them together. So they are counted, with the run, in the manifest.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use trefoil_core::Result;
use trefoil_storage::Batch;

use super::manifest::ManifestRun;
use super::{Index, Run};

/// Events of a run that the log does not have any more.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MissingEvents {
    /// How many. It may be too many, if dropping them failed.
    pub(crate) events: u64,
    /// Since when, in milliseconds since 1970.
    pub(crate) since: u64,
}

impl MissingEvents {
    /// Returns what is missing of two runs that become one.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            events: self.events + other.events,
            since: self.since.min(other.since),
        }
    }
}

impl Index {
    /// Notes that the log will not have the events at these positions any more. To be called before it
    /// drops them, so that none is missing unnoticed.
    pub(crate) fn note_missing(&self, dropped: &[Range<u64>], now: u64) -> Result<()> {
        self.change_manifest_runs(|run| {
            let events = n_within(dropped, run.first_position, run.last_position);
            if events > 0 {
                let more = MissingEvents { events, since: now };
                run.missing = Some(run.missing.map_or(more, |missing| missing.with(more)));
            }
        })
    }

    /// Notes that the log has all events of a run.
    pub(crate) fn end_missing(&self, run: &Run) -> Result<()> {
        self.change_manifest_runs(|described| {
            if described.name == run.name {
                described.missing = None;
            }
        })
    }

    /// Returns what is missing of a run.
    pub(crate) fn missing_of(&self, run: &Run) -> Option<MissingEvents> {
        let manifest = self.manifest.lock();
        let described = manifest.runs.iter().find(|other| other.name == run.name);
        described.and_then(|described| described.missing)
    }

    /// Returns since when something is missing of a run, in milliseconds since 1970.
    pub(crate) fn missing_since(&self) -> Option<u64> {
        let manifest = self.manifest.lock();
        let missing = manifest.runs.iter().filter_map(|run| run.missing);
        missing.map(|missing| missing.since).min()
    }

    fn change_manifest_runs(&self, change: impl FnMut(&mut ManifestRun)) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let mut next = manifest.clone();
        next.runs.iter_mut().for_each(change);
        if next != *manifest {
            next.store(self.storage.as_ref(), Batch::default())?;
            *manifest = next;
        }
        Ok(())
    }
}

/// Counts the positions of ranges that lie between two positions, inclusive.
fn n_within(ranges: &[Range<u64>], low: u64, high: u64) -> u64 {
    let overlap = |range: &Range<u64>| {
        let end = range.end.min(high + 1);
        end.saturating_sub(range.start.max(low))
    };
    ranges.iter().map(overlap).sum()
}
