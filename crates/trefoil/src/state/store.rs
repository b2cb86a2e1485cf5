//! The durable entries: those that changed since the last checkpoint in memory, all others in a map.
//!
//! A checkpoint freezes what changed, writes it to the map together with the index's manifest, and
//! drops it. Like the index, the map can be thrown away and rebuilt from the log.
//!
//! What is in memory is persistent in the other sense of the word: a reader takes the entries
//! as they are, and the map as it was at the last checkpoint. However long the read takes, no writer
//! and no checkpoint waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use trefoil_core::limits::EVENT_DATA_BYTES_DEFAULT;
use trefoil_core::{Direction, Error, Result};
use trefoil_state::{Commands, ExpiryPlace, GarbagePlace, ROOT, SpaceScan, is_younger};
use trefoil_storage::{Batch, Map, Storage};

use super::Watches;
use super::change::{Changes, EntryChange};
use super::memory::Memory;
use super::merged_scan::{MergedScan, ScanSource};
use super::read_cache::{CachedMap, MapSlowness, Period, ReadCache};
use super::reading::DurableView;
use super::tree::{ENTRY_BYTES, EntryTree, PackedEntry};
use super::view::ToClean;
use crate::removal::{self, KnownPolicies, PendingRedactions};
use crate::time::NEVER;
use crate::time::agenda::{Agenda, Chore};

/// The map that holds the entries.
pub(super) const MAP: &str = "state";

/// After the keys of all entries, which begin with letters.
pub(crate) const STATE_END: &[u8] = &[0xff];

/// When so much of memory is taken by what changed, it is time for a checkpoint. While that is written,
/// and in the map until the next one, the same takes memory several times.
const RECENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// When so much of the log is changes, and so many times as much as of memory, it is time too: the
/// same entries change again and again.
const LOGGED_BYTES_MIN: u64 = 8 * 1024 * 1024;
const LOGGED_TIMES: u64 = 2;
/// When nothing else is to be done, it is time when so much changed, in memory or in the log.
const LARGE_BYTES: usize = 4 * 1024 * 1024;
/// When memory is short, it is time when so much changed.
const RECENT_BYTES_MIN: usize = 1024 * 1024;

/// How many milliseconds garbage may wait, so that more of it is removed together.
const GARBAGE_DELAY: u64 = 500;

/// Entries that a group changes: their values, or `None` for those that are gone.
pub(crate) type ChangedEntries = Vec<(Bytes, Option<Bytes>)>;

/// The durable entries of a namespace.
#[derive(Debug)]
pub(crate) struct StateStore {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) recent: Mutex<Recent>,
    pub(super) read_cache: Arc<ReadCache>,
    map_slowness: Arc<MapSlowness>,
    /// Who watches which keys.
    pub(crate) watches: Arc<Watches>,
    /// When something is to be cleaned: what expires, and replies of transactions.
    pub(crate) expiries: Agenda,
    /// When garbage is to be removed.
    pub(crate) garbage: Agenda,
    /// For how many milliseconds transactions that have a name are remembered.
    pub(crate) retention: u64,
    /// The commands that change it.
    pub(crate) commands: Commands,
    /// How many bytes of data an event may have that a command appends.
    pub(crate) event_data_bytes_max: usize,
    /// The first position at or after which no event was removed.
    highest_floor: AtomicU64,
    /// Whether something was removed since it was asked last.
    has_new_removals: AtomicBool,
    /// The redactions that the log has yet to follow.
    pub(crate) redactions: PendingRedactions,
    /// The policies by which events are removed.
    pub(crate) policies: KnownPolicies,
}

/// What changed since the last checkpoint, and where everything else is.
#[derive(Debug, Default)]
pub(super) struct Recent {
    live: EntryTree,
    /// What a checkpoint is writing.
    frozen: Option<EntryTree>,
    memory: Memory,
    pub(super) logged: Logged,
    /// The map as it is, once there is one.
    base: Option<Arc<dyn Map>>,
    /// The map as it was at the last checkpoint.
    pub(super) map: Option<Arc<CachedMap>>,
    /// The entry that everybody reads.
    pub(super) root: Option<Bytes>,
    map_slowness: Arc<MapSlowness>,
    /// The period in which a read that begins now falls.
    period: Arc<Period>,
    /// Those that end when the next checkpoint changes the map.
    ending: Vec<Arc<Period>>,
}

/// How many bytes of the log changes take, so far and at moments before.
#[derive(Debug, Default)]
pub(super) struct Logged {
    /// Since the last checkpoint began: what would have to be read again without one.
    pub(super) live: u64,
    /// Since the snapshot.
    pub(super) now: u64,
    /// Since the snapshot, when the checkpoint began that is being written.
    pub(super) frozen: u64,
    /// Since the snapshot, when the checkpoint began that was written last.
    pub(super) written: u64,
}

