//! Handing a namespace to another process: this one stops to answer for it when that one may begin.

use std::sync::atomic::Ordering;
use std::time::Duration;

use trefoil_core::{Error, Result};

use super::{Database, DatabaseShared};

impl Database {
    /// Returns whether all events are being replaced, which could not go on in another process.
    pub(crate) fn is_being_replaced(&self) -> bool {
        self.inner.is_being_replaced.load(Ordering::SeqCst)
    }

    /// Chooses the process that should have the namespace next. Returns whether there is one.
    pub(crate) fn choose_successor(&self) -> bool {
        let chosen = self.inner.claim.choose_successor();
        let is_chosen = chosen.is_some();
        *self.inner.successor.lock() = chosen;
        is_chosen
    }

    /// Closes the database for the process that was chosen, and returns when that one may have it. What
    /// was handed in before is done; what comes later is told where the namespace is, and so are
    /// subscriptions.
    pub(crate) fn hand_over(&self, patience: Duration) -> Result<()> {
        self.inner.end(patience, || self.inner.claim.hand_over())
    }
}

impl DatabaseShared {
    /// Returns the error of who uses it after it was closed.
    pub(super) fn closed(&self) -> Error {
        // It may be another's because this process was taken for dead.
        let lost = || match self.claim.is_lost() {
            true => self.claim.check_held().err(),
            false => None,
        };
        let moved = self.successor.lock().clone().or_else(lost);
        moved.unwrap_or_else(|| Error::Closed("the database is closed".into()))
    }
}
