//! A store that is open: what one writer sees of it, and the batches that it has on their way.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock, mpsc};

use bytes::Bytes;
use parking_lot::Mutex;
use trefoil_core::Direction;

use crate::contract::{Kv, KvBatch, KvDone, KvError, KvLimits, KvPage, KvRead, KvResult};

use super::store::MemoryStore;
use super::{EngineCall, Fate, Link, unknown, unreachable};

/// A handle to a store.
#[derive(Debug)]
pub(super) struct MemoryKv {
    writer: Arc<StoreWriter>,
    /// Takes batches to the store on a connection that is slow.
    slowly: Option<Mutex<mpsc::Sender<Trip>>>,
}

/// What outlives the handle for as long as batches are on their way.
#[derive(Debug)]
pub(super) struct StoreWriter {
    store: Arc<MemoryStore>,
    link: Arc<Link>,
    epoch: u64,
    state: Mutex<StoreWriterState>,
    /// What is read once another writer has the store: what was there when it took over. A node
    /// that has lost a store may not know it yet.
    stale: OnceLock<HeldVersion>,
}

#[derive(Default)]
struct StoreWriterState {
    /// Why the handle is of no more use.
    ended: Option<KvError>,
    /// Batches that are held back, and those behind them.
    waiting: VecDeque<Trip>,
    on_lost: Vec<Box<dyn FnOnce() + Send>>,
}

impl fmt::Debug for StoreWriterState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StoreWriterState")
            .field("ended", &self.ended)
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

/// A batch on its way.
struct Trip {
    /// `None` once it was applied.
    batch: Option<KvBatch>,
    /// What became of it, if it is to be answered late.
    late: Option<KvResult<()>>,
    fate: Fate,
    done: KvDone,
}

/// A version of a store that stays readable.
#[derive(Debug)]
struct HeldVersion {
    store: Arc<MemoryStore>,
    version: u64,
}

impl HeldVersion {
    fn newest(store: &Arc<MemoryStore>) -> Self {
        let version = store.map.lock().hold();
        let store = Arc::clone(store);
        Self { store, version }
    }
}

impl Drop for HeldVersion {
    fn drop(&mut self) {
        self.store.map.lock().let_go(self.version);
    }
}

impl MemoryKv {
    pub(super) fn open(store: &Arc<MemoryStore>, link: Arc<Link>, epoch: u64) -> Arc<dyn Kv> {
        let is_slow = !link.delay.is_zero();
        let writer = Arc::new(StoreWriter {
            store: Arc::clone(store),
            link,
            epoch,
            state: Mutex::default(),
            stale: OnceLock::new(),
        });
        store.add(&writer);
        let slowly = is_slow.then(|| Mutex::new(writer.travel_slowly()));
        Arc::new(Self { writer, slowly })
    }
}

impl StoreWriter {
    /// Starts a thread that takes batches to the store, all that have gathered at a time. It ends when
    /// the sender is dropped.
    fn travel_slowly(self: &Arc<Self>) -> mpsc::Sender<Trip> {
        let (sender, trips) = mpsc::channel::<Trip>();
        let writer = Arc::clone(self);
        std::thread::spawn(move || {
            while let Ok(first) = trips.recv() {
                let together: Vec<Trip> = std::iter::once(first).chain(trips.try_iter()).collect();
                writer.link.wait();
                together.into_iter().for_each(|trip| writer.arrive(trip));
            }
        });
        sender
    }

    /// Takes a batch at the store.
    fn arrive(&self, mut trip: Trip) {
        let mut state = self.state.lock();
        if let Some(error) = state.ended.clone() {
            drop(state);
            return (trip.done)(Err(error));
        }
        if state.waiting.is_empty() && !matches!(trip.fate, Fate::Held | Fate::Late) {
            drop(state);
            return self.finish(trip);
        }
        if state.waiting.is_empty() && trip.fate == Fate::Late {
            let batch = trip.batch.take().unwrap_or_default();
            trip.late = Some(self.store.apply(self.epoch, batch));
        }
        state.waiting.push_back(trip);
    }

    /// Ends the trip of a batch.
    fn finish(&self, trip: Trip) {
        let outcome = match (trip.batch, trip.fate) {
            (_, Fate::FailsBefore) => Err(unreachable()),
            (None, _) => trip.late.unwrap_or(Ok(())),
            (Some(batch), fate) => match self.store.apply(self.epoch, batch) {
                Ok(()) if fate == Fate::FailsAfter => Err(unknown()),
                applied => applied,
            },
        };
        if let Err(error @ (KvError::Fenced | KvError::Unknown(_))) = &outcome {
            self.end(error.clone());
        }
        (trip.done)(outcome);
    }

    /// Lets batches go that were held back.
    pub(super) fn let_go(&self) {
        loop {
            let mut state = self.state.lock();
            let Some(trip) = state.waiting.pop_front() else {
                return;
            };
            drop(state);
            self.finish(trip);
        }
    }

    /// Says of the batches that are held back that nobody knows what becomes of them. They stay on
    /// their way: a node may be gone before what it sent arrives.
    fn leave_behind(&self) {
        let waiting = std::mem::take(&mut self.state.lock().waiting);
        for Trip { batch, done, .. } in waiting {
            if let Some(batch) = batch {
                self.store.leave_behind(self.epoch, batch);
            }
            done(Err(unknown()));
        }
    }

    /// Makes the handle useless.
    fn end(&self, reason: KvError) {
        let mut state = self.state.lock();
        state.ended.get_or_insert(reason);
        let told = std::mem::take(&mut state.on_lost);
        drop(state);
        told.into_iter().for_each(|notify| notify());
    }

