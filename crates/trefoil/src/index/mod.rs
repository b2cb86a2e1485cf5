//! The index: from what events are found by to the positions at which they are.
//!
//! One inverted index serves streams, categories, types, tags and correlations. Its newest part is
//! a [`IndexTail`] in memory; checkpoints freeze it and write it out as an immutable [`Run`]; runs of
//! similar size are merged into larger ones, so that there are few of them however long the log is.
//! Everything here can be thrown away and rebuilt from the log.
//!
//! Invariants: layers follow each other in position without overlap; the manifest never names a run
//! that is not complete; what the tails hold is durable in the log.

mod added;
mod build;
mod cursor;
mod describe;
mod layers;
mod list;
mod lookup;
mod manifest;
mod merge;
mod missing;
mod named;
pub(crate) mod names;
mod postings;
mod rewrite;
mod run;
mod stream_ends;
mod tail;
mod term;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex, RwLock};
use trefoil_core::{Cause, Damage, Error, EventId, Result, Timestamp};
use trefoil_storage::{Batch, Storage};

use crate::state::{ReadCache, StateStore};

pub(crate) use added::AddedEvent;
pub(crate) use cursor::{Cursor, Effort, Walk, WalkStep};
pub(crate) use describe::describe_entry;
pub(crate) use layers::{Layer, Layers};
pub(crate) use lookup::TermLookup;
use manifest::RUN_PREFIX;
pub(crate) use manifest::{MAP as MANIFEST_MAP, damaged as damaged_maps};
pub(crate) use manifest::{Manifest, ManifestRun};
pub(crate) use named::ByName;
pub(crate) use postings::TermSummary;
pub(crate) use rewrite::{KeepPosting, RunLoss};
pub(crate) use run::Run;
pub(crate) use stream_ends::StreamEnd;
use stream_ends::{KnownEnds, StreamEnds};
use tail::TailPlaces;
pub(crate) use tail::{IndexTail, IndexedEvent, POSITIONS_PER_ID_MAX, Tags, id_hash};
pub(crate) use term::TermKind;

/// A tail of so many events is small: reading them again costs less than a run of them. Runs of more
/// are classed by how many times as many events they have.
pub(crate) const SMALL_TAIL_EVENTS: usize = 16 * 1024;

/// Asked before each entry is written, with its bytes, whether to go on.
type GoOn<'a> = dyn Fn(usize) -> Result<()> + 'a;

/// The index of one namespace's log.
#[derive(Debug)]
pub(crate) struct Index {
    storage: Arc<dyn Storage>,
    layers: RwLock<Arc<Layers>>,
    /// The manifest on disk. Held while it is being replaced.
    manifest: Mutex<Manifest>,
    /// The tail that is being written to a run.
    frozen: Mutex<Option<Frozen>>,
    /// Signalled when the frozen tail has become a run, or could not.
    thawed: Condvar,
    /// The ends of streams that were in tails, so that the writer need not ask the runs.
    stream_ends: RwLock<KnownEnds>,
    tail_events_max: usize,
    /// How much memory all tails of the process take together.
    shared_bytes: Arc<AtomicUsize>,
    /// Whether a merge failed in a way that leaves open what is on disk.
    is_merging_off: AtomicBool,
    /// The seed of the hashes of ids.
    id_seed: u64,
}

/// Where events go in the live tail.
#[derive(Debug)]
pub(crate) struct Prepared {
    tail: Arc<RwLock<IndexTail>>,
    places: TailPlaces,
}

/// A tail that is being written to a run.
#[derive(Debug, Clone)]
struct Frozen {
    tail: Arc<RwLock<IndexTail>>,
    /// The log's end and the server's clock at the moment the tail was frozen.
    commit: u64,
    clock: Timestamp,
    /// The run it has become, if only the manifest does not name that yet.
    loaded: Option<ManifestRun>,
    /// Why the last attempt to write it failed.
    failure: Option<Error>,
}

/// A tail is full when it takes as much memory as its limit of events would at this cost each.
const TAIL_BYTES_PER_EVENT: usize = 512;
/// When the tails of all databases together, and their entries of state that are not in a map yet,
/// take more memory than this, each tail is moved to disk as soon as it takes [`TAIL_BYTES_MIN`].
const SHARED_TAIL_BYTES_MAX: usize = 384 * 1024 * 1024;
const TAIL_BYTES_MIN: usize = 1024 * 1024;

