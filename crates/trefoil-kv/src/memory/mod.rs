//! An engine in memory: for tests, and for a server that forgets everything when it stops.
//!
//! A [`MemoryEngine`] is a connection to data that other connections share, each like a node of a
//! cluster. By default every call is done at once. For tests a connection can be slow, its stores can
//! take little at a time, and [`Fates`] decide about each call: whether it is done, fails, or is held
//! back. What they decide comes from a seed, so that a test can be repeated.

mod fate;
mod handle;
mod objects;
mod store;
mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use trefoil_core::Timestamp;

use crate::contract::{Kv, KvEngine, KvError, KvLimits, KvObjects, KvResult};

pub use fate::{CutOff, EngineCall, Fate, Fates, SeededFates};
use handle::MemoryKv;
pub use objects::MemoryObjects;
use objects::ObjectTable;
use store::MemoryStore;

/// What stores in memory take unless a test wants less.
const LIMITS: KvLimits = KvLimits {
    key_bytes: 65_535,
    value_bytes: 1024 * 1024,
    batch_bytes: 16 * 1024 * 1024,
};

/// What a connection is like.
#[derive(Debug)]
pub struct MemoryOptions {
    /// What stores take.
    pub limits: KvLimits,
    /// How long each call takes.
    pub delay: Duration,
    /// Decides what becomes of each call; `None`: each is done.
    pub fates: Option<Box<dyn Fates>>,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            limits: LIMITS,
            delay: Duration::ZERO,
            fates: None,
        }
    }
}

/// Stores and objects in memory, as one connection sees them.
#[derive(Debug, Clone)]
pub struct MemoryEngine {
    data: Arc<MemoryData>,
    link: Arc<Link>,
    objects: MemoryObjects,
}

/// What all connections share.
#[derive(Debug, Default)]
struct MemoryData {
    stores: Mutex<BTreeMap<String, Arc<MemoryStore>>>,
    objects: Mutex<ObjectTable>,
}

/// What is between a node and the data.
#[derive(Debug)]
struct Link {
    limits: KvLimits,
    delay: Duration,
    fates: Mutex<Option<Box<dyn Fates>>>,
    n_calls: AtomicU64,
}

impl Link {
    /// Decides about a call.
    fn fate(&self, call: EngineCall) -> Fate {
        self.n_calls.fetch_add(1, Ordering::SeqCst);
        match &mut *self.fates.lock() {
            Some(fates) => fates.next(call),
            None => Fate::Done,
        }
    }

    /// Takes as long as a call takes.
    fn wait(&self) {
        if !self.delay.is_zero() {
            std::thread::sleep(self.delay);
        }
    }

    /// Lets a call pass that changes nothing.
    fn read(&self, call: EngineCall) -> KvResult<()> {
        self.wait();
        match self.fate(call) {
            Fate::FailsBefore | Fate::FailsAfter => Err(unreachable()),
            Fate::Done | Fate::Held | Fate::Late => Ok(()),
        }
    }

    /// Does something that others see, or does not, or does it and says that nobody knows.
    fn change<T>(&self, call: EngineCall, change: impl FnOnce() -> KvResult<T>) -> KvResult<T> {
        self.wait();
        match self.fate(call) {
            Fate::FailsBefore => Err(unreachable()),
            Fate::FailsAfter => {
                change()?;
                Err(unknown())
            }
            Fate::Done | Fate::Held | Fate::Late => change(),
        }
    }
}

fn unreachable() -> KvError {
    KvError::Unavailable("the engine in memory was told to fail".to_owned())
}

fn unknown() -> KvError {
    KvError::Unknown("the engine in memory was told to lose its answer".to_owned())
}

impl Default for MemoryEngine {
    fn default() -> Self {
        Self::over(Arc::default(), MemoryOptions::default())
    }
}

impl MemoryEngine {
    /// Returns an engine without data.
    pub fn new(options: MemoryOptions) -> Self {
        Self::over(Arc::default(), options)
    }

    /// Returns another connection to the same data.
    pub fn connect(&self, options: MemoryOptions) -> Self {
        Self::over(Arc::clone(&self.data), options)
    }

    fn over(data: Arc<MemoryData>, options: MemoryOptions) -> Self {
        let link = Arc::new(Link {
            limits: options.limits,
            delay: options.delay,
            fates: Mutex::new(options.fates),
            n_calls: AtomicU64::new(0),
        });
        let objects = MemoryObjects::new(Arc::clone(&data), Arc::clone(&link));
        Self {
            data,
            link,
            objects,
        }
    }

    /// Decides otherwise from now on, on this connection.
    pub fn set_fates(&self, fates: Option<Box<dyn Fates>>) {
        *self.link.fates.lock() = fates;
    }

    /// Says what time it is by the clock of the engine, for all connections.
    pub fn set_time(&self, time: Timestamp) {
        self.data.objects.lock().time = Some(time);
    }

    /// Returns how many calls there were on this connection.
    pub fn n_calls(&self) -> u64 {
        self.link.n_calls.load(Ordering::SeqCst)
    }

    /// Lets the batches go that are held back, of all connections. Those of a writer that was fenced
    /// meanwhile come to nothing.
    pub fn let_go(&self) {
        let stores: Vec<_> = self.data.stores.lock().values().cloned().collect();
        stores.iter().for_each(|store| store.let_go());
    }
}

impl KvEngine for MemoryEngine {
    fn objects(&self) -> &dyn KvObjects {
        &self.objects
    }

    fn open(&self, name: &str, epoch: u64) -> KvResult<Arc<dyn Kv>> {
        let store = self.link.change(EngineCall::Open, || {
            let mut stores = self.data.stores.lock();
            let store = Arc::clone(stores.entry(name.to_owned()).or_default());
            drop(stores);
            store.take_over(epoch)?;
            Ok(store)
        })?;
        Ok(MemoryKv::open(&store, Arc::clone(&self.link), epoch))
    }

    fn erase(&self, name: &str) -> KvResult<()> {
        self.link.change(EngineCall::Erase, || {
            if let Some(store) = self.data.stores.lock().remove(name) {
                store.end();
            }
            Ok(())
        })
    }
}
