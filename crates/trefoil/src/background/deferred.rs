//! Work that can wait: upkeep of the log, such as its compression, merges of the index, and snapshots
//! of the state.
//!
//! None of it is begun while much is written, and what was begun before rests most of the time then, or is
//! given up.
//! What waits is a debt. Each kind of work has a limit for it, beyond which it is done however much is
//! written, so it never falls behind for ever. In quiet moments all of it is done.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trefoil_core::{Error, Result};
use trefoil_storage::Upkeep;

use super::Lane;
use super::exclusive::Exclusive;
use crate::database::engine::{Engine, report};
use crate::stats::BackgroundWork;

/// How long work that should wait does before it is looked at again.
const PAUSE: Duration = Duration::from_millis(10);

/// Work that is under way while much is written goes on for so long, ...
const WORK: Duration = Duration::from_millis(1);
/// ... and then rests for so long.
const REST: Duration = Duration::from_millis(9);

/// So many runs may wait to be merged: whoever looks for a term looks into each of them.
pub(super) const WAITING_RUNS_MAX: usize = 8;

/// A snapshot may wait until the log has so many times the bytes of changes with which it was due.
const OVERDUE_TIMES: u64 = 2;

/// One kind of such work.
#[derive(Clone, Copy)]
pub(crate) struct DeferredWork {
    name: &'static str,
    lane: Lane,
    exclusive: fn(&Engine) -> &Exclusive,
    /// Does one step, unless that should wait because much is being written.
    step: fn(&Arc<Engine>, is_busy: bool) -> Result<Upkeep>,
}

/// The upkeep of the log. The storage knows how much of it waits.
pub(crate) const UPKEEP: DeferredWork = DeferredWork {
    name: "upkeep of the log",
    lane: Lane::Upkeep,
    exclusive: |engine| &engine.upkeep,
    step: |engine, _| engine.keep_up(&|| engine.write_load.is_high()),
};

/// Merges of the index.
pub(crate) const MERGES: DeferredWork = DeferredWork {
    name: "merge of the index",
    lane: Lane::Merge,
    exclusive: |engine| &engine.merges,
    step: Engine::merge_or_wait,
};

/// Dropping of removed events.
pub(crate) const DROPS: DeferredWork = DeferredWork {
    name: "dropping of removed events",
    lane: Lane::Upkeep,
    exclusive: |engine| &engine.removal.drops,
    step: Engine::drop_or_wait,
};

/// Putting stubs in the place of redacted events, which does not wait.
pub(crate) const REDACTIONS: DeferredWork = DeferredWork {
    name: "redaction of events",
    lane: Lane::Redact,
    exclusive: |engine| &engine.removal.redacting,
    step: |engine, _| engine.follow_redactions(),
};

/// Applying policies by which events are removed, in short steps.
pub(crate) const RETENTION: DeferredWork = DeferredWork {
    name: "applying retention policies",
    lane: Lane::Collect,
    exclusive: |engine| &engine.removal.retention.passes,
    step: Engine::apply_policies,
};

/// Snapshots of the state.
pub(crate) const SNAPSHOTS: DeferredWork = DeferredWork {
    name: "snapshot of the state",
    lane: Lane::Snapshot,
    exclusive: |engine| &engine.snapshots,
    step: Engine::write_snapshot_or_wait,
};

impl Engine {
    /// Has work done that can wait, one step at a time, so that no namespace keeps the thread from
    /// the others.
    pub(crate) fn defer(self: &Arc<Self>, work: DeferredWork) {
        self.schedule(work.lane, work.exclusive, move |engine| {
            match (work.step)(engine, engine.write_load.is_high()) {
                Ok(Upkeep::Done) => {}
                Ok(Upkeep::More) => engine.defer(work),
                Ok(Upkeep::Waiting) => {
                    std::thread::sleep(PAUSE);
                    engine.defer(work);
                }
                Err(error) => report(work.name, Err(error)),
            }
        });
    }

    fn merge_or_wait(self: &Arc<Self>, is_busy: bool) -> Result<Upkeep> {
        let is_overdue = || self.index.n_mergeable() > WAITING_RUNS_MAX;
        if is_busy && !is_overdue() {
            let is_due = self.index.n_mergeable() > 0;
            return Ok(if is_due {
                Upkeep::Waiting
            } else {
                Upkeep::Done
            });
        }
        let pace = Pace::new(self, &is_overdue);
        let merge = || self.index.merge(&|| pace.step());
        let has_merged = self.measure(BackgroundWork::Merge, merge)?;
        Ok(if has_merged {
            Upkeep::More
        } else {
            Upkeep::Done
        })
    }

    fn write_snapshot_or_wait(self: &Arc<Self>, is_busy: bool) -> Result<Upkeep> {
        let limit = self.store.snapshot_limit();
        // One that was being written meanwhile may have done.
        if self.store.snapshot_debt() < limit {
            return Ok(Upkeep::Done);
        }
        let is_overdue = || self.store.snapshot_debt() >= OVERDUE_TIMES * limit;
        if is_busy && !is_overdue() {
            return Ok(Upkeep::Waiting);
        }
        let pace = Pace::new(self, &is_overdue);
        self.write_snapshot(&|| pace.step())?;
        Ok(Upkeep::Done)
    }
}

/// Lets work that is under way rest while much is written, unless it is overdue, and ends it when the
/// database is closed.
struct Pace<'a> {
    engine: &'a Engine,
    is_overdue: &'a dyn Fn() -> bool,
    n_steps: Cell<u32>,
    /// When it rested last, by the steady clock.
    rested: Cell<Duration>,
}

/// So many steps are taken before it is looked at the clock.
const STEPS_PER_LOOK: u32 = 64;

impl<'a> Pace<'a> {
    fn new(engine: &'a Engine, is_overdue: &'a dyn Fn() -> bool) -> Self {
        Self {
            engine,
            is_overdue,
            n_steps: Cell::new(0),
            rested: Cell::new(engine.clock().steady()),
        }
    }

    /// To be called before each small step of the work.
    fn step(&self) -> Result<()> {
        if self.engine.is_closing.load(Ordering::Relaxed) {
            return Err(Error::Closed("work that can wait was given up".into()));
        }
        self.n_steps.set(self.n_steps.get().wrapping_add(1));
        if !self.n_steps.get().is_multiple_of(STEPS_PER_LOOK) {
            return Ok(());
        }
        let clock = self.engine.clock();
        if clock.since(self.rested.get()) >= WORK {
            if self.engine.write_load.is_high() && !(self.is_overdue)() {
                std::thread::sleep(REST);
            }
            self.rested.set(clock.steady());
        }
        Ok(())
    }
}
