//! Opening a generation, and removing one.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use trefoil_core::{Direction, Error, Result};
use trefoil_storage::{BlockCache, LogEnd, ReadReach};

use crate::contract::{Kv, KvEngine, KvRead};

use super::KvStorage;
use super::errors::{damaged_log, failed};
use super::facts::{EndFact, GarbageFact, StoredFacts};
use super::garbage::{GarbageQueue, clear_some, remove_all, remove_objects};
use super::keys::{GenerationKeys, Tag, generation_of, number_of};
use super::log::KvLog;
use super::maps::KvMaps;
use super::packing::PackingState;
use super::recent::RecentBlocks;
use super::redo;
use super::room::LogRoom;
use super::runs::Runs;
use super::snapshot::KvSnapshot;
use super::store::{OpenStore, next_key};
use super::upkeep::UpkeepState;
use super::usage::UsageCount;

/// How much of the end of the log stays in memory unless the options say otherwise.
const RECENT_BYTES: u64 = 64 * 1024 * 1024;
/// The bytes of a cache that no other storage shares.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// How much is removed at a time.
const STEP_BYTES: usize = 1024 * 1024;

/// Where a generation is, and how much of it stays in memory.
#[derive(Debug, Clone)]
pub struct KvStorageOptions {
    /// The number of the generation, at least 1. A store may hold several.
    pub generation: u64,
    /// The epoch with which the store was opened.
    pub epoch: u64,
    /// What the names of the namespace's objects begin with; `/` at the end.
    pub objects: String,
    /// A local directory for files that can be fetched again. It is the namespace's alone.
    pub cache_dir: PathBuf,
    /// Blocks of the index that were read; other storages may share it.
    pub cache: Arc<BlockCache>,
    /// Room for blocks of the log; other storages may share it.
    pub log_room: Arc<LogRoom>,
    /// How many bytes of it the end of the log may have.
    pub recent_bytes: u64,
}

impl KvStorageOptions {
    /// Returns options with which nothing has a number that must be chosen.
    pub fn new(objects: impl Into<String>, cache_dir: impl Into<PathBuf>) -> Self {
        let cache = Arc::new(BlockCache::new(CACHE_BYTES));
        Self {
            generation: 1,
            epoch: 1,
            objects: objects.into(),
            cache_dir: cache_dir.into(),
            log_room: Arc::new(LogRoom::beside(&cache)),
            cache,
            recent_bytes: RECENT_BYTES,
        }
    }

    /// Returns what the names of this generation's objects begin with.
    fn generation_objects(&self) -> String {
        format!("{}{}/", self.objects, self.generation)
    }

    fn store(&self, engine: Arc<dyn KvEngine>, kv: Arc<dyn Kv>) -> Result<OpenStore> {
        let objects = self.generation_objects();
        OpenStore::new(engine, kv, self.epoch, self.generation, objects)
    }
}

impl KvStorage {
    /// Opens a generation in a store that is open, and makes it if it is not there. A log that ends
    /// before a commit that its maps know of, as `reach` reads from them, is
    /// [`Error::Damaged`](trefoil_core::Error::Damaged), and nothing of it is changed.
    pub fn open(
        engine: Arc<dyn KvEngine>,
        kv: Arc<dyn Kv>,
        options: &KvStorageOptions,
        reach: &ReadReach<'_>,
    ) -> Result<Self> {
        let store = Arc::new(options.store(engine, kv)?);
        let mut facts = StoredFacts::read(&store)?;
        if facts.is_erased {
            erase(&store, options)?;
            facts = StoredFacts::default();
        } else if facts.end.is_none() {
            check_new(&store)?;
        }
        note_rests(&store)?;
        let garbage = Arc::new(GarbageQueue::default());
        if let Some(redo) = facts.redo {
            redo::finish(&store, &garbage, redo)?;
            // Which maps there are may have been among the changes.
            let again = StoredFacts::read(&store)?;
            (facts.maps, facts.usage) = (again.maps, again.usage);
        }
        let dir = options.cache_dir.join(options.generation.to_string());
        let runs = Runs::open(&store, dir, &options.cache)?;
        runs.sweep(facts.maps.values())?;
        let usage = Arc::new(UsageCount::new(facts.usage));
        let (swept, counted) = (Arc::clone(&garbage), Arc::clone(&usage));
        let maps = KvMaps::new(&store, Arc::new(runs), swept, counted, facts.maps);
        let end = facts.end.unwrap_or_default();
        let known = reach(&|name| maps.map(name))?;
        if known > end.end.commit {
            let last = end.end.commit;
            let what = format!("the log ends with commit {last}, and its maps know of {known}");
            return Err(damaged_log(end.end.position, what));
        }
        settle(&store, &garbage, facts.garbage, end.end)?;
        if facts.end.is_none() {
            store.commit(vec![store.fact(Tag::End, &EndFact::default().encode())])?;
        }
        let recent = RecentBlocks::new(&options.log_room, options.recent_bytes as usize);
        Ok(Self {
            log: Arc::new(KvLog::new(Arc::clone(&store), end, recent)),
            maps,
            snapshot: KvSnapshot::new(Arc::clone(&store), facts.snapshot),
            garbage,
            usage,
            upkeep: UpkeepState::new(facts.merged),
            packing: PackingState::new(facts.packed),
            editing: Mutex::new(()),
            store,
        })
    }
}

