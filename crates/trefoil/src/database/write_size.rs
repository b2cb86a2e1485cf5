//! How much a write takes, compared with the quotas of its namespace before it is queued.

use std::time::Duration;

use trefoil_core::{Commit, ImportedEvent, Result};
use trefoil_state::CommandAccess;

use super::Database;
use crate::namespaces::quota::{WriteSize, WrittenLog};
use crate::write::transaction::{Step, Transaction};

impl Database {
    pub(super) fn take_commit(&self, commit: &Commit) -> Result<()> {
        self.take(|| WriteSize {
            events: commit.events.len() as u64,
            bytes: commit.events.iter().map(|event| event.size() as u64).sum(),
            takes_room: true,
            may_owe: false,
        })
    }

    pub(super) fn take_import(&self, events: &[ImportedEvent], may_owe: bool) -> Result<()> {
        self.take(|| WriteSize {
            events: events.len() as u64,
            bytes: events.iter().map(|event| event.event.size() as u64).sum(),
            takes_room: true,
            may_owe,
        })
    }

    pub(super) fn take_transaction(&self, transaction: &Transaction) -> Result<()> {
        self.take(|| {
            let steps = &transaction.steps;
            // A tracked position is stored, and so are the replies to a transaction with an id.
            let leaves_more = transaction.tracking.is_some() || transaction.id.is_some();
            let is_stored = leaves_more || steps.iter().any(writes);
            WriteSize {
                events: steps.iter().filter(|step| may_append(step)).count() as u64,
                bytes: match is_stored {
                    true => transaction.size() as u64,
                    false => 0,
                },
                takes_room: leaves_more || steps.iter().any(takes_room),
                may_owe: false,
            }
        })
    }

    /// Returns how long an import should wait before it goes on, so that it keeps to the events per second
    /// that the namespace may append.
    pub fn import_pause(&self) -> Duration {
        let now = self.inner.background.clock.steady();
        self.inner.options.quota_keeper.pause(now)
    }

    /// Takes what a write needs of the quotas, or refuses it.
    fn take(&self, size: impl FnOnce() -> WriteSize) -> Result<()> {
        let keeper = &self.inner.options.quota_keeper;
        if !keeper.limits_writes() {
            return Ok(());
        }
        let background = &self.inner.background;
        let now = background.clock.steady();
        let log = self.written_log();
        if keeper.must_measure(log, now) {
            let database = self.clone();
            // If too much waits already, it is tried again a second later.
            let _ = background.look(self.engine()?.reader(), move || database.measure());
        }
        keeper.take(log, size(), now)
    }

    fn written_log(&self) -> WrittenLog {
        match self.inner.is_beside {
            true => WrittenLog::Beside,
            false => WrittenLog::Current,
        }
    }

    /// Finds out how much room is taken on disk.
    pub(super) fn measure(&self) {
        let keeper = &self.inner.options.quota_keeper;
        match self.disk_bytes() {
            Ok(bytes) => keeper.measured(self.written_log(), bytes),
            Err(error) => tracing::debug!(%error, "the room on disk is not known"),
        }
    }
}

/// A command of an application may append events, which is not known before: it counts as one.
fn may_append(step: &Step) -> bool {
    match step {
        Step::Append { .. } => true,
        Step::Call(call) => {
            let spec = call.spec();
            spec.is_of_application() && spec.access == CommandAccess::Write
        }
    }
}

fn writes(step: &Step) -> bool {
    match step {
        Step::Append { .. } => true,
        Step::Call(call) => call.spec().access == CommandAccess::Write,
    }
}

fn takes_room(step: &Step) -> bool {
    match step {
        Step::Append { .. } => true,
        Step::Call(call) => call.spec().takes_room(),
    }
}
