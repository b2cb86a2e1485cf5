//! Following what other processes change in a home that they share: namespaces come and go, and tokens
//! are replaced.

use std::sync::{Arc, Weak};
use std::time::Duration;

use trefoil_core::{Error, NamespaceId, Result};

use super::Inner;
use crate::home::EntryChanges;

/// How often is asked what has changed.
const PAUSE: Duration = Duration::from_secs(1);

/// Follows the changes in the background, for as long as the namespaces are used.
pub(super) fn start(inner: &Arc<Inner>) -> Result<()> {
    let inner = Arc::downgrade(inner);
    let thread = std::thread::Builder::new().name("trefoil-registry".to_owned());
    let started = thread.spawn(move || {
        while step(&inner) {
            std::thread::sleep(PAUSE);
        }
    });
    started
        .map(drop)
        .map_err(|error| Error::io("starting a thread", &error))
}

/// Returns whether there is somebody to do it for.
fn step(inner: &Weak<Inner>) -> bool {
    let Some(inner) = inner.upgrade() else {
        return false;
    };
    if let Err(error) = inner.follow() {
        tracing::warn!(%error, "cannot read what other nodes have changed in the registry");
    }
    true
}

impl Inner {
    /// Reads what other processes have changed since the last time.
    pub(super) fn follow(&self) -> Result<()> {
        let gone = match self.registry.home.changed_entries()? {
            EntryChanges::Some(ids) => self.registry.read_again(&ids)?,
            EntryChanges::All => self.registry.read_all_again()?,
        };
        gone.iter().for_each(|id| self.let_go(id));
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
