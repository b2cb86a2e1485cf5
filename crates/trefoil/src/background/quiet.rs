//! Moving what is in memory alone to disk while nobody writes: so that opening the database again
//! reads little of the log, and so that it takes little memory.
//!
//! That is done when nothing has been written for a while, and when the database is closed. A small
//! tail stays: reading it again costs less than a run and its merges.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trefoil_core::{Error, Result};

use crate::background::Lane;
use crate::database::engine::{Engine, report};
use crate::index::SMALL_TAIL_EVENTS;
use crate::time::NEVER;

/// For how many milliseconds nothing is written before the tail is moved.
pub(super) const QUIET_MILLIS: u64 = 1000;

/// How long closing a database, or all of them, takes for that at most.
pub(crate) const CLOSING_PATIENCE: Duration = Duration::from_secs(5);

/// After so many entries of a run it is looked whether there is still time for it.
const ENTRIES_PER_LOOK: u32 = 1024;

impl Engine {
    /// Notes that something was written just now.
    pub(crate) fn note_written(&self) {
        let now = self.clock().now().millis();
        self.last_write.store(now, Ordering::Relaxed);
    }

    /// Returns when the tail is moved to disk if nothing more is written.
    pub(crate) fn quiet_deadline(&self) -> u64 {
        match self.is_tail_large() {
            true => self.last_write.load(Ordering::Relaxed) + QUIET_MILLIS,
            false => NEVER,
        }
    }

    fn is_tail_large(&self) -> bool {
        self.index.tail_events() > SMALL_TAIL_EVENTS || self.store.is_large()
    }

    /// Has the tail moved to disk, of a database that has been quiet for long enough.
    pub(crate) fn schedule_quiet_checkpoint(self: &Arc<Self>) {
        // If it fails, it is tried again after a while.
        self.note_written();
        self.schedule(
            Lane::Checkpoint,
            |engine| &engine.checkpoints,
            |engine| {
                if engine.is_tail_large() && engine.writer.freeze() {
                    report("checkpoint", engine.write_frozen_tail());
                }
            },
        );
    }

    /// Moves a large tail to disk, of a database that takes no more writes, and gives up when that
    /// takes longer than `patience`.
    pub(crate) fn checkpoint_before_closing(&self, patience: Duration) {
        if !self.writer.queue.is_idle() || self.writer.queue.poisoned().is_some() {
            return;
        }
        let began = self.clock().steady();
        let n_entries = Cell::new(0_u32);
        let go_on = || -> Result<()> {
            n_entries.set(n_entries.get().wrapping_add(1));
            match n_entries.get() % ENTRIES_PER_LOOK == 1 && self.clock().since(began) >= patience {
                true => Err(Error::Closed("there is no time for a checkpoint".into())),
                false => Ok(()),
            }
        };
        // The first time for a tail that was frozen before, the second for what came after it.
        for _ in 0..2 {
            let is_due = self.index.is_frozen() || self.is_tail_large();
            if is_due && !patience.is_zero() && self.writer.freeze() {
                let written = self.checkpoints.perform(|| self.save_frozen_tail(&go_on));
                report("checkpoint before closing", written);
            }
        }
    }
}
