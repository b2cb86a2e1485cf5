//! Answers are given only by who may give them.
//!
//! Where several processes share a home, another one may have taken a namespace over, and have written
//! to it. What this one has in memory is stale then. A write is refused by the storage; a read is not.
//! So whoever has read something asks the claim afterwards, and only then answers.

use std::sync::Arc;

use trefoil_core::{Error, Result};

use super::Database;
use crate::database::engine::Engine;
use crate::write::transaction::Executed;

impl Database {
    /// Returns what `look` finds in the database, if it is still this process that may say so.
    pub(crate) fn ask<T>(&self, look: impl FnOnce(&Arc<Engine>) -> Result<T>) -> Result<T> {
        let answer = look(&self.engine()?);
        self.inner.claim.check_held()?;
        answer
    }

    /// Returns what the writer answered. What it has written, or may have, is so whoever owns the
    /// namespace now. A refusal may rest on what is no longer true.
    pub(crate) fn confirm<T>(&self, written: Result<T>) -> Result<T> {
        match written {
            Ok(_) | Err(Error::Unknown { .. }) => written,
            Err(refusal) => Err(self.inner.claim.check_held().err().unwrap_or(refusal)),
        }
    }

    /// Returns what became of transactions.
    pub(super) fn confirm_all(&self, executed: Vec<Result<Executed>>) -> Vec<Result<Executed>> {
        let confirm = |executed: Result<Executed>| match executed {
            Ok(executed) if executed.commit.is_none() => {
                self.inner.claim.check_held().map(|()| executed)
            }
            executed => self.confirm(executed),
        };
        executed.into_iter().map(confirm).collect()
    }

    /// Returns whether another process has the namespace for good.
    pub(crate) fn is_lost(&self) -> bool {
        self.inner.claim.is_lost()
    }
}
