//! When policies are applied, and in which steps.
//!
//! A pass goes over all policies. It begins at once when a policy was changed, some seconds after events were
//! written, and when the oldest event that is kept becomes too old. Its steps are short, each at most one
//! commit, and queue up behind the work of other databases.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use trefoil_core::{Error, Result, Timestamp};
use trefoil_storage::Upkeep;

use super::entries::{PolicyProgress, list_policies, progress, revision};
use super::policy::{RetentionPolicy, RetentionTarget};
use super::sweep::{AgeCut, SweepStage, Sweeper};
use crate::background::exclusive::Exclusive;
use crate::database::engine::Engine;
use crate::removal::resolve::RemovalWork;
use crate::state::DurableView;
use crate::time::NEVER;
use crate::write::Work;

/// How many milliseconds there are at least between two passes, unless a policy was changed.
const INTERVAL: u64 = 10_000;
/// The same for a database that must be opened for it.
const INTERVAL_WHEN_CLOSED: u64 = 10 * 60 * 1000;
/// After how many milliseconds it is tried again if something failed.
const RETRY: u64 = 10_000;

/// For how long no event counts as too old after the clock was seen to jump ahead: somebody may set it right
/// before anything is removed for good.
const PAUSE_AFTER_JUMP: Duration = Duration::from_secs(60 * 60);

/// How far a policy may be ahead of what is written down of it, when nothing else is to be written.
const UNSAVED_POSITIONS_MAX: u64 = 100_000;

/// What is known between two passes, and when the next one is due.
#[derive(Debug)]
pub(crate) struct RetentionUpkeep {
    pub(crate) passes: Exclusive,
    /// In milliseconds since 1970.
    due: AtomicU64,
    /// Which policies, and which events, were there when a pass began last.
    seen_revision: AtomicU64,
    seen_head: AtomicU64,
    state: Mutex<RetentionState>,
}

impl Default for RetentionUpkeep {
    fn default() -> Self {
        Self {
            passes: Exclusive::default(),
            due: AtomicU64::new(NEVER),
            seen_revision: AtomicU64::new(0),
            seen_head: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }
}

#[derive(Debug, Default)]
struct RetentionState {
    /// The pass that is under way.
    pass: Option<RetentionPass>,
    /// How far categories were when the last one ended, which may be ahead of what is written down, and the
    /// revision of the policies for which that is so.
    progress: HashMap<String, PolicyProgress>,
    revision: u64,
}

/// What one step removes.
#[derive(Debug)]
pub(crate) struct RetentionWork {
    /// If the policies are others now, this has to be found out again.
    pub(crate) revision: u64,
    pub(crate) removals: Vec<RemovalWork>,
    pub(crate) progress: Vec<(String, PolicyProgress)>,
}

/// A policy that is being applied.
#[derive(Debug)]
pub(super) struct PolicySweep {
    pub(super) target: RetentionTarget,
    pub(super) policy: RetentionPolicy,
    pub(super) progress: PolicyProgress,
    /// What is written down of it.
    saved: PolicyProgress,
    pub(super) stage: SweepStage,
}

impl PolicySweep {
    /// Returns what is to be written down.
    fn unsaved(&self, is_writing: bool) -> Option<(String, PolicyProgress)> {
        let RetentionTarget::Category(name) = &self.target else {
            return None;
        };
        let ahead = |now: u64, saved: u64| now.saturating_sub(saved) >= UNSAVED_POSITIONS_MAX;
        let (now, saved) = (self.progress, self.saved);
        let is_far = ahead(now.aged_to, saved.aged_to) || ahead(now.counted_to, saved.counted_to);
        (is_far || is_writing && now != saved).then(|| (name.clone(), now))
    }
}

/// A pass over all policies.
#[derive(Debug)]
pub(super) struct RetentionPass {
    revision: u64,
    pub(super) now: Timestamp,
    /// Where the log ended when it began.
    pub(super) head: u64,
    sweeps: Vec<PolicySweep>,
    /// How many of them are done.
    n_done: usize,
    /// The streams that have policies of their own.
    pub(super) own: HashSet<String>,
    /// What is too old, by the maximum age.
    pub(super) cuts: HashMap<u64, AgeCut>,
    /// When the oldest event that is kept will be too old.
    pub(super) next: u64,
}

impl Engine {
    /// Returns when policies are to be applied.
    pub(crate) fn retention_deadline(&self) -> u64 {
        self.removal.retention.due.load(Ordering::Relaxed)
    }

    /// Returns when the database must be opened to apply policies, if it is closed now.
    pub(crate) fn retention_deadline_when_closed(&self) -> u64 {
        match self.retention_deadline() {
            NEVER => NEVER,
            due => due.max(self.clock().now().millis() + INTERVAL_WHEN_CLOSED),
        }
    }

    /// Notes that policies are to be applied, if there are others, or new events.
    pub(crate) fn note_retention(&self) {
        let (known, upkeep) = (&self.store.policies, &self.removal.retention);
        let wait = if known.revision() != upkeep.seen_revision.load(Ordering::Relaxed) {
            0
        } else if known.have_any() && self.writer.head() > upkeep.seen_head.load(Ordering::Relaxed)
        {
            INTERVAL
        } else {
            return;
        };
        let due = self.clock().now().millis() + wait;
        upkeep.due.fetch_min(due, Ordering::Relaxed);
    }