    /// Takes the store away. What was held back stays on its way, and comes too late.
    pub(super) fn fence(&self) {
        self.stale.get_or_init(|| HeldVersion::newest(&self.store));
        self.end(KvError::Fenced);
    }

    fn version(&self) -> u64 {
        match self.stale.get() {
            Some(held) => held.version,
            None => self.store.map.lock().version(),
        }
    }

    fn check_size(&self, batch: &KvBatch) -> KvResult<()> {
        let limits = &self.link.limits;
        let mut n_bytes = 0;
        for (key, value) in &batch.changes {
            let value = value.as_ref().map_or(0, Bytes::len);
            n_bytes += key.len() + value;
            let parts = [(key.len(), limits.key_bytes), (value, limits.value_bytes)];
            if let Some((_, limit)) = parts.into_iter().find(|(bytes, limit)| bytes > limit) {
                return Err(KvError::TooLarge { limit });
            }
        }
        match n_bytes > limits.batch_bytes {
            true => Err(KvError::TooLarge {
                limit: limits.batch_bytes,
            }),
            false => Ok(()),
        }
    }
}

/// Reads one version of a store over a connection.
fn get(
    held: &MemoryStore,
    link: &Link,
    version: u64,
    keys: &[&[u8]],
) -> KvResult<Vec<Option<Bytes>>> {
    link.read(EngineCall::Read)?;
    let map = held.map.lock();
    Ok(keys.iter().map(|key| map.get(key, version)).collect())
}

fn floor(
    held: &MemoryStore,
    link: &Link,
    version: u64,
    ranges: &[(&[u8], &[u8])],
) -> KvResult<Vec<Option<(Bytes, Bytes)>>> {
    link.read(EngineCall::Read)?;
    let map = held.map.lock();
    let floor = |(from, to): &(&[u8], &[u8])| map.floor(from, to, version);
    Ok(ranges.iter().map(floor).collect())
}

impl KvRead for MemoryKv {
    fn get(&self, keys: &[&[u8]]) -> KvResult<Vec<Option<Bytes>>> {
        let writer = &self.writer;
        get(&writer.store, &writer.link, writer.version(), keys)
    }

    fn floor(&self, ranges: &[(&[u8], &[u8])]) -> KvResult<Vec<Option<(Bytes, Bytes)>>> {
        let writer = &self.writer;
        floor(&writer.store, &writer.link, writer.version(), ranges)
    }

    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        max_bytes: usize,
        _is_kept: bool,
    ) -> KvResult<KvPage> {
        let writer = &self.writer;
        writer.link.read(EngineCall::Read)?;
        let version = writer.version();
        let map = writer.store.map.lock();
        Ok(map.scan((from, to), direction, max_bytes, version))
    }
}

impl Kv for MemoryKv {
    fn limits(&self) -> KvLimits {
        self.writer.link.limits
    }

    fn commit(&self, batch: KvBatch, done: KvDone) {
        let fate = self.writer.link.fate(EngineCall::Commit);
        if let Err(error) = self.writer.check_size(&batch) {
            return done(Err(error));
        }
        let trip = Trip {
            batch: Some(batch),
            late: None,
            fate,
            done,
        };
        match &self.slowly {
            None => self.writer.arrive(trip),
            Some(slowly) => {
                if let Err(mpsc::SendError(trip)) = slowly.lock().send(trip) {
                    (trip.done)(Err(unreachable()));
                }
            }
        }
    }

    fn moment(&self) -> KvResult<Arc<dyn KvRead>> {
        self.writer.link.read(EngineCall::Read)?;
        let held = match self.writer.stale.get() {
            Some(stale) => {
                let store = Arc::clone(&stale.store);
                store.map.lock().hold_again(stale.version);
                let version = stale.version;
                HeldVersion { store, version }
            }
            None => HeldVersion::newest(&self.writer.store),
        };
        let link = Arc::clone(&self.writer.link);
        Ok(Arc::new(MemoryMoment { held, link }))
    }

    fn on_lost(&self, notify: Box<dyn FnOnce() + Send>) {
        let mut state = self.writer.state.lock();
        if state.ended.is_none() {
            state.on_lost.push(notify);
            return;
        }
        drop(state);
        notify();
    }

    fn close(&self) -> KvResult<()> {
        let mut state = self.writer.state.lock();
        // Nobody has lost anything: the handle was given up.
        state.on_lost.clear();
        let reason = KvError::Unavailable("the store was closed".to_owned());
        state.ended.get_or_insert(reason);
        drop(state);
        self.writer.leave_behind();
        Ok(())
    }
}

impl Drop for MemoryKv {
    fn drop(&mut self) {
        self.writer.leave_behind();
    }
}

/// A store as it was.
#[derive(Debug)]
struct MemoryMoment {
    held: HeldVersion,
    link: Arc<Link>,
}

impl KvRead for MemoryMoment {
    fn get(&self, keys: &[&[u8]]) -> KvResult<Vec<Option<Bytes>>> {
        get(&self.held.store, &self.link, self.held.version, keys)
    }

    fn floor(&self, ranges: &[(&[u8], &[u8])]) -> KvResult<Vec<Option<(Bytes, Bytes)>>> {
        floor(&self.held.store, &self.link, self.held.version, ranges)
    }

    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        max_bytes: usize,
        _is_kept: bool,
    ) -> KvResult<KvPage> {
        self.link.read(EngineCall::Read)?;
        let map = self.held.store.map.lock();
        Ok(map.scan((from, to), direction, max_bytes, self.held.version))
    }
}