impl StateStore {
    /// Opens the entries that `storage` holds. What they take in memory until a checkpoint is
    /// counted in `shared_bytes`; those that are read are kept in `read_cache`.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        shared_bytes: Arc<AtomicUsize>,
        read_cache: Arc<ReadCache>,
    ) -> Result<Self> {
        let mut recent = Recent {
            memory: Memory::new(shared_bytes),
            logged: super::snapshot::logged(storage.as_ref())?,
            ..Recent::default()
        };
        recent.open(storage.as_ref(), &read_cache)?;
        let store = Self {
            storage,
            map_slowness: Arc::clone(&recent.map_slowness),
            recent: Mutex::new(recent),
            read_cache,
            watches: Arc::default(),
            expiries: Agenda::new(all_expiries(), 0),
            garbage: Agenda::new(all_garbage(), 0),
            retention: u64::MAX,
            commands: Commands::redis().clone(),
            event_data_bytes_max: EVENT_DATA_BYTES_DEFAULT,
            highest_floor: AtomicU64::new(0),
            has_new_removals: AtomicBool::new(false),
            redactions: PendingRedactions::default(),
            policies: KnownPolicies::default(),
        };
        store.find_removals()?;
        Ok(store)
    }

    /// Returns the first position at or after which no event was removed.
    pub(crate) fn highest_floor(&self) -> u64 {
        self.highest_floor.load(Ordering::Acquire)
    }

    /// Follows a change of an entry about removals.
    fn note_removal(&self, key: &[u8], value: Option<&[u8]>) {
        self.redactions.note(key, value);
        self.policies.note(key, value);
        if key == removal::TOTAL
            && let Ok(floor) = removal::highest_floor(value)
        {
            self.highest_floor.store(floor, Ordering::Release);
            self.has_new_removals.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether something was removed since it was asked last.
    pub(crate) fn take_new_removals(&self) -> bool {
        self.has_new_removals.load(Ordering::Relaxed)
            && self.has_new_removals.swap(false, Ordering::Relaxed)
    }

    /// Reads from the entries what was removed.
    pub(super) fn find_removals(&self) -> Result<()> {
        let total = self.read().get(removal::TOTAL)?;
        let floor = removal::highest_floor(total.as_deref())?;
        self.highest_floor.store(floor, Ordering::Release);
        let entries = DurableView::new(self);
        self.redactions.load(&entries)?;
        self.policies.load(&entries)
    }

    /// Remembers transactions that have a name for so long.
    pub(crate) fn retaining(mut self, retention: Duration) -> Self {
        self.retention = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Runs these commands, which may append events of at most this many bytes of data.
    pub(crate) fn running(mut self, commands: &Commands, event_data_bytes_max: usize) -> Self {
        self.commands = commands.clone();
        self.event_data_bytes_max = event_data_bytes_max;
        self
    }

    /// Takes it that something is due at this time, until somebody has looked.
    pub(crate) fn told(mut self, due: u64) -> Self {
        self.expiries = Agenda::new(all_expiries(), due);
        self.garbage = Agenda::new(all_garbage(), due);
        self
    }

    /// Notes what of a group that is durable is to be cleaned.
    pub(crate) fn note_to_clean(&self, due: ToClean, now: u64) {
        let ToClean {
            expiry, garbage, ..
        } = due;
        if expiry != NEVER {
            let place = ExpiryPlace::at(expiry);
            let replies = expiry.saturating_sub(self.retention);
            self.expiries
                .note(expiry, Chore::Expiries { place, replies });
        }
        if let Some(name) = garbage {
            let chore = Chore::Garbage(GarbagePlace::at(name));
            self.garbage.note(now + GARBAGE_DELAY, chore);
        }
    }

    /// Returns the entries as they are now; they do not change for the holder.
    pub(crate) fn read(&self) -> StoreReader {
        self.read_at(|| ()).0
    }

    /// Returns the same, and what `at` finds out meanwhile: no group that changes entries is published before
    /// it returns.
    pub(crate) fn read_at<T>(&self, at: impl FnOnce() -> T) -> (StoreReader, T) {
        let recent = self.recent.lock();
        let reader = StoreReader {
            live: recent.live.clone(),
            frozen: recent.frozen.clone(),
            map: recent.map.clone(),
            root: recent.root.clone(),
            at_hand: None,
        };
        (reader, at())
    }

    /// Takes over the entries that a group changed, once it is durable. `publish` runs before any
    /// reader can: a reader that sees the change sees what was published with it.
    pub(crate) fn apply(&self, changed: ChangedEntries, publish: impl FnOnce()) {
        if changed.is_empty() {
            return publish();
        }
        let mut recent = self.recent.lock();
        for (key, value) in changed {
            recent.set(&key, value.as_ref());
            if removal::is_entry(&key) {
                self.note_removal(&key, value.as_deref());
            }
        }
        publish();
    }

    /// Notes how many bytes of the log the changes of a group take.
    pub(crate) fn note_logged(&self, bytes: u64) {
        if bytes > 0 {
            let logged = &mut self.recent.lock().logged;
            logged.live += bytes;
            logged.now += bytes;
        }
    }

    /// Takes over the changes of a commit that is read from the log again; `None` if they do not fit.
    pub(crate) fn replay(&self, changes: &[u8]) -> Result<Option<()>> {
        let mut changed: BTreeMap<Bytes, Option<Bytes>> = BTreeMap::new();
        let mut failure = None;
        let read = Changes::read(changes, &mut |key, change: EntryChange<'_>| {
            let before = || match changed.get(key) {
                Some(value) => value.clone(),
                None => self.read().get(key).unwrap_or_else(|error| {
                    failure = Some(error);
                    None
                }),
            };
            let after = change.apply(before)?;
            changed.insert(Bytes::copy_from_slice(key), after);
            Some(())
        });
        if let Some(error) = failure {
            return Err(error);
        }
        if read.is_some() {
            self.apply(changed.into_iter().collect(), || {});
        }
        Ok(read)
    }

    /// Returns whether nothing changed since the last checkpoint.
    pub(crate) fn is_empty(&self) -> bool {
        self.recent.lock().live.is_empty()
    }

    /// Returns whether reads of entries that are not in memory may wait for the disk.
    pub(crate) fn is_slow_to_read(&self) -> bool {
        self.read_cache.are_slow(&self.map_slowness)
    }

    /// Returns whether it is time for a checkpoint.
    pub(crate) fn is_full(&self) -> bool {
        let recent = self.recent.lock();
        let live_bytes = recent.memory.live();
        live_bytes >= RECENT_BYTES_MAX
            || recent.logged.live >= LOGGED_BYTES_MIN.max(LOGGED_TIMES * live_bytes as u64)
            || (live_bytes >= RECENT_BYTES_MIN && recent.memory.is_short())
    }

    /// Returns whether so much changed that a checkpoint pays when there is time for one.
    pub(crate) fn is_large(&self) -> bool {
        let recent = self.recent.lock();
        recent.memory.live() >= LARGE_BYTES || recent.logged.live >= LARGE_BYTES as u64
    }

    /// Returns whether so much changed since the last checkpoint began that writing should wait for
    /// it.
    pub(crate) fn is_overfull(&self) -> bool {
        self.recent.lock().memory.live() >= 2 * RECENT_BYTES_MAX
    }

    /// Sets aside what changed, for a checkpoint.
    pub(crate) fn freeze(&self) {
        let mut recent = self.recent.lock();
        let live = std::mem::take(&mut recent.live);
        recent.memory.freeze();
        recent.logged.live = 0;
        recent.logged.frozen = recent.logged.now;
        let period = std::mem::take(&mut recent.period);
        recent.ending.push(period);
        recent.map = (recent.map.as_ref()).map(|map| map.later(&map.map, &recent.period));
        recent.frozen = match recent.frozen.take() {
            Some(mut frozen) => {
                // What changed later counts.
                frozen.put_all(&live);
                Some(frozen)
            }
            None => Some(live),
        };
    }

    /// Adds to a batch what a checkpoint has to write.
    pub(crate) fn fill(&self, batch: &mut Batch) {
        let (frozen, map, ending) = {
            let mut recent = self.recent.lock();
            let ending = std::mem::take(&mut recent.ending);
            (recent.frozen.clone(), recent.map.clone(), ending)
        };
        ending.iter().for_each(|period| period.end());
        self.fill_logged(batch);
        let frozen = frozen.unwrap_or_default();
        for entry in frozen.range(&[], STATE_END, Direction::Forwards) {
            if let Some(map) = &map {
                map.changes(entry);
            }
            let key = entry.name();
            match entry.value() {
                Some(value) => batch.put(MAP, key.to_vec(), value.to_vec()),
                None => batch.remove(MAP, key.to_vec()),
            }
        }
    }

    /// Drops what was set aside: the map has it.
    pub(crate) fn thaw(&self) {
        let mut recent = self.recent.lock();
        match &recent.base {
            Some(base) => {
                recent.map = recent
                    .map
                    .as_ref()
                    .map(|map| map.later(&moment(base), &recent.period));
            }
            None => {
                let root = recent.root.clone();
                // If it cannot be opened, what is in memory stays there.
                let _ = recent.open(self.storage.as_ref(), &self.read_cache);
                recent.root = root;
            }
        }
        recent.logged.written = recent.logged.frozen;
        if recent.map.is_some() {
            recent.frozen = None;
            recent.memory.thaw();
        }
    }
}

impl Recent {
    /// Opens the map, if there is one, and reads the root in it.
    pub(super) fn open(
        &mut self,
        storage: &dyn Storage,
        read_cache: &Arc<ReadCache>,
    ) -> Result<()> {
        let base = storage.map(MAP)?;
        self.root = match &base {
            Some(map) => map.get(ROOT)?,
            None => None,
        };
        let slowness = &self.map_slowness;
        let cached = |map| CachedMap::new(moment(map), read_cache, &self.period, slowness);
        self.map = base.as_ref().map(cached).map(Arc::new);
        self.base = base;
        Ok(())
    }

    fn set(&mut self, key: &[u8], value: Option<&Bytes>) {
        if key == ROOT {
            self.root = value.cloned();
        }
        let size = |value: Option<&[u8]>| value.map_or(0, <[u8]>::len);
        let entry = PackedEntry::new(key, value.map(Bytes::as_ref));
        let added = size(entry.value());
        let (added, removed) = match self.live.put(entry) {
            Some(before) => (added, size(before.value())),
            None => (added + key.len() + ENTRY_BYTES, 0),
        };
        self.memory.change(added, removed);
    }
}

fn all_expiries() -> Chore {
    let (place, replies) = (ExpiryPlace::default(), 0);
    Chore::Expiries { place, replies }
}

fn all_garbage() -> Chore {
    Chore::Garbage(GarbagePlace::default())
}

/// Returns the map at this moment. If that cannot be had, as when it cannot be read either, it is
/// the map.
fn moment(map: &Arc<dyn Map>) -> Arc<dyn Map> {
    let moment = Arc::clone(map).moment();
    moment.unwrap_or_else(|_| Arc::clone(map))
}

/// The durable entries at a moment.
#[derive(Debug)]
pub(crate) struct StoreReader {
    live: EntryTree,
    frozen: Option<EntryTree>,
    map: Option<Arc<CachedMap>>,
    root: Option<Bytes>,
    /// Whether it reads only what is in memory.
    at_hand: Option<AtHand>,
}

/// What a reader remembers that does not wait for the disk.
#[derive(Debug, Default)]
struct AtHand {
    /// Whether it did without something that is not in memory.
    is_short: AtomicBool,
}

impl AtHand {
    /// Notes that something is not in memory. Returns the error that ends the read.
    fn miss(&self) -> Error {
        self.is_short.store(true, Ordering::Relaxed);
        Error::Internal("an entry of the state is not in memory".to_owned())
    }
}

impl StoreReader {
    /// Returns the same entries, of which those that are not in memory are errors.
    pub(crate) fn at_hand(mut self) -> Self {
        self.at_hand = Some(AtHand::default());
        self
    }

    /// Returns whether it did without something that is not in memory.
    pub(crate) fn is_short(&self) -> bool {
        let at_hand = self.at_hand.as_ref();
        at_hand.is_some_and(|at_hand| at_hand.is_short.load(Ordering::Relaxed))
    }

    /// Returns the value of an entry.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        if key == ROOT {
            return Ok(self.root.clone());
        }
        let in_frozen = || self.frozen.as_ref()?.get(key);
        if let Some(entry) = self.live.get(key).or_else(in_frozen) {
            return Ok(entry.clone().into_value());
        }
        match &self.map {
            Some(map) if !self.root.as_ref().is_some_and(|root| is_younger(key, root)) => {
                match &self.at_hand {
                    None => map.get(key),
                    Some(at_hand) => match map.cached(key) {
                        Some(entry) => Ok(entry.into_value()),
                        None => Err(at_hand.miss()),
                    },
                }
            }
            _ => Ok(None),
        }
    }

    /// Returns the entries with `from <= key < to`, where `from < to`, with those of `over` laid
    /// over them.
    pub(super) fn scan<'b>(
        &'b self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        over: impl DoubleEndedIterator<Item = (&'b Bytes, &'b Option<Bytes>)> + 'b,
    ) -> SpaceScan<'b> {
        let mut sources = vec![ScanSource::changed(over, direction)];
        let changed = [Some(&self.live), self.frozen.as_ref()];
        for changed in changed.into_iter().flatten() {
            let changed = changed.range(from, to, direction);
            let changed = changed.map(|entry| Ok(entry.shared()));
            sources.push(ScanSource::new(Box::new(changed)));
        }
        if let (Some(_), Some(at_hand)) = (&self.map, &self.at_hand) {
            return Box::new(std::iter::once(Err(at_hand.miss())));
        }
        if let Some(CachedMap { map, .. }) = self.map.as_deref() {
            let entries = map.scan(from, to, direction);
            let walk = entries.map(|entry| entry.map(|(key, value)| (key, Some(value))));
            sources.push(ScanSource::new(Box::new(walk)));
        }
        Box::new(MergedScan { sources, direction })
    }
}
