//! Who leads the queue of commits.
//!
//! - A caller that blocks leads on its own thread, for one group.
//! - A thread that serves connections leads at the end of its turn. Whatever it could read without
//!   waiting is in the group then, and the replies wake tasks of its own: no thread is woken at all.
//!   It waits for the disk itself, so this is only done while syncs are short and little waits. If
//!   commits come one at a time, it leads at once.
//! - In all other cases a thread of the background leads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trefoil_core::Result;

use super::engine::Engine;
use crate::background::Lane;
use crate::database::reopen_in_background;
use crate::write::{Flight, Led, RunBeside};

/// How many groups a background thread writes before it looks after other namespaces.
const GROUPS_PER_LEAD: usize = 16;

/// How long recent syncs may have taken for a thread that serves connections to wait for the
/// next one. Its other connections wait for as long.
const SHORT_SYNC_MAX: Duration = Duration::from_micros(500);

/// How many commits, and bytes of them, may wait for a thread that serves connections to write them.
/// Staging more takes longer than it takes to wake another thread, which does it while this one reads
/// on and sends replies. Large requests leave it little time for that as it is, unless they come one at
/// a time.
pub(super) const SHORT_GROUP_COMMITS: usize = 128;
const SHORT_GROUP_BYTES: usize = 64 * 1024;

/// After how many turns a group is closed even if each of them brought more.
const TURNS_MAX: usize = 8;

impl Engine {
    /// Leads the queue for a number of groups, then lets another thread lead, so that no caller is
    /// kept for long and no namespace keeps a thread from the others.
    pub(crate) fn lead(self: &Arc<Self>, n_groups: usize) {
        self.lead_beside(n_groups, None);
    }

    /// Leads the queue on a thread of the background. Another one appends what it has staged, unless
    /// the storage may wait: then no thread waits for it at all.
    fn lead_in_background(self: &Arc<Self>) {
        let run_beside = |work| self.background.run(Lane::Append, self.tenant(), work);
        let run_beside: &RunBeside<'_> = &run_beside;
        self.lead_beside(GROUPS_PER_LEAD, (!self.may_wait).then_some(run_beside));
    }

    fn lead_beside(self: &Arc<Self>, n_groups: usize, run_beside: Option<&RunBeside<'_>>) {
        let after_group = |bytes| self.after_group(bytes);
        let led = self.writer.lead(n_groups, run_beside, &after_group);
        if self.follow(led) {
            self.hand_over_lead();
        }
    }

    /// Sees to it that what a leader left to do is done. Returns whether somebody must lead on.
    fn follow(self: &Arc<Self>, led: Led) -> bool {
        let is_more = matches!(led, Led::More);
        if let Led::Later(flight, pending) = led {
            let engine = Arc::clone(self);
            pending.then(move |appended| engine.have_it_landed(*flight, appended));
        }
        if self.writer.wants_reopening.swap(false, Ordering::SeqCst)
            && let Some(database) = self.database.get()
        {
            reopen_in_background(database.clone());
        }
        is_more
    }

    /// Has a group landed, which the storage has completed on a thread of its own.
    fn have_it_landed(self: Arc<Self>, flight: Flight, appended: Result<()>) {
        let (background, tenant) = (Arc::clone(&self.background), self.tenant());
        background.run(Lane::Commit, tenant, move || {
            let after_group = |bytes| self.after_group(bytes);
            let writer = &self.writer;
            let led = writer.land(flight, appended, GROUPS_PER_LEAD, &after_group);
            if self.follow(led) {
                self.hand_over_lead();
            }
        });
    }

    /// Sees to it that somebody leads the queue, for a caller that is asynchronous.
    pub(super) fn have_it_led(self: &Arc<Self>) {
        let Some(host) = self.background.host.get() else {
            return self.hand_over_lead();
        };
        if !self.is_group_short() {
            return self.hand_over_lead();
        }
        if self.writer.leads_at_once() && host.serving_thread().is_some() {
            return self.lead(1);
        }
        let mut lead = TurnLead::new(self);
        let work = host.at_end_of_turn(Box::new(move || lead.end_turn()));
        if let Some(mut work) = work
            && self.writer.is_calm()
        {
            // What waits is that caller's alone, most likely, and a thread that is here already is
            // faster than one that has to be woken.
            host.block(&mut || {
                work();
            });
        }
        // A lead that is left is handed over when it is dropped.
    }

    fn hand_over_lead(self: &Arc<Self>) {
        let engine = Arc::clone(self);
        self.background.run(Lane::Commit, self.tenant(), move || {
            engine.lead_in_background();
        });
    }

    /// Returns whether writing what waits takes no longer than other connections of the same thread
    /// may wait.
    fn is_group_short(&self) -> bool {
        let backlog = self.writer.queue.backlog();
        !self.may_wait
            && self.writer.pace.sync() <= SHORT_SYNC_MAX
            && backlog.n_commits <= SHORT_GROUP_COMMITS
            && backlog.bytes <= SHORT_GROUP_BYTES
            && (!backlog.has_large_requests() || self.writer.is_calm())
            && self.writer.has_room()
    }
}

/// The lead of a queue, in the hands of a thread that serves connections. If it is dropped, a thread
/// of the background leads on.
struct TurnLead {
    engine: Arc<Engine>,
    /// How many requests waited at the end of the last turn.
    n_waiting: usize,
    /// How many turns have ended since the last group.
    n_turns: usize,
    leads: bool,
}

impl TurnLead {
    fn new(engine: &Arc<Engine>) -> Self {
        Self {
            n_waiting: engine.writer.queue.backlog().n_requests,
            engine: Arc::clone(engine),
            n_turns: 0,
            leads: true,
        }
    }

    /// Writes a group, unless the turn brought more requests: then others may be about to come.
    /// Returns whether it leads on.
    fn end_turn(&mut self) -> bool {
        let n_waiting = self.engine.writer.queue.backlog().n_requests;
        self.n_turns += 1;
        if n_waiting > self.n_waiting && self.n_turns < TURNS_MAX {
            self.n_waiting = n_waiting;
            return true;
        }
        if !self.engine.is_group_short() {
            return false;
        }
        // If it panics, nobody leads any more.
        self.leads = false;
        let engine = &self.engine;
        let led = engine
            .writer
            .lead(1, None, &|bytes| engine.after_group(bytes));
        self.leads = engine.follow(led);
        self.n_waiting = engine.writer.queue.backlog().n_requests;
        self.n_turns = 0;
        self.leads
    }
}

impl Drop for TurnLead {
    fn drop(&mut self) {
        if self.leads {
            self.engine.hand_over_lead();
        }
    }
}
