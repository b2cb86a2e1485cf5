//! The durable entries: those that changed since the last checkpoint in memory, all others in a map.
//!
//! A checkpoint freezes what changed, writes it to the map together with the index's manifest, and
//! lets go of it. Like the index, the map can be thrown away and rebuilt from the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use trefoil_core::{Direction, Result};
use trefoil_storage::{Batch, Map, Storage};

use super::change::{Change, Changes};

/// The map that holds the entries.
const MAP: &str = "state";

/// About how much memory an entry takes besides its bytes.
const ENTRY_BYTES: usize = 96;

/// After the keys of all entries, which begin with letters.
pub(crate) const STATE_END: &[u8] = &[0xff];

/// When so much changed, in memory or in number of groups, it is time for a checkpoint.
const RECENT_BYTES_MAX: usize = 32 * 1024 * 1024;
const RECENT_CHANGES_MAX: usize = 100_000;

/// Changed entries: their values, or `None` for those that are gone.
pub(crate) type Entries = BTreeMap<Bytes, Option<Bytes>>;

/// The durable entries of a namespace.
#[derive(Debug)]
pub(crate) struct Store {
    storage: Arc<dyn Storage>,
    recent: RwLock<Recent>,
    /// The map, once there is one.
    map: Mutex<Option<Arc<dyn Map>>>,
}

/// What changed since the last checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    live: Entries,
    live_bytes: usize,
    /// How often something changed: what would have to be read again without a checkpoint.
    n_changes: usize,
    /// What a checkpoint is writing.
    frozen: Option<Arc<Entries>>,
}

impl Store {
    pub(crate) fn open(storage: Arc<dyn Storage>) -> Result<Self> {
        let map = storage.map(MAP)?;
        Ok(Self {
            storage,
            recent: RwLock::default(),
            map: Mutex::new(map),
        })
    }

    /// The entries as they are now; they do not change while this is held.
    pub(crate) fn read(&self) -> Reader<'_> {
        let recent = self.recent.read();
        let map = self.map.lock().clone();
        Reader { recent, map }
    }

    /// Takes over the entries that a group changed, once it is durable. `publish` runs before any
    /// reader can: whoever sees the change sees what was published with it.
    pub(crate) fn apply(&self, changed: Entries, publish: impl FnOnce()) {
        if changed.is_empty() {
            return publish();
        }
        let mut recent = self.recent.write();
        recent.n_changes += 1;
        for (key, value) in changed {
            recent.set(key, value);
        }
        publish();
    }

    /// Takes over the changes of a commit that is read from the log again; `None` if they do not fit.
    pub(crate) fn replay(&self, changes: &[u8]) -> Result<Option<()>> {
        let mut changed = Entries::new();
        let mut failure = None;
        let read = Changes::read(changes, &mut |key, change: Change<'_>| {
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
            self.apply(changed, || {});
        }
        Ok(read)
    }

    /// Whether nothing changed since the last checkpoint.
    pub(crate) fn is_empty(&self) -> bool {
        self.recent.read().live.is_empty()
    }

    /// Whether it is time for a checkpoint.
    pub(crate) fn is_full(&self) -> bool {
        let recent = self.recent.read();
        recent.live_bytes >= RECENT_BYTES_MAX || recent.n_changes >= RECENT_CHANGES_MAX
    }

    /// Sets aside what changed, for a checkpoint.
    pub(crate) fn freeze(&self) {
        let mut recent = self.recent.write();
        let mut live = std::mem::take(&mut recent.live);
        if let Some(frozen) = recent.frozen.take() {
            let mut all = Entries::clone(&frozen);
            all.append(&mut live);
            live = all;
        }
        recent.live_bytes = 0;
        recent.n_changes = 0;
        recent.frozen = Some(Arc::new(live));
    }

    /// Adds to a batch what a checkpoint has to write.
    pub(crate) fn fill(&self, batch: &mut Batch) {
        let frozen = self.recent.read().frozen.clone();
        for (key, value) in frozen.iter().flat_map(|frozen| frozen.iter()) {
            match value {
                Some(value) => batch.put(MAP, key.to_vec(), value.to_vec()),
                None => batch.remove(MAP, key.to_vec()),
            }
        }
    }

    /// Lets go of what was set aside: the map has it.
    pub(crate) fn thaw(&self) {
        let has_map = {
            let mut map = self.map.lock();
            if map.is_none() {
                // If it cannot be opened, what is in memory stays there.
                *map = self.storage.map(MAP).unwrap_or_default();
            }
            map.is_some()
        };
        if has_map {
            self.recent.write().frozen = None;
        }
    }
}