/// Returns whether what is not on disk yet takes more memory than it should, in all databases
/// together.
pub(crate) fn is_crowded(shared_bytes: &AtomicUsize) -> bool {
    shared_bytes.load(Ordering::Relaxed) > SHARED_TAIL_BYTES_MAX
}

impl Index {
    /// Opens the index that `storage` holds. Its tail is empty: the caller replays the log after
    /// the manifest's commit.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        tail_events_max: usize,
        shared_bytes: Arc<AtomicUsize>,
    ) -> Result<Self> {
        let manifest = match Manifest::load(storage.as_ref())? {
            Some(manifest) => manifest,
            None => Manifest::new(random_seed()?),
        };
        let mut layers = Vec::new();
        for described in &manifest.runs {
            layers.push(Layer::Run(Arc::new(open_run(storage.as_ref(), described)?)));
        }
        drop_orphans(storage.as_ref(), &manifest)?;
        let last_position = manifest.runs.last().map_or(0, |run| run.last_position);
        let tail = IndexTail::new(
            manifest.id_seed,
            last_position,
            manifest.highest_time(),
            Arc::clone(&shared_bytes),
        );
        layers.push(Layer::Memory(Arc::new(RwLock::new(tail))));
        Ok(Self {
            storage,
            layers: RwLock::new(Arc::new(Layers { layers })),
            id_seed: manifest.id_seed,
            manifest: Mutex::new(manifest),
            frozen: Mutex::new(None),
            thawed: Condvar::new(),
            stream_ends: RwLock::default(),
            is_merging_off: AtomicBool::new(false),
            tail_events_max,
            shared_bytes,
        })
    }

    /// Returns the index as it is now; later events may appear in its last layer.
    pub(crate) fn layers(&self) -> Arc<Layers> {
        Arc::clone(&self.layers.read())
    }

    /// Returns the last commit whose events are in runs, and the server's clock at that time.
    pub(crate) fn checkpoint_end(&self) -> (u64, Timestamp) {
        let manifest = self.manifest.lock();
        (manifest.commit, Timestamp(manifest.clock))
    }

    /// Returns the seed of the hashes of ids.
    pub(crate) fn id_seed(&self) -> u64 {
        self.id_seed
    }

    /// Returns the hash under which an id is indexed.
    pub(crate) fn id_hash(&self, id: &EventId) -> u64 {
        id_hash(id, self.id_seed)
    }

    /// Finds out where events will go that need not be durable yet. No tail is frozen before they
    /// are added.
    pub(crate) fn prepare<'a, E: Sync>(
        &self,
        events: &'a [E],
        describe: impl Fn(&'a E) -> IndexedEvent<'a> + Sync,
    ) -> Prepared {
        let tail = self.live_tail();
        let places = tail.write().prepare(events, describe);
        Prepared { tail, places }
    }

    /// Forgets what was prepared last, which will not be added.
    pub(crate) fn forget(&self, prepared: &Prepared) {
        prepared.tail.write().forget(&prepared.places);
    }

    /// Adds the events of one or more commits; readers see them together. `publish` runs before any
    /// reader can: a reader that finds an event here finds it published as well.
    pub(crate) fn add(&self, prepared: &Prepared, publish: impl FnOnce()) {
        let mut tail = prepared.tail.write();
        tail.add(&prepared.places);
        publish();
    }

    fn live_tail(&self) -> Arc<RwLock<IndexTail>> {
        match self.layers.read().layers.last() {
            Some(Layer::Memory(tail)) => Arc::clone(tail),
            _ => unreachable!("the last layer is the live tail"),
        }
    }

    /// Hands the ends of streams to `ask`; for the writer, which asks for every event it appends.
    pub(crate) fn ask_stream_ends<T>(&self, ask: impl FnOnce(&StreamEnds<'_>) -> T) -> T {
        let layers = self.layers();
        let memory = layers.layers.iter().rev().map_while(|layer| match layer {
            Layer::Memory(tail) => Some(tail.read()),
            Layer::Run(_) => None,
        });
        ask(&StreamEnds {
            tails: memory.collect(),
            layers: &layers,
            known: self.stream_ends.read(),
        })
    }

    /// Returns whether the live tail has reached its limit, or its part of the limit of all tails.
    pub(crate) fn is_tail_full(&self) -> bool {
        let live = self.live_tail();
        let tail = live.read();
        let is_crowded = is_crowded(&self.shared_bytes);
        self.has_reached(&tail, 1) || (is_crowded && tail.n_bytes() >= TAIL_BYTES_MIN)
    }

    /// Returns whether a tail is this many times as large as it should become.
    fn has_reached(&self, tail: &IndexTail, times: usize) -> bool {
        let events_max = self.tail_events_max.saturating_mul(times);
        tail.n_events() >= events_max
            || tail.n_bytes() >= events_max.saturating_mul(TAIL_BYTES_PER_EVENT)
    }

    /// Returns whether a frozen tail is waiting to be written.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.lock().is_some()
    }

    /// Returns how many events were added since the last checkpoint began.
    pub(crate) fn tail_events(&self) -> usize {
        self.live_tail().read().n_events()
    }

    /// Returns whether nothing was added since the last checkpoint.
    pub(crate) fn is_tail_empty(&self) -> bool {
        self.tail_events() == 0
    }

    /// Freezes the live tail; no other may be frozen. All of the log up to `commit` must have been
    /// added.
    pub(crate) fn freeze(&self, commit: u64, clock: Timestamp) {
        let mut frozen = self.frozen.lock();
        let live = self.live_tail();
        let (last_position, highest_time) = {
            let tail = live.read();
            (tail.last_position(), tail.highest_time())
        };
        let shared_bytes = Arc::clone(&self.shared_bytes);
        let fresh = IndexTail::new(self.id_seed, last_position, highest_time, shared_bytes);
        let mut layers = self.layers.write();
        let mut next = layers.layers.clone();
        next.push(Layer::Memory(Arc::new(RwLock::new(fresh))));
        *layers = Arc::new(Layers { layers: next });
        *frozen = Some(Frozen {
            tail: live,
            commit,
            clock,
            loaded: None,
            failure: None,
        });
    }

    /// Waits while a frozen tail is being written and the live one is far over its limit too, or
    /// what else is not on disk yet is. Fails if the frozen tail cannot be written.
    pub(crate) fn wait_for_room(&self, is_overfull: impl Fn() -> bool) -> Result<()> {
        let mut frozen = self.frozen.lock();
        while let Some(Frozen { failure, .. }) = &*frozen
            && (self.is_overfull() || is_overfull())
        {
            if let Some(failure) = failure {
                return Err(failure.clone());
            }
            self.thawed.wait(&mut frozen);
        }
        Ok(())
    }

    /// Returns whether the live tail is so far over its limit that writing should wait for a frozen
    /// one.
    pub(crate) fn is_overfull(&self) -> bool {
        self.has_reached(&self.live_tail().read(), 2)
    }

    /// Returns the state in the maps.
    pub(crate) fn state(&self) -> Result<StateStore> {
        let read_cache = Arc::new(ReadCache::new(0, crate::Clock::default()));
        StateStore::open(Arc::clone(&self.storage), Arc::default(), read_cache)
    }

    /// Writes the frozen tail, if there is one, to a run, and atomically with the manifest what
    /// `fill` adds to its batch; then calls `written`. Gives up if `go_on` fails, which is asked time
    /// and again. One thread at a time calls this. Returns how many bytes of entries were written;
    /// `None` if nothing was frozen.
    pub(crate) fn checkpoint(
        &self,
        fill: impl FnOnce(&mut Batch),
        written: impl FnOnce(),
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Option<u64>> {
        let Some(frozen) = self.frozen.lock().clone() else {
            return Ok(None);
        };
        let mut batch = Batch::default();
        fill(&mut batch);
        let bytes = Cell::new(batch.n_bytes());
        let go_on = |entry_bytes: usize| {
            bytes.set(bytes.get() + entry_bytes as u64);
            go_on()
        };
        let result = self.write_frozen(&frozen, batch, &go_on);
        let mut waiting = self.frozen.lock();
        match &result {
            Ok(()) => {
                // Before another one can be frozen.
                written();
                *waiting = None;
            }
            Err(error) => {
                if let Some(frozen) = &mut *waiting {
                    frozen.failure = Some(error.clone());
                }
            }
        }
        self.thawed.notify_all();
        result.map(|()| Some(bytes.get()))
    }

    /// Ends the waiting for a frozen tail that will not be written any more.
    pub(crate) fn abandon(&self) {
        if let Some(frozen) = &mut *self.frozen.lock() {
            frozen.failure = Some(Error::Closed("the database is being closed".into()));
        }
        self.thawed.notify_all();
    }

    /// Makes a run of the frozen tail, once: what failed after that is tried again alone.
    fn load_frozen(&self, frozen: &Frozen, go_on: &GoOn<'_>) -> Result<ManifestRun> {
        if let Some(described) = &frozen.loaded {
            return Ok(described.clone());
        }
        let tail = frozen.tail.read();
        let name = self.manifest.lock().new_run_name();
        self.storage.load(&name, &mut |sink| {
            build::from_tail(&tail, &mut |key, value| {
                go_on(key.len() + value.len())?;
                sink(key, value)
            })
        })?;
        let all = tail
            .list(TermKind::All, "")
            .and_then(list::PostingList::summary)
            .unwrap_or_default();
        let described = ManifestRun {
            name,
            first_position: all.first_position,
            last_position: all.last_position,
            events: all.n,
            highest_time: tail.highest_time().0,
            missing: None,
        };
        if let Some(waiting) = &mut *self.frozen.lock() {
            waiting.loaded = Some(described.clone());
        }
        Ok(described)
    }

    fn write_frozen(&self, frozen: &Frozen, batch: Batch, go_on: &GoOn<'_>) -> Result<()> {
        let has_events = frozen.tail.read().n_events() > 0;
        let load = || self.load_frozen(frozen, go_on);
        let described = has_events.then(load).transpose()?;
        let tail = frozen.tail.read();
        let open = |described| open_run(self.storage.as_ref(), described).map(Arc::new);
        let run = described.as_ref().map(open).transpose()?;
        let mut manifest = self.manifest.lock();
        let mut next = manifest.clone();
        next.commit = frozen.commit;
        next.clock = frozen.clock.0;
        next.runs.extend(described);
        next.store(self.storage.as_ref(), batch)?;
        *manifest = next;
        // Before the tail is dropped: otherwise the writer could find an older ordinal.
        for (stream, list) in tail.lists(TermKind::Stream) {
            self.stream_ends.write().note(stream, StreamEnd::of(list));
        }
        self.replace_frozen(frozen, run.as_ref());
        Ok(())
    }

    /// Puts a run in the place of the frozen tail among the layers.
    fn replace_frozen(&self, frozen: &Frozen, run: Option<&Arc<Run>>) {
        let is_frozen = |layer: &Layer| matches!(layer, Layer::Memory(other) if Arc::ptr_eq(other, &frozen.tail));
        let mut layers = self.layers.write();
        let replaced = layers.layers.iter().filter_map(|layer| {
            if is_frozen(layer) {
                run.cloned().map(Layer::Run)
            } else {
                Some(layer.clone())
            }
        });
        let replaced = Layers {
            layers: replaced.collect(),
        };
        *layers = Arc::new(replaced);
    }
}