/// Checks that a generation of which no end of the log is known is one that was never made.
fn check_new(store: &OpenStore) -> Result<()> {
    let (from, to) = store.keys.all();
    let page = store.kv.scan(&from, &to, Direction::Forwards, 1, false);
    let page = page.map_err(failed("opening the store"))?;
    match page.entries.is_empty() {
        true => Ok(()),
        false => Err(damaged_log(0, "the end of the log is missing")),
    }
}

/// Notes which numbers the parts of long values have.
fn note_rests(store: &OpenStore) -> Result<()> {
    let (first, last) = (
        store.keys.numbered(Tag::Rest, 0),
        store.keys.after(Tag::Rest, u64::MAX),
    );
    let floor = store.kv.floor(&[(&first, &last)]);
    let floor = floor.map_err(failed("opening the store"))?;
    if let Some((key, _)) = floor.into_iter().flatten().next() {
        store.note_number(number_of(&key));
    }
    Ok(())
}

/// Clears what lies where the log goes on. All other garbage can wait.
fn settle(
    store: &OpenStore,
    queue: &GarbageQueue,
    garbage: Vec<(u64, GarbageFact)>,
    end: LogEnd,
) -> Result<()> {
    for (number, garbage) in garbage {
        match garbage {
            GarbageFact::BeyondEnd(_) => remove_all(store, number, &garbage, end)?,
            other => queue.push(number, other),
        }
    }
    Ok(())
}

/// Returns the generations of which a store has something.
pub fn generations(kv: &dyn KvRead) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    let mut next = Some(1);
    while let Some(generation) = next {
        let (from, _) = GenerationKeys::of(generation).all();
        let to = GenerationKeys::of(u64::MAX).all().1;
        let page = kv.scan(&from, &to, Direction::Forwards, 1, false);
        let page = page.map_err(failed("looking for generations"))?;
        let first = page.entries.first();
        let generation = first.and_then(|(key, _)| generation_of(key));
        found.extend(generation);
        next = generation.and_then(|generation| generation.checked_add(1));
    }
    Ok(found)
}

/// Removes a generation: its keys, its objects, and what is cached of it. If it fails, the generation is
/// there, or it is not and opening it goes on with this. It may be repeated.
pub fn erase_generation(
    engine: Arc<dyn KvEngine>,
    kv: Arc<dyn Kv>,
    options: &KvStorageOptions,
) -> Result<()> {
    let store = options.store(engine, kv)?;
    store.commit(vec![store.fact(Tag::Erased, &[])])?;
    erase(&store, options)
}

/// Removes everything of a generation that is said to be erased, and that it is said last.
fn erase(store: &OpenStore, options: &KvStorageOptions) -> Result<()> {
    let dir = options.cache_dir.join(options.generation.to_string());
    match std::fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let context = format!("removing {}", dir.display());
            return Err(Error::io(context, &error));
        }
        _ => {}
    }
    while !remove_objects(store, &store.objects)? {}
    let erased = store.keys.only(Tag::Erased);
    let (from, to) = store.keys.all();
    for range in [(from, erased.clone()), (next_key(&erased), to)] {
        while !clear_some(store, range.clone(), STEP_BYTES)? {}
    }
    store.commit(vec![(erased, None)])
}
