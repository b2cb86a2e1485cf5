//! Replacing all events of a database: the others are written beside them first, into the next
//! generation, which then takes over at once. Until it does nothing has changed, however it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use trefoil_core::{Error, Result};
use trefoil_storage::Storage;

use super::{Database, Inner, Recovery, wait_for_readers};
use crate::database::engine::Engine;
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
        wait_for_readers(&engine);
        Ok(storage)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Err(error) = self.new.close() {
            tracing::warn!(%error, "cannot close what was to replace other events");
        }
        let generation = self.old.inner.generation.lock();
        // A directory that was let go of may be another database's by now.
        if self.old.inner.lock.lock().is_some() {
            self.old.remove_generations_but(*generation);
        }
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
        let opened = self.open_beside(*generation + 1);
        let new = opened.inspect_err(|_| {
            self.remove_generations_but(*generation);
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

    /// A generation that does not count yet, as a database of its own.
    fn open_beside(&self, generation: u64) -> Result<Self> {
        let (home, options) = (self.inner.home.clone(), &self.inner.options);
        let storage = home.open(generation, options)?.storage;
        // Nobody is woken for it.
        let wake = Arc::new(Wake::default());
        let background = Arc::clone(&self.inner.background);
        let (engine, _) =
            Engine::open(generation, storage, Arc::clone(&wake), background, options)?;
        let inner = Arc::new(Inner {
            home,
            options: options.clone(),
            background: Arc::clone(&self.inner.background),
            engine: RwLock::new(None),
            is_closed: AtomicBool::new(false),
            is_being_replaced: AtomicBool::new(false),
            deadline: AtomicU64::new(0),
            wake,
            generation: Mutex::new(generation),
            recovery: Recovery::default(),
            lock: Mutex::new(None),
        });
        inner.put(engine)?;
        Ok(Self { inner })
    }

    /// Makes the generation in `storage`, which is the next one, the current one.
    fn make_current(&self, storage: Arc<dyn Storage>) -> Result<()> {
        let mut generation = self.inner.generation.lock();
        let next = *generation + 1;
        let old = self.engine()?;
        old.close(&Error::Closed("all events were removed".into()));
        let prepared = self.prepare_next(next, storage, &old);
        let engine = prepared.inspect_err(|_| self.go_on(&old))?;
        // If this fails, nobody knows which generation counts before the database is opened again.
        self.inner.home.make_current()?;
        *generation = next;
        self.inner.put(engine)?;
        old.writer.changed.notify(usize::MAX);
        wait_for_readers(&old);
        Ok(())
    }

    /// Makes the next generation, which has the state of the one before.
    fn prepare_next(
        &self,
        next: u64,
        storage: Arc<dyn Storage>,
        old: &Engine,
    ) -> Result<Arc<Engine>> {
        carry_over(&old.store, storage.as_ref())?;
        self.inner.home.prepare_current(next)?;
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
        if let Err(error) = opened.and_then(|(engine, _)| self.inner.put(engine)) {
            tracing::error!(%error, "cannot go on with what was to be replaced");
        }
    }

    fn remove_generations_but(&self, current: u64) {
        if let Err(error) = self.inner.home.remove_others(current) {
            // They do not count, and opening removes them too.
            tracing::warn!(%error, "cannot remove a generation");
        }
    }
}
