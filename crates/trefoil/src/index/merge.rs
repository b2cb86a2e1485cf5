//! Merging runs, and putting others in their place.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use trefoil_core::Result;
use trefoil_storage::{Batch, Fill};

use super::build;
use super::layers::{Layer, Layers};
use super::manifest::ManifestRun;
use super::missing::MissingEvents;
use super::run::Run;
use super::{Index, SMALL_TAIL_EVENTS, open_run};

/// This many runs of one size class become one run of the next.
const RUNS_PER_MERGE: usize = 4;

impl Index {
    /// Merges runs of one size class into one, if there are enough of them. Returns how many bytes of
    /// entries it has then. Gives up if `go_on` fails, which is asked before each entry.
    pub(crate) fn merge(&self, go_on: &dyn Fn() -> Result<()>) -> Result<Option<u64>> {
        let runs = self.mergeable();
        match runs.is_empty() {
            true => Ok(None),
            false => self.merge_runs(&runs, go_on).map(Some),
        }
    }

    /// Returns how many runs are to be merged into one.
    pub(crate) fn n_mergeable(&self) -> usize {
        self.mergeable().len()
    }

    fn mergeable(&self) -> Vec<Arc<Run>> {
        if self.is_merging_off.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut runs: Vec<Arc<Run>> = self.layers().runs().map(Arc::clone).collect();
        let base = self.tail_events_max.min(SMALL_TAIL_EVENTS);
        match mergeable(&runs, base as u64) {
            Some(range) => runs.drain(range).collect(),
            None => Vec::new(),
        }
    }

    /// Merges all runs into one.
    pub(crate) fn merge_all(&self, go_on: &dyn Fn() -> Result<()>) -> Result<Option<u64>> {
        let runs: Vec<Arc<Run>> = self.layers().runs().map(Arc::clone).collect();
        match runs.len() > 1 {
            true => self.merge_runs(&runs, go_on).map(Some),
            false => Ok(None),
        }
    }

    fn merge_runs(&self, runs: &[Arc<Run>], go_on: &dyn Fn() -> Result<()>) -> Result<u64> {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            return Ok(0);
        };
        let mut bytes = 0;
        let name = self.load_run(&mut |sink| {
            build::from_runs(runs, &mut |key, value| {
                go_on()?;
                bytes += (key.len() + value.len()) as u64;
                sink(key, value)
            })
        })?;
        let described = ManifestRun {
            name,
            first_position: first.first_position,
            last_position: last.last_position,
            events: runs.iter().map(|run| run.n_events).sum(),
            highest_time: last.highest_time.0,
            missing: None,
        };
        self.replace_runs(runs, described, Batch::default(), true)?;
        self.drop_replaced(runs)?;
        Ok(bytes)
    }

    /// Makes a run that does not count yet. Returns its name.
    pub(super) fn load_run(&self, fill: &mut Fill<'_>) -> Result<String> {
        // The manifest is not held while the run is written: checkpoints go on meanwhile.
        let name = self.manifest.lock().new_run_name();
        let loaded = self.storage.load(&name, fill);
        if loaded.is_err() {
            self.storage.drop_map(&name)?;
        }
        loaded.map(|()| name)
    }

    /// Puts a run in the place of others, which follow each other, and writes what is in `batch`
    /// together with that. The others are still there then. What the log does not have any more of the
    /// others is missing of the new one, too, if that has the same events.
    pub(super) fn replace_runs(
        &self,
        runs: &[Arc<Run>],
        mut described: ManifestRun,
        batch: Batch,
        has_same_events: bool,
    ) -> Result<()> {
        let first = runs.first().map_or("", |run| run.name.as_str());
        let merged = Arc::new(open_run(self.storage.as_ref(), &described)?);
        let is_merged = |name: &str| runs.iter().any(|run| run.name == name);
        let mut manifest = self.manifest.lock();
        let mut next = manifest.clone();
        let at = next.runs.iter().position(|run| run.name == first);
        let at = at.unwrap_or(0);
        if has_same_events {
            let merged = next.runs.iter().filter(|run| is_merged(&run.name));
            let missing = merged.filter_map(|run| run.missing);
            described.missing = missing.reduce(MissingEvents::with);
        }
        next.runs.retain(|run| !is_merged(&run.name));
        next.runs.insert(at, described);
        if let Err(error) = next.store(self.storage.as_ref(), batch) {
            // It may be on disk all the same, so both the old runs and the new one must stay.
            self.is_merging_off.store(true, Ordering::Relaxed);
            return Err(error);
        }
        *manifest = next;
        {
            let mut layers = self.layers.write();
            let mut next = layers.layers.clone();
            next.retain(|layer| !matches!(layer, Layer::Run(run) if is_merged(&run.name)));
            next.insert(at, Layer::Run(merged));
            *layers = Arc::new(Layers { layers: next });
        }
        Ok(())
    }

    /// Drops runs that others have taken the place of.
    pub(crate) fn drop_replaced(&self, runs: &[Arc<Run>]) -> Result<()> {
        runs.iter()
            .try_for_each(|run| self.storage.drop_map(&run.name))
    }
}

/// Returns the newest runs that are of one size class and enough to be merged.
fn mergeable(runs: &[Arc<Run>], base: u64) -> Option<std::ops::Range<usize>> {
    let class = |run: &Run| {
        (run.n_events / base.max(1))
            .max(1)
            .ilog(RUNS_PER_MERGE as u64)
    };
    let mut end = runs.len();
    while end >= RUNS_PER_MERGE {
        let last = class(&runs[end - 1]);
        let same = runs[..end]
            .iter()
            .rev()
            .take_while(|run| class(run) <= last)
            .count();
        if same >= RUNS_PER_MERGE {
            return Some(end - same..end);
        }
        end -= same;
    }
    None
}
