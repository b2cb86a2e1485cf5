//! Cleaning in the background: what has expired, and garbage.
//!
//! It is done in small steps, each a commit of its own. A database with more to do queues up again
//! behind the others, and expiries and timers do not wait for garbage: they are in time however much
//! was deleted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trefoil_core::Result;

use crate::background::Lane;
use crate::background::deferred::{DROPS, REDACTIONS, RETENTION};
use crate::database::engine::{Engine, report, unanswered};
use crate::state::StateStore;
use crate::time::NEVER;
use crate::time::agenda::{Agenda, Chore};
use crate::time::timer::Sleeper;
use crate::write::WriteRequest;

/// After how many milliseconds cleaning that failed is tried again.
const RETRY_PAUSE: u64 = 1000;

/// How many milliseconds after it is closed a database is opened for garbage alone.
const GARBAGE_PATIENCE: u64 = 10_000;

/// How many steps are taken at most before a database that was opened for them may be closed again.
const STEPS_MAX: usize = 64;

impl Sleeper for Engine {
    fn deadline(&self) -> u64 {
        let StateStore {
            expiries, garbage, ..
        } = &*self.store;
        let cleaning = expiries.next_start().min(garbage.next_start());
        cleaning
            .min(self.quiet_deadline())
            .min(self.removal.deadline())
            .min(self.retention_deadline())
    }

    fn wake(self: Arc<Self>, now: u64) {
        if self.store.expiries.next_start() <= now {
            self.schedule_expiring();
        }
        if self.store.garbage.next_start() <= now {
            self.schedule_collecting();
        }
        if self.quiet_deadline() <= now {
            self.schedule_quiet_checkpoint();
        }
        if self.drop_deadline() <= now {
            self.put_off_dropping(now);
            self.defer(DROPS);
        }
        if self.redact_deadline() <= now {
            self.put_off_redacting(now);
            self.defer(REDACTIONS);
        }
        if self.retention_deadline() <= now {
            self.put_off_retention(now);
            self.defer(RETENTION);
        }
    }
}

impl Engine {
    /// Returns when a database must be opened again if it is closed now.
    pub(crate) fn deadline_when_closed(&self) -> u64 {
        let garbage = match self.store.garbage.deadline() {
            NEVER => NEVER,
            deadline => deadline.max(self.clock().now().millis() + GARBAGE_PATIENCE),
        };
        let cleaning = self.store.expiries.deadline().min(garbage);
        cleaning
            .min(self.removal.deadline_when_closed())
            .min(self.retention_deadline_when_closed())
    }

    fn schedule_expiring(self: &Arc<Self>) {
        self.store.expiries.begin();
        self.schedule(
            Lane::Expire,
            |engine| &engine.expiring,
            |engine| {
                if !engine.clean(&engine.store.expiries) {
                    engine.schedule_expiring();
                }
            },
        );
    }

    fn schedule_collecting(self: &Arc<Self>) {
        self.store.garbage.begin();
        self.schedule(
            Lane::Collect,
            |engine| &engine.collecting,
            |engine| {
                engine.clean(&engine.store.garbage);
            },
        );
    }

    /// Cleans what has expired and some garbage, on this thread, for a database that was opened for
    /// that.
    pub(crate) fn settle(self: &Arc<Self>) {
        for _ in 0..STEPS_MAX {
            let is_closing = self.is_closing.load(Ordering::SeqCst);
            if is_closing || self.expiring.perform(|| self.clean(&self.store.expiries)) {
                break;
            }
        }
        self.collecting.perform(|| self.clean(&self.store.garbage));
        if self.retention_deadline() <= self.clock().now().millis() {
            let passes = &self.removal.retention.passes;
            let applied = passes.perform(|| self.apply_all_policies());
            report("applying retention policies", applied);
        }
        // They need not wait for others: it would have to be opened again for them.
        report("redaction of events", self.finish_redactions());
        if self.drop_deadline() <= self.clock().now().millis() {
            let dropped = self.removal.drops.perform(|| self.drop_all_due());
            report("dropping of removed events", dropped);
        }
    }

    /// Takes one step. Returns whether another one has to wait.
    fn clean(self: &Arc<Self>, agenda: &Agenda) -> bool {
        let attempt = CleaningAttempt {
            engine: self,
            agenda,
        };
        let began = self.clock().steady();
        match self.take_step(agenda.begin()) {
            Ok((time, rest)) => {
                // Others write as long as this took before it goes on with garbage.
                let is_garbage = matches!(rest, Chore::Garbage(_));
                let pause = if is_garbage {
                    self.clock().since(began)
                } else {
                    Duration::ZERO
                };
                let now = self.clock().now().millis();
                let earliest = now + u64::try_from(pause.as_millis()).unwrap_or(0);
                agenda.finish(time.max(earliest), rest);
            }
            Err(error) => report("cleaning", Err(error)),
        }
        drop(attempt);
        let next_start = agenda.next_start();
        self.background.timer.note(next_start);
        next_start > self.clock().now().millis()
    }

    /// Returns when the rest is due.
    fn take_step(self: &Arc<Self>, chore: Chore) -> Result<(u64, Chore)> {
        let (reply, answer) = oneshot::channel();
        let mut request = WriteRequest::clean(chore, reply);
        self.read_ahead(&mut request);
        if self.writer.queue.push(request)? {
            self.lead(1);
        }
        let cleaned = answer.recv().unwrap_or_else(|_| Err(unanswered()))?;
        Ok((cleaned.next, cleaned.rest))
    }
}

/// Gives up what was begun if it is not finished: after an error, and after a panic.
struct CleaningAttempt<'a> {
    engine: &'a Engine,
    agenda: &'a Agenda,
}

impl Drop for CleaningAttempt<'_> {
    fn drop(&mut self) {
        let now = self.engine.clock().now().millis();
        self.agenda.give_up(now + RETRY_PAUSE);
    }
}