impl Recent {
    fn set(&mut self, key: Bytes, value: Option<Bytes>) {
        let size = |value: &Option<Bytes>| value.as_ref().map_or(0, Bytes::len);
        let (added, key_bytes) = (size(&value), key.len() + ENTRY_BYTES);
        let removed = match self.live.insert(key, value) {
            Some(before) => size(&before),
            None => {
                self.live_bytes += key_bytes;
                0
            }
        };
        self.live_bytes = (self.live_bytes + added).saturating_sub(removed);
    }
}

/// The durable entries, held still.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    recent: RwLockReadGuard<'a, Recent>,
    map: Option<Arc<dyn Map>>,
}

/// An ordered walk over entries.
pub(crate) type Scan<'a> = Box<dyn Iterator<Item = Result<(Bytes, Bytes)>> + 'a>;

impl Reader<'_> {
    /// The value of an entry.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(value) = self.recent.live.get(key) {
            return Ok(value.clone());
        }
        let frozen = self.recent.frozen.as_ref();
        if let Some(value) = frozen.and_then(|frozen| frozen.get(key)) {
            return Ok(value.clone());
        }
        self.map.as_ref().map_or(Ok(None), |map| map.get(key))
    }

    /// The entries with `from <= key < to`, with `over` laid over them.
    pub(crate) fn scan<'b>(
        &'b self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        over: &'b Entries,
    ) -> Scan<'b> {
        let mut sources = vec![Source::changed(over, from, to, direction)];
        sources.push(Source::changed(&self.recent.live, from, to, direction));
        if let Some(frozen) = &self.recent.frozen {
            sources.push(Source::changed(frozen, from, to, direction));
        }
        if let Some(map) = &self.map {
            let entries = map.scan(from, to, direction);
            let walk = entries.map(|entry| entry.map(|(key, value)| (key, Some(value))));
            sources.push(Source::new(Box::new(walk)));
        }
        Box::new(Merged { sources, direction })
    }
}

/// One of the walks that are merged, and the entry it is at.
struct Source<'a> {
    walk: Box<dyn Iterator<Item = Result<(Bytes, Option<Bytes>)>> + 'a>,
    next: Option<Result<(Bytes, Option<Bytes>)>>,
}

impl<'a> Source<'a> {
    fn new(mut walk: Box<dyn Iterator<Item = Result<(Bytes, Option<Bytes>)>> + 'a>) -> Self {
        let next = walk.next();
        Self { walk, next }
    }

    fn changed(entries: &'a Entries, from: &[u8], to: &[u8], direction: Direction) -> Self {
        if from >= to {
            return Self::new(Box::new(std::iter::empty()));
        }
        let range = (
            std::ops::Bound::Included(from),
            std::ops::Bound::Excluded(to),
        );
        let range = entries.range::<[u8], _>(range);
        let own = |(key, value): (&Bytes, &Option<Bytes>)| Ok((key.clone(), value.clone()));
        match direction {
            Direction::Forwards => Self::new(Box::new(range.map(own))),
            Direction::Backwards => Self::new(Box::new(range.rev().map(own))),
        }
    }
}

/// Several walks as one: of entries with one key, that of the first source counts.
struct Merged<'a> {
    sources: Vec<Source<'a>>,
    direction: Direction,
}

impl Merged<'_> {
    /// The key that comes next, or an error.
    fn next_key(&mut self) -> Option<Result<Bytes>> {
        let mut first: Option<&Bytes> = None;
        for source in &mut self.sources {
            match &source.next {
                Some(Err(_)) => return source.next.take().map(|next| next.map(|(key, _)| key)),
                Some(Ok((key, _))) => {
                    let is_first = first.is_none_or(|first| match self.direction {
                        Direction::Forwards => key < first,
                        Direction::Backwards => key > first,
                    });
                    if is_first {
                        first = Some(key);
                    }
                }
                None => {}
            }
        }
        first.cloned().map(Ok)
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let key = match self.next_key()? {
                Ok(key) => key,
                Err(error) => return Some(Err(error)),
            };
            let mut counts = None;
            for source in &mut self.sources {
                if matches!(&source.next, Some(Ok((other, _))) if *other == key) {
                    let entry = std::mem::replace(&mut source.next, source.walk.next());
                    if let (None, Some(Ok((_, value)))) = (&counts, entry) {
                        counts = Some(value);
                    }
                }
            }
            if let Some(Some(value)) = counts {
                return Some(Ok((key, value)));
            }
        }
    }
}