    /// It is tried again after a while, unless what follows finds out when.
    pub(crate) fn put_off_retention(&self, now: u64) {
        let upkeep = &self.removal.retention;
        let revision = self.store.policies.revision();
        upkeep.seen_revision.store(revision, Ordering::Relaxed);
        upkeep.due.store(now + RETRY, Ordering::Relaxed);
    }

    /// Applies all policies.
    pub(crate) fn apply_all_policies(self: &Arc<Self>) -> Result<()> {
        while self.apply_policies(false)? == Upkeep::More {}
        Ok(())
    }

    /// Takes one step of applying policies.
    pub(crate) fn apply_policies(self: &Arc<Self>, is_busy: bool) -> Result<Upkeep> {
        let mut state = self.removal.retention.state.lock();
        let pass = match state.pass.take() {
            Some(pass) => Ok(pass),
            None => self.begin_pass(&state),
        };
        let taken = pass.and_then(|mut pass| Ok((self.take_pass_on(&mut pass)?, pass)));
        match taken {
            Ok((true, pass)) => {
                self.end_pass(&mut state, pass);
                Ok(Upkeep::Done)
            }
            Ok((false, pass)) => {
                state.pass = Some(pass);
                // Others write meanwhile.
                Ok(if is_busy {
                    Upkeep::Waiting
                } else {
                    Upkeep::More
                })
            }
            // Something was changed meanwhile: it begins anew.
            Err(Error::WatchedKeyChanged) => Ok(Upkeep::More),
            Err(error) => {
                self.put_off_retention(self.clock().now().millis());
                Err(error)
            }
        }
    }

    fn begin_pass(&self, state: &RetentionState) -> Result<RetentionPass> {
        let head = self.writer.head();
        let entries = DurableView::new(&self.store);
        let revision = revision(&entries)?;
        let upkeep = &self.removal.retention;
        upkeep.seen_head.store(head, Ordering::Relaxed);
        let (mut sweeps, mut own) = (Vec::new(), HashSet::new());
        let pause = self.pause_after_jump();
        for (target, mut policy) in list_policies(&entries, None, usize::MAX)? {
            let (saved, known) = match &target {
                RetentionTarget::Category(name) => (
                    progress(&entries, name)?,
                    state
                        .progress
                        .get(name)
                        .filter(|_| state.revision == revision),
                ),
                RetentionTarget::Stream(name) => {
                    own.insert(name.clone());
                    (PolicyProgress::default(), None)
                }
            };
            if pause.is_some() {
                policy.max_age = None;
            }
            sweeps.push(PolicySweep {
                target,
                policy,
                progress: known.copied().unwrap_or(saved),
                saved,
                stage: SweepStage::Age,
            });
        }
        let now = self.clock().now();
        Ok(RetentionPass {
            revision,
            now,
            head,
            sweeps,
            n_done: 0,
            own,
            cuts: HashMap::new(),
            next: pause.map_or(NEVER, |pause| now.millis() + pause),
        })
    }

    /// Returns for how many milliseconds no event counts as too old, if that is so.
    fn pause_after_jump(&self) -> Option<u64> {
        let since = self.clock().since_jump_ahead()?;
        let left = PAUSE_AFTER_JUMP.checked_sub(since)?;
        u64::try_from(left.as_millis()).ok()
    }

    /// Takes a pass one step on. Returns whether it is over.
    fn take_pass_on(self: &Arc<Self>, pass: &mut RetentionPass) -> Result<bool> {
        if self.is_closing.load(Ordering::Relaxed) {
            return Err(Error::Closed("policies are not applied any more".into()));
        }
        let mut sweeps = std::mem::take(&mut pass.sweeps);
        let first = pass.n_done;
        let mut sweeper = Sweeper::new(self, pass);
        let mut n_done = first;
        while n_done < sweeps.len() && sweeper.has_room() {
            n_done += usize::from(sweeper.look(&mut sweeps[n_done])?);
        }
        let removals = sweeper.into_removals();
        let is_over = n_done == sweeps.len();
        let is_writing = !removals.is_empty();
        let mut changed = Vec::new();
        for sweep in sweeps.iter_mut().skip(first).take(n_done - first + 1) {
            if let Some(unsaved) = sweep.unsaved(is_writing) {
                sweep.saved = unsaved.1;
                changed.push(unsaved);
            }
        }
        (pass.sweeps, pass.n_done) = (sweeps, n_done);
        if is_writing || !changed.is_empty() {
            let n_events = removals.iter().map(RemovalWork::n_events).sum();
            self.write(Work::Retain(RetentionWork {
                revision: pass.revision,
                removals,
                progress: changed,
            }))?;
            self.background.stats.count_removed(n_events);
        }
        Ok(is_over)
    }

    fn end_pass(&self, state: &mut RetentionState, pass: RetentionPass) {
        let upkeep = &self.removal.retention;
        let earliest = self.clock().now().millis() + INTERVAL;
        upkeep.due.store(pass.next.max(earliest), Ordering::Relaxed);
        upkeep.seen_revision.store(pass.revision, Ordering::Relaxed);
        state.revision = pass.revision;
        let categories = pass.sweeps.into_iter();
        let categories = categories.filter_map(|sweep| match sweep.target {
            RetentionTarget::Category(name) => Some((name, sweep.progress)),
            RetentionTarget::Stream(_) => None,
        });
        state.progress = categories.collect();
        // What came in the meantime is not lost.
        self.note_retention();
        self.background.timer.note(self.retention_deadline());
    }
}
