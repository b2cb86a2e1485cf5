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

    /// Closes the database for another process, if there is one that should have the namespace next, and
    /// returns when that one may have it. What was handed in before is done; what comes later is told
    /// where the namespace is, and so are subscriptions. What is in memory alone is saved if that takes no
    /// longer than `patience`. Returns whether there was another process.
    pub fn hand_over(&self, patience: Duration) -> Result<bool> {
        let Some(elsewhere) = self.inner.claim.choose_successor() else {
            return Ok(false);
        };
        *self.inner.successor.lock() = Some(elsewhere);
        self.inner.end(patience, || self.inner.claim.hand_over())?;
        Ok(true)
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
