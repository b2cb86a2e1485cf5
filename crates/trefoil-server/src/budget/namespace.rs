//! What is held for the clients of one namespace, and what its quotas say about that.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};
use trefoil::{Quota, QuotaKeeper};

use super::Account;
use crate::error::Result;
use crate::limits::PAGE_READS_MAX;

/// What is held for the clients of one namespace.
#[derive(Debug)]
pub(super) struct NamespaceAccount {
    pub(super) held: Account,
    /// The turns in which pages of its subscriptions are read. A namespace whose storage is slow keeps
    /// its own turns, and nobody else's.
    page_turns: Semaphore,
    /// How many connections its quota counts.
    pub(super) connections: Account,
    pub(super) quotas: Arc<QuotaKeeper>,
}

/// A connection that works for a namespace.
#[derive(Debug)]
pub(super) struct NamespaceVisitor {
    pub(super) account: Arc<NamespaceAccount>,
    /// Whether the quota of connections counts it.
    pub(super) is_counted: bool,
}

impl Drop for NamespaceVisitor {
    fn drop(&mut self) {
        if self.is_counted {
            self.account.connections.give_back(1);
        }
    }
}

impl NamespaceAccount {
    pub(super) fn new(quotas: Arc<QuotaKeeper>) -> Self {
        Self {
            held: Account::default(),
            page_turns: Semaphore::new(PAGE_READS_MAX),
            connections: Account::default(),
            quotas,
        }
    }

    /// Lets one more connection in, if it is not counted or the quota allows it.
    pub(super) fn enter(self: Arc<Self>, is_counted: bool) -> Result<NamespaceVisitor> {
        if is_counted && !self.connections.take(1, self.limit(Quota::Connections)) {
            return Err(self.quotas.refuse(Quota::Connections).into());
        }
        Ok(NamespaceVisitor {
            account: self,
            is_counted,
        })
    }

    pub(super) fn limit(&self, quota: Quota) -> usize {
        let limit = self.quotas.limit(quota).unwrap_or(u64::MAX);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}

/// The turns in which pages of the subscriptions of one namespace are read.
#[derive(Debug, Clone)]
pub(crate) struct PageTurns(Arc<NamespaceAccount>);

impl PageTurns {
    pub(super) fn new(account: Arc<NamespaceAccount>) -> Self {
        Self(account)
    }

    /// Waits for the next one.
    pub(super) async fn next(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody closes the semaphore.
        self.0.page_turns.acquire().await.ok()
    }
}
