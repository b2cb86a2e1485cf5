//! Following what other processes change in a home that they share: namespaces come and go, tokens are
//! replaced, and what is due of a namespace may be this process's business by now.

use std::sync::{Arc, Weak};
use std::time::Duration;

use trefoil_core::{Error, NamespaceId, Result};

use super::{Inner, Namespaces};
use crate::home::EntryChanges;

/// How often is asked what has changed.
const PAUSE: Duration = Duration::from_secs(1);
/// Once in so many times is looked for what is due of namespaces that nobody has.
const DUE_EVERY: u64 = 30;
/// What is due within this many milliseconds is looked for: until the next time, and a little longer.
const DUE_AHEAD: u64 = 60_000;

/// Follows the changes in the background, for as long as the namespaces are used.
pub(super) fn start(inner: &Arc<Inner>) -> Result<()> {
    let inner = Arc::downgrade(inner);
    let thread = std::thread::Builder::new().name("trefoil-registry".to_owned());
    let started = thread.spawn(move || {
        let mut rounds = 1..;
        while step(&inner, rounds.next().unwrap_or_default()) {
            std::thread::sleep(PAUSE);
        }
    });
    started
        .map(drop)
        .map_err(|error| Error::io("starting a thread", &error))
}

/// Returns whether there is somebody to do it for.
fn step(inner: &Weak<Inner>, round: u64) -> bool {
    let Some(inner) = inner.upgrade() else {
        return false;
    };
    if let Err(error) = inner.follow() {
        tracing::warn!(%error, "cannot read what other nodes have changed in the registry");
    }
    if round.is_multiple_of(DUE_EVERY)
        && let Err(error) = inner.find_due()
    {
        tracing::warn!(%error, "cannot read what is due of namespaces that nobody has");
    }
    inner.share();
    true
}

impl Namespaces {
    /// Reads now what other processes have changed in the registry, which is otherwise known a second
    /// later. Where nobody shares the home, there is nothing to read.
    pub fn catch_up(&self) -> Result<()> {
        self.inner.follow()
    }
}

impl Inner {
    /// Reads what other processes have changed since the last time. When it returns, that is known.
    pub(super) fn follow(&self) -> Result<()> {
        let _following = self.following.lock();
        let gone = match self.registry.home.changed_entries()? {
            EntryChanges::Some(ids) => self.registry.read_again(&ids)?,
            EntryChanges::All => self.registry.read_all_again()?,
        };
        gone.iter().for_each(|id| self.let_go(id));
        Ok(())
    }

    /// Looks for what is due soon of namespaces that are not open here. Those that another process has, or
    /// should have, are its business.
    pub(super) fn find_due(&self) -> Result<()> {
        let until = self.background.clock.now().millis() + DUE_AHEAD;
        for (id, due) in self.registry.home.due_until(until)? {
            if self.registry.get(id.as_str()).is_ok() && self.pool.opened(&id).is_none() {
                self.closed.note(id, due);
            }
        }
        Ok(())
    }

    /// Closes the database of a namespace that does not exist any more.
    fn let_go(&self, id: &NamespaceId) {
        let closed = self.pool.remove(id, || Ok(()));
        if let Err(error) = closed {
            tracing::warn!(namespace = %id, %error, "cannot close what was deleted elsewhere");
        }
    }
}