fn open_run(storage: &dyn Storage, described: &ManifestRun) -> Result<Run> {
    let map = storage
        .map(&described.name)?
        .ok_or_else(|| manifest::damaged(format!("{} is missing", described.name)))?;
    Ok(Run {
        name: described.name.clone(),
        first_position: described.first_position,
        last_position: described.last_position,
        n_events: described.events,
        highest_time: Timestamp(described.highest_time),
        map,
    })
}

/// Drops the runs that no manifest names: a crash came before the manifest could.
fn drop_orphans(storage: &dyn Storage, manifest: &Manifest) -> Result<()> {
    for name in storage.map_names()? {
        let is_named = manifest.runs.iter().any(|run| run.name == name);
        if name.starts_with(RUN_PREFIX) && !is_named {
            storage.drop_map(&name)?;
        }
    }
    Ok(())
}

fn random_seed() -> Result<u64> {
    getrandom::u64().map_err(|error| Error::failed("random numbers", Cause::new(error)))
}

/// Returns what says that the log ends before the index does.
pub(crate) fn beyond_log(indexed: u64, log: u64) -> Error {
    Error::Damaged(Box::new(Damage {
        file: "log".into(),
        offset: 0,
        position: 0,
        what: format!("the index knows of commit {indexed}, but the log ends at commit {log}"),
        help: "restore the log from a backup".to_owned(),
    }))
}
