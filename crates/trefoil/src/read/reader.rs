//! Reading events of the log, for callers that wait for the disk and for those that must not.

use std::sync::atomic::{AtomicBool, Ordering};

use trefoil_core::{Error, Result};
use trefoil_storage::{Storage, VisitItem, VisitLabel};

/// Whether something that must not wait for the disk would have had to.
#[derive(Debug, Default)]
pub(crate) struct ReadShortage(AtomicBool);

impl ReadShortage {
    pub(crate) fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns what ends the read. Whoever asked for it does not see that.
    fn note(&self) -> Error {
        self.0.store(true, Ordering::Relaxed);
        Error::Overloaded("the events would have to be waited for".into())
    }
}

/// The log, to be read by one caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogReader<'a> {
    storage: &'a dyn Storage,
    /// Where it says that it would have to wait, if it must not.
    shortage: Option<&'a ReadShortage>,
}

impl<'a> LogReader<'a> {
    /// Waits for the disk unless that is to be noted.
    pub(crate) fn new(storage: &'a dyn Storage, shortage: Option<&'a ReadShortage>) -> Self {
        Self { storage, shortage }
    }

    /// Hands the items at these positions to `visit`.
    pub(crate) fn read(&self, positions: &[u64], visit: &mut VisitItem<'_>) -> Result<()> {
        let Some(shortage) = self.shortage else {
            return self.storage.read(positions, visit);
        };
        match self.storage.read_at_hand(positions, visit)? {
            true => Ok(()),
            false => Err(shortage.note()),
        }
    }

    /// Hands the labels of the items at these positions to `visit`.
    pub(crate) fn read_labels(&self, positions: &[u64], visit: &mut VisitLabel<'_>) -> Result<()> {
        match self.shortage {
            None => self.storage.read_labels(positions, visit),
            Some(shortage) => Err(shortage.note()),
        }
    }
}

impl<'a> From<&'a dyn Storage> for LogReader<'a> {
    fn from(storage: &'a dyn Storage) -> Self {
        Self::new(storage, None)
    }
}
