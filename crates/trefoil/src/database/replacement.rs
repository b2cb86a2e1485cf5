//! Replacing all events of a database: the others are written beside them first, into the next
//! generation, which then takes over at once. Until it does nothing has changed, however it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use trefoil_core::{Error, Result};
use trefoil_storage::Storage;

use super::{Database, DatabaseShared, Recovery, let_go};
use crate::database::engine::Engine;
use crate::index::Manifest;
use crate::time::wake::Wake;
use crate::write::carry_over;

/// Events that will replace those of a database. If it is dropped, they do not.
#[derive(Debug)]
pub struct Replacement {
    old: Database,
    new: Database,
}

impl Replacement {
    /// Takes the events that come instead.
    pub fn database(&self) -> &Database {
        &self.new
    }

    /// Puts the new events in the place of the old ones, atomically; the state stays as it is.
    /// Subscriptions end with [`Error::Closed`]. If that fails, everything is as it was. Blocks the
    /// thread.
    pub fn finish(self) -> Result<()> {
        let storage = self.take_new()?;
        self.old.make_current(storage)
    }

    /// Closes the new generation, to be opened in the place of the old one.
    fn take_new(&self) -> Result<Arc<dyn Storage>> {
        let engine = self.new.engine()?;
        let storage = Arc::clone(&engine.storage);
        self.new.inner.engine.write().take();
        engine.close(&Error::Closed("the events have taken their place".into()));
        let_go(&engine);
        Ok(storage)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Err(error) = self.new.close() {
            tracing::warn!(%error, "cannot close what was to replace other events");
        }
        let _generation = self.old.inner.generation.lock();
        self.old.remove_other_generations();
        self.old.inner.options.quota_keeper.end_replacement();
        self.old
            .inner
            .is_being_replaced
            .store(false, Ordering::SeqCst);
    }
}

impl Database {
    /// Begins to replace all events. One replacement at a time is possible. Blocks the thread.
    pub fn replace(&self) -> Result<Replacement> {
        let generation = self.inner.generation.lock();
        self.engine()?;
        if self.inner.is_being_replaced.swap(true, Ordering::SeqCst) {
            let what = "the events of this namespace are being replaced already";
            return Err(Error::Overloaded(what.into()));
        }
        // What comes beside the events counts with them, so it must be known what they take.
        if self.inner.options.quota_keeper.limits_disk() {
            self.measure();
        }
        let opened = self.open_beside(*generation + 1);
        let new = opened.inspect_err(|_| {
            self.remove_other_generations();
            self.inner.is_being_replaced.store(false, Ordering::SeqCst);
        })?;
        Ok(Replacement {
            old: self.clone(),
            new,
        })
    }

    /// Removes all events and starts again at position 1; the state stays as it is. Subscriptions
    /// end with [`Error::Closed`]. If the room for starting again is missing, as on a full disk,
    /// everything is as it was. Blocks the thread.
    pub fn clear(&self) -> Result<()> {
        self.replace()?.finish()
    }

    /// Returns a generation that does not count yet, as a database of its own.
    fn open_beside(&self, generation: u64) -> Result<Self> {
        let (claim, options) = (Arc::clone(&self.inner.claim), &self.inner.options);
        let cache = &self.inner.background.block_cache;
        let opened = claim.open(generation, cache, &Manifest::reach)?;
        let storage = opened.storage;
        // Nobody is woken for it.
        let wake = Arc::new(Wake::default());
        let background = Arc::clone(&self.inner.background);
        let (engine, _) =
            Engine::open(generation, storage, Arc::clone(&wake), background, options)?;
        let inner = Arc::new(DatabaseShared {
            claim,
            is_beside: true,
            options: options.clone(),
            background: Arc::clone(&self.inner.background),
            engine: RwLock::new(None),
            may_wait: engine.may_wait,
            is_closed: AtomicBool::new(false),
            successor: Mutex::default(),
            is_being_replaced: AtomicBool::new(false),
            deadline: AtomicU64::new(0),
            wake,
            generation: Mutex::new(generation),
            recovery: Recovery::default(),
        });
        inner.put(engine)?;
        Ok(Self {
            inner,
            trace: None,
            shortage: None,
        })
    }

    /// Makes the generation in `storage`, which is the next one, the current one.
    fn make_current(&self, storage: Arc<dyn Storage>) -> Result<()> {
        let mut generation = self.inner.generation.lock();
        let next = *generation + 1;
        let old = self.engine()?;
        old.close(&Error::Closed("all events were removed".into()));
        let prepared = self.prepare_next(next, storage, &old);
        let engine = prepared.inspect_err(|_| self.go_on(&old))?;
        if let Err(error) = self.inner.claim.switch(next)
            && !self.has_switched(next, &error)?
        {
            engine.close(&error);
            self.go_on(&old);
            return Err(error);
        }
        *generation = next;
        self.inner.put(engine)?;
        let_go(&old);
        Ok(())
    }

    /// Returns which generation counts after `error`: whether it is the next one. If that cannot be
    /// told, the database stays closed until it is opened again.
    fn has_switched(&self, next: u64, error: &Error) -> Result<bool> {
        match self.inner.claim.facts() {
            Ok(facts) => Ok(facts.generation == next),
            Err(unknown) => {
                tracing::error!(%unknown, "cannot tell whether the events were replaced");
                Err(Error::result_lost(format!("replacing the events: {error}")))
            }
        }
    }

    /// Makes the next generation, which has the state of the one before.
    fn prepare_next(
        &self,
        next: u64,
        storage: Arc<dyn Storage>,
        old: &Engine,
    ) -> Result<Arc<Engine>> {
        carry_over(&old.store, storage.as_ref())?;
        let (background, options) = (Arc::clone(&self.inner.background), &self.inner.options);
        let (engine, _) = Engine::open(next, storage, Arc::clone(&old.wake), background, options)?;
        Ok(engine)
    }

    /// Goes on with a generation that was closed to be replaced.
    fn go_on(&self, old: &Engine) {
        if !old.writer.queue.is_idle() {
            // Two must never write to one log: it stays closed until it is opened again.
            tracing::error!("what was to be replaced is still being written to");
            return;
        }
        let background = Arc::clone(&self.inner.background);
        let (storage, wake) = (Arc::clone(&old.storage), Arc::clone(&old.wake));
        let opened = Engine::open(
            old.generation,
            storage,
            wake,
            background,
            &self.inner.options,
        );
        match opened.and_then(|(engine, _)| self.inner.put(engine)) {
            // Those who wait go on with the new one.
            Ok(()) => old.writer.waiting.end(),
            Err(error) => {
                tracing::error!(%error, "cannot go on with what was to be replaced");
            }
        }
    }

    fn remove_other_generations(&self) {
        match self.inner.claim.remove_others() {
            // A namespace that was released may be another database's by now.
            Ok(()) | Err(Error::Closed(_)) => {}
            // They do not count, and opening removes them too.
            Err(error) => tracing::warn!(%error, "cannot remove a generation"),
        }
    }
}
