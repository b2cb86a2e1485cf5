//! What is written down of when something is due, so that a database that is closed is opened then.
//!
//! It is written from before the first commit that makes something due until a database without
//! anything due is closed. While the database is open, and after a crash, it says "at once".

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use trefoil_core::Result;

use crate::home::Claim;
use crate::time::NEVER;

/// The due time of one database, as its home keeps it.
#[derive(Debug)]
pub(crate) struct Wake {
    /// `None` for a database that nobody is woken for.
    claim: Option<Arc<dyn Claim>>,
    told: AtomicU64,
    is_marked: AtomicBool,
}

impl Default for Wake {
    /// Returns what keeps nothing, for a database that nobody is woken for.
    fn default() -> Self {
        Self {
            claim: None,
            told: NEVER.into(),
            is_marked: AtomicBool::new(false),
        }
    }
}

impl Wake {
    /// Returns what keeps the due time through `claim`, which says when something is due.
    pub(crate) fn new(claim: Arc<dyn Claim>, due: Option<u64>) -> Self {
        Self {
            claim: Some(claim),
            told: due.unwrap_or(NEVER).into(),
            ..Self::default()
        }
    }

    /// Returns when something is due, as far as that is written down.
    pub(crate) fn told(&self) -> u64 {
        self.told.load(Ordering::SeqCst)
    }

    /// Something will be due at this time: makes sure that this is written down, once.
    pub(crate) fn mark(&self, due: u64) -> Result<()> {
        if due == NEVER || self.is_marked.load(Ordering::Acquire) {
            return Ok(());
        }
        self.set(Some(0))?;
        self.is_marked.store(true, Ordering::Release);
        Ok(())
    }

    /// The database is closed; the next time something is due is this.
    pub(crate) fn close(&self, due: u64) -> Result<()> {
        self.set((due != NEVER).then_some(due))
    }

    fn set(&self, due: Option<u64>) -> Result<()> {
        let Some(claim) = &self.claim else {
            return Ok(());
        };
        claim.set_due(due)?;
        self.told.store(due.unwrap_or(NEVER), Ordering::SeqCst);
        Ok(())
    }
}
