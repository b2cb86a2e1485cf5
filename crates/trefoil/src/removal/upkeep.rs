//! What a database knows of the work that removals leave behind.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use trefoil_core::{Direction, Error, Result};
use trefoil_storage::Storage;

use super::dropping::{DropScope, OVERDUE};
use super::recount::LostEvents;
use super::redaction::RedactionRound;
use super::retention::RetentionUpkeep;
use crate::background::exclusive::Exclusive;
use crate::database::engine::Engine;
use crate::index::{KeepPosting, Layer, Layers, Run, TermKind, TermLookup};
use crate::stats::{BackgroundWork, CountedPart};
use crate::time::NEVER;

/// A run of the index is written again when one in so many of its events was dropped.
const PAYS_PART: u64 = 4;
/// How many events are looked for at a time.
const PAGE: usize = 4096;

/// The work that removals leave behind, and when it is due, in milliseconds since 1970.
#[derive(Debug)]
pub(crate) struct RemovalUpkeep {
    /// Dropping removed events.
    pub(crate) drops: Exclusive,
    pub(crate) drop_due: AtomicU64,
    /// The same for a database that must be opened for it: not for what was tried and does not pay.
    pub(crate) drop_due_when_closed: AtomicU64,
    /// Putting stubs in the place of redacted events.
    pub(crate) redacting: Exclusive,
    pub(crate) redact_due: AtomicU64,
    pub(super) redaction_round: Mutex<RedactionRound>,
    /// How many failed when they were tried last.
    pub(crate) overdue_redactions: CountedPart,
    /// Applying policies.
    pub(crate) retention: RetentionUpkeep,
    /// What the index has lost of what was removed.
    pub(crate) lost: RwLock<LostEvents>,
}

impl RemovalUpkeep {
    pub(crate) fn new(lost: LostEvents) -> Self {
        Self {
            drops: Exclusive::default(),
            drop_due: AtomicU64::new(NEVER),
            drop_due_when_closed: AtomicU64::new(NEVER),
            redacting: Exclusive::default(),
            redact_due: AtomicU64::new(NEVER),
            redaction_round: Mutex::default(),
            overdue_redactions: CountedPart::default(),
            retention: RetentionUpkeep::default(),
            lost: RwLock::new(lost),
        }
    }

    /// Returns when the first of it is due, policies aside.
    pub(crate) fn deadline(&self) -> u64 {
        let drops = self.drop_due.load(Ordering::Relaxed);
        drops.min(self.redact_due.load(Ordering::Relaxed))
    }

    /// The same for a database that must be opened for it.
    pub(crate) fn deadline_when_closed(&self) -> u64 {
        let drops = self.drop_due_when_closed.load(Ordering::Relaxed);
        drops.min(self.redact_due.load(Ordering::Relaxed))
    }

    /// Sets when removed events are to be dropped.
    pub(super) fn set_drop_due(&self, due: u64, when_closed: u64) {
        self.drop_due.store(due, Ordering::Relaxed);
        self.drop_due_when_closed
            .store(when_closed, Ordering::Relaxed);
    }

    /// Notes that removed events are to be dropped at a time, if not before.
    pub(super) fn bring_drop_forward(&self, due: u64, when_closed: u64) {
        self.drop_due.fetch_min(due, Ordering::Relaxed);
        self.drop_due_when_closed
            .fetch_min(when_closed, Ordering::Relaxed);
    }
}

impl Engine {
    /// Follows redactions and drops all removed events, whatever it costs.
    pub(crate) fn finish_removals(self: &Arc<Self>) -> Result<()> {
        self.finish_redactions()?;
        self.removal.drops.perform(|| -> Result<()> {
            while self.drop_removed(DropScope::EVERYTHING)? {}
            Ok(())
        })
    }

    /// Follows all redactions.
    pub(crate) fn finish_redactions(self: &Arc<Self>) -> Result<()> {
        let redacting = &self.removal.redacting;
        redacting.perform(|| self.follow_all_redactions())
    }

    /// Takes events out of the index that the log has dropped: those of runs that have lost enough of
    /// them or have waited for long enough, or of all runs.
    pub(super) fn forget_dropped(self: &Arc<Self>, is_all: bool) -> Result<()> {
        let now = self.clock().now().millis();
        self.merges.perform(|| {
            let layers = self.index.layers();
            for run in layers.runs() {
                let pays = self.index.missing_of(run).is_some_and(|missing| {
                    missing.events * PAYS_PART >= run.n_events || missing.since + OVERDUE <= now
                });
                if !pays && !is_all {
                    continue;
                }
                let missing = missing_of(self.storage.as_ref(), run)?;
                if missing.is_empty() {
                    self.index.end_missing(run)?;
                } else {
                    let keeps = |_, position| !contains(&missing, position);
                    self.rewrite_run(run, &keeps)?;
                }
            }
            Ok(())
        })
    }

    /// Returns when the index is to forget dropped events that are few.
    pub(super) fn forget_deadline(&self) -> u64 {
        let since = self.index.missing_since();
        since.map_or(NEVER, |since| since + OVERDUE)
    }

    /// Writes a run again with the postings that are kept. No other run is being written.
    pub(super) fn rewrite_run(
        self: &Arc<Self>,
        run: &Arc<Run>,
        keeps: &KeepPosting<'_>,
    ) -> Result<()> {
        let go_on = || match self.is_closing.load(Ordering::Relaxed) {
            true => Err(Error::Closed("the database is being closed".into())),
            false => Ok(()),
        };
        let mut lost = None;
        self.measure(BackgroundWork::Merge, || {
            let mut note = |loss: &_, batch: &mut _| {
                let after = self.removal.lost.read().with(loss);
                after.fill(batch);
                lost = Some(after);
            };
            self.index.rewrite(run, keeps, &mut note, &go_on).map(Some)
        })?;
        if let Some(lost) = lost {
            *self.removal.lost.write() = lost;
        }
        // If this fails, the counts are right all the same.
        self.index.drop_replaced(std::slice::from_ref(run))
    }
}

fn contains(ranges: &[Range<u64>], position: u64) -> bool {
    let at = ranges.partition_point(|range| range.end <= position);
    ranges.get(at).is_some_and(|range| range.start <= position)
}

/// Returns the positions of a run that the log does not have any more.
fn missing_of(storage: &dyn Storage, run: &Arc<Run>) -> Result<Vec<Range<u64>>> {
    let layers = Layers {
        layers: vec![Layer::Run(Arc::clone(run))],
    };
    let mut term = TermLookup::new(&layers, TermKind::All, "");
    let mut missing: Vec<Range<u64>> = Vec::new();
    let (mut from, mut page, mut found) = (1, Vec::with_capacity(PAGE), Vec::new());
    loop {
        page.clear();
        term.page(from, Direction::Forwards, PAGE, &mut page)?;
        found.clear();
        storage.read_labels(&page, &mut |position, _| found.push(position))?;
        let mut left = found.iter().peekable();
        for position in &page {
            if left.next_if_eq(&position).is_some() {
                continue;
            }
            match missing.last_mut() {
                Some(last) if last.end == *position => last.end += 1,
                _ => missing.push(*position..position + 1),
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE => from = last + 1,
            _ => return Ok(missing),
        }
    }
}
