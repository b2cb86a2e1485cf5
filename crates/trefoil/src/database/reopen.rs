//! Opening a database again in its place, after an error that left it unknown what is on the disk, and
//! closing one that was lost.
//!
//! Recovery finds out: what was acknowledged is there, and of what was not, each commit is there as a
//! whole or not at all. Handles stay; calls meanwhile fail with an error that says to try again.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use trefoil_core::{Error, Result};

use super::{Database, DatabaseShared, let_go};
use crate::database::engine::Engine;
use crate::index::Manifest;

/// How long a database that could not be opened again waits before it tries once more.
const PAUSE: Duration = Duration::from_secs(1);

impl Database {
    /// Opens the database again, which ends its subscriptions with [`Error::Closed`]. It needs that
    /// if it [refuses writes](Self::refuses_writes). Blocks the thread.
    pub fn reopen(&self) -> Result<()> {
        self.inner.reopen()
    }

    /// Returns why the database takes no writes before it is opened again; `None` if it does.
    pub fn refuses_writes(&self) -> Option<String> {
        if self.inner.is_closed.load(Ordering::SeqCst) {
            return None;
        }
        match &*self.inner.engine.read() {
            Some(engine) => engine.writer.queue.poisoned().map(|why| why.to_string()),
            None => Some(reopening().to_string()),
        }
    }
}

impl DatabaseShared {
    fn reopen(self: &Arc<Self>) -> Result<()> {
        let mut generation = self.generation.lock();
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(self.closed());
        }
        self.take_down();
        if !self.is_beside {
            // A switch that failed may have left it unknown which one counts.
            *generation = self.claim.facts()?.generation;
        }
        let cache = &self.background.block_cache;
        let opened = self.claim.open(*generation, cache, &Manifest::reach)?;
        let background = Arc::clone(&self.background);
        let wake = Arc::clone(&self.wake);
        let storage = opened.storage;
        let (engine, _) = Engine::open(*generation, storage, wake, background, &self.options)?;
        self.put(engine)
    }

    /// Closes what is open.
    fn take_down(&self) {
        if let Some(old) = self.engine.write().take() {
            old.close(&reopening());
            let_go(&old);
        }
    }

    /// Makes an engine the one that is used, unless the database was closed meanwhile.
    pub(super) fn put(self: &Arc<Self>, engine: Arc<Engine>) -> Result<()> {
        // Nobody else sets it.
        let _ = engine.database.set(Arc::downgrade(self));
        let mut current = self.engine.write();
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(self.closed());
        }
        *current = Some(engine);
        Ok(())
    }
}

/// Has a database opened again as soon as that is possible, on a thread of its own.
pub(crate) fn reopen_in_background(database: Weak<DatabaseShared>) {
    let spawned = std::thread::Builder::new()
        .name("reopen".to_owned())
        .spawn(move || {
            while let Some(inner) = database.upgrade() {
                if inner.is_closed.load(Ordering::SeqCst) || inner.claim.is_lost() {
                    return;
                }
                match inner.reopen() {
                    Ok(()) => {
                        tracing::info!("opened again after a write that failed");
                        return;
                    }
                    Err(error) => tracing::warn!(%error, "cannot be opened again yet"),
                }
                drop(inner);
                std::thread::sleep(PAUSE);
            }
        });
    if let Err(error) = spawned {
        tracing::error!(%error, "cannot start the thread that opens a database again");
    }
}

/// Closes a database that another process has by now, on a thread of its own, so that nobody waits for
/// anything of it.
pub(super) fn close_in_background(database: Weak<DatabaseShared>) {
    let close = move || {
        let closed = database.upgrade().map(|inner| inner.close(Duration::ZERO));
        if let Some(Err(error)) = closed {
            tracing::warn!(%error, "cannot close what another node has");
        }
    };
    let spawned = std::thread::Builder::new()
        .name("close-lost".to_owned())
        .spawn(close);
    if let Err(error) = spawned {
        tracing::error!(%error, "cannot start the thread that closes what another node has");
    }
}

/// Returns the error of calls between closing and opening.
pub(super) fn reopening() -> Error {
    Error::Closed("the database is being opened again".into())
}
