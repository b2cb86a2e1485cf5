//! Maps that are written to, in one fjall database.
//!
//! The database is created by the first change: a namespace that never needs a map costs neither a
//! thread nor a file. After a failed write fjall refuses all further ones, so the database is let go
//! and the next call opens it again. Invariant: only `state` and the handles listed in it keep the
//! database open for longer than a call.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use fjall::{Database, Keyspace, PersistMode, Readable as _, Snapshot};
use lsm_tree::{AbstractTree as _, AnyTree, Cache};
use parking_lot::RwLock;
use trefoil_core::{Direction, Error, Result};

use super::tuning::{self, MEMTABLE_BYTES};
use crate::contract::check_key;
use crate::local::disk::RealDisk;
use crate::local::files::sync_dir;
use crate::local::{io, private};
use crate::range::range;
use crate::{Batch, BlockCache, Map, Scan};

/// The smallest journal limit that fjall accepts: beyond it, maps that are seldom written have to
/// write their tables too. Its journal file is sparse.
const JOURNAL_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long a write waits at a time for its tables, and how often at most.
const TABLE_WAIT: Duration = Duration::from_millis(2);
const TABLE_WAITS_MAX: usize = 250;
/// How many files may be open at once.
const CACHED_FILES_MAX: usize = 32;

/// The file that fjall creates last when it creates a database, and how many bytes it then writes
/// to it. A process may die between the two.
const CREATED_MARKER: &str = "version";
const CREATED_MARKER_BYTES: u64 = 4;
/// The directory in which fjall has one directory per map.
const KEYSPACES_DIR: &str = "keyspaces";

/// The maps of a namespace that are written to.
pub(super) struct WrittenMaps {
    dir: PathBuf,
    cache: Arc<Cache>,
    /// Locked before a handle's keyspace.
    state: RwLock<WrittenState>,
}

#[derive(Default)]
struct WrittenState {
    database: Option<Database>,
    /// The maps that were handed out: their keyspaces keep the database open.
    handles: Vec<Weak<WrittenMap>>,
}

impl std::fmt::Debug for WrittenMaps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("WrittenMaps")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

fn failed(dir: &Path, what: &str, error: &fjall::Error) -> Error {
    use fjall::Error as Fjall;
    match error {
        Fjall::Locked => Error::Locked {
            path: dir.to_owned(),
        },
        Fjall::Poisoned => Error::Poisoned(format!("{what} {}", dir.display())),
        Fjall::Io(io) | Fjall::Storage(fjall::LsmError::Io(io)) => {
            super::failed(dir, what, Some(io), &error.to_string())
        }
        error => super::failed(dir, what, None, &error.to_string()),
    }
}

/// Waits until what was written is in tables, if it is much. A moment that begins before that is read
/// from memory for as long as it lasts, which takes a search through all of it even for
/// keys that are not there. Gives up if it takes long, as during a merge: it only makes reads faster.
fn wait_for_tables(keyspaces: &[Keyspace]) {
    let is_in_memory = |keyspace: &Keyspace| {
        let tree = &keyspace.tree;
        tree.sealed_memtable_count() > 0 || tree.active_memtable().size() > MEMTABLE_BYTES
    };
    for _ in 0..TABLE_WAITS_MAX {
        if !keyspaces.iter().any(is_in_memory) {
            return;
        }
        std::thread::sleep(TABLE_WAIT);
    }
}

impl WrittenMaps {
    /// The maps in `dir`, which need not exist.
    pub(super) fn open(dir: PathBuf, cache: &BlockCache) -> Result<Self> {
        let maps = Self {
            dir,
            cache: Arc::clone(cache.maps()),
            state: RwLock::default(),
        };
        maps.existing()?;
        Ok(maps)
    }

    fn open_database(&self) -> Result<Database> {
        let builder = Database::builder(&self.dir)
            .worker_threads(1)
            .max_cached_files(Some(CACHED_FILES_MAX))
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .manual_journal_persist(true);
        let mut config = builder.into_config();
        config.cache = Arc::clone(&self.cache);
        Database::open(config).map_err(|error| self.failed("opening", &error))
    }

    fn failed(&self, what: &str, error: &fjall::Error) -> Error {
        failed(&self.dir, what, error)
    }

    /// The database if there is one.
    fn existing(&self) -> Result<Option<Database>> {
        if let Some(database) = &self.state.read().database {
            return Ok(Some(database.clone()));
        }
        self.existing_in(&mut self.state.write())
    }

    fn existing_in(&self, state: &mut WrittenState) -> Result<Option<Database>> {
        if state.database.is_none() && self.dir.exists() {
            let marker = std::fs::metadata(self.dir.join(CREATED_MARKER));
            if !marker.is_ok_and(|marker| marker.len() >= CREATED_MARKER_BYTES) {
                // Creating the database was cut short: nothing is in it.
                std::fs::remove_dir_all(&self.dir).map_err(io("removing", &self.dir))?;
                return Ok(None);
            }
            let updated = tuning::update(&self.dir.join(KEYSPACES_DIR));
            updated.map_err(|error| self.failed("preparing", &error.into()))?;
            let database = self.open_database()?;
            // What a killed process wrote may not be durable yet.
            let synced = database.persist(PersistMode::SyncAll);
            synced.map_err(|error| self.failed("syncing", &error))?;
            state.database = Some(database);
        }
        Ok(state.database.clone())
    }

    /// The database, created if need be.
    pub(super) fn database(&self) -> Result<Database> {
        if let Some(database) = &self.state.read().database {
            return Ok(database.clone());
        }
        let mut state = self.state.write();
        if let Some(database) = self.existing_in(&mut state)? {
            return Ok(database);
        }
        private::create_dir(&self.dir).map_err(io("creating", &self.dir))?;
        let database = self.open_database()?;
        sync_dir(&RealDisk, &self.dir)?;
        sync_dir(&RealDisk, self.dir.parent().unwrap_or(&self.dir))?;
        state.database = Some(database.clone());
        Ok(database)
    }

    /// Lets the database go, so that the next call opens it again.
    fn let_go(&self) {
        let mut state = self.state.write();
        for map in state.handles.drain(..).filter_map(|map| map.upgrade()) {
            *map.opened.write() = None;
        }
        state.database = None;
    }

    pub(super) fn keyspace(&self, database: &Database, name: &str) -> Result<Keyspace> {
        let is_new = !database.keyspace_exists(name);
        let opened = database.keyspace(name, tuning::map_options);
        let keyspace = opened.map_err(|error| self.failed("creating a map in", &error))?;
        if is_new {
            // fjall syncs what is in the map's directory but not the directory's own entry.
            sync_dir(&RealDisk, &self.dir.join(KEYSPACES_DIR))?;
        }
        Ok(keyspace)
    }

    pub(super) fn map(self: &Arc<Self>, name: &str) -> Result<Option<Arc<dyn Map>>> {
        let mut state = self.state.write();
        let database = self.existing_in(&mut state)?;
        let Some(database) = database.filter(|database| database.keyspace_exists(name)) else {
            return Ok(None);
        };
        let opened = Opened {
            keyspace: self.keyspace(&database, name)?,
            database,
            moment: None,
        };
        Ok(Some(self.hand_out(&mut state, name, opened)))
    }

    fn hand_out(
        self: &Arc<Self>,
        state: &mut WrittenState,
        name: &str,
        opened: Opened,
    ) -> Arc<dyn Map> {
        let map = Arc::new(WrittenMap {
            maps: Arc::clone(self),
            name: name.to_owned(),
            opened: RwLock::new(Some(opened)),
        });
        state.handles.retain(|handle| handle.strong_count() > 0);
        state.handles.push(Arc::downgrade(&map));
        map
    }

    pub(super) fn names(&self) -> Result<Vec<String>> {
        let names = self
            .existing()?
            .map(|database| database.list_keyspace_names());
        let mut names: Vec<String> = names
            .unwrap_or_default()
            .iter()
            .map(|name| name.to_string())
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn write(&self, batch: &Batch) -> Result<()> {
        let written = match self.try_write(batch) {
            // An earlier failure, perhaps of fjall's own thread; nothing of this batch was written.
            Err(Error::Poisoned(_)) => {
                self.let_go();
                self.try_write(batch)
            }
            other => other,
        };
        if written.is_err() {
            self.let_go();
        }
        written
    }

    fn try_write(&self, batch: &Batch) -> Result<()> {
        let database = self.database()?;
        let mut changes = database.batch().durability(Some(PersistMode::SyncAll));
        let mut keyspaces = Vec::new();
        // Most changes are of the same map as the one before.
        for same in batch
            .changes
            .chunk_by(|(one, ..), (other, ..)| one == other)
        {
            let keyspace = self.keyspace(&database, &same[0].0)?;
            for (_, key, value) in same {
                match value {
                    Some(value) => changes.insert(&keyspace, key.as_slice(), value.as_slice()),
                    None => changes.remove(&keyspace, key.as_slice()),
                }
            }
            keyspaces.push(keyspace);
        }
        let written = changes.commit();
        written.map_err(|error| self.failed("writing to", &error))?;
        wait_for_tables(&keyspaces);
        Ok(())
    }

    pub(super) fn drop_map(&self, name: &str) -> Result<()> {
        // Locked, because who asks fjall for a keyspace that is gone makes it anew.
        let mut state = self.state.write();
        let database = self.existing_in(&mut state)?;
        let Some(database) = database.filter(|database| database.keyspace_exists(name)) else {
            return Ok(());
        };
        let keyspace = self.keyspace(&database, name)?;
        let deleted = database.delete_keyspace(keyspace);
        deleted.map_err(|error| self.failed("removing a map from", &error))
    }

    /// How many bytes of memory they hold outside the cache: what was written and is not in a table
    /// yet, filters, and indexes of blocks.
    pub(super) fn held_bytes(&self) -> u64 {
        let state = self.state.read();
        let Some(database) = &state.database else {
            return 0;
        };
        let names = database.list_keyspace_names();
        let keyspaces = names.iter().map(|name| self.keyspace(database, name));
        let held = |tree: &AnyTree| {
            let pinned = tree.pinned_filter_size() + tree.pinned_block_index_size();
            tree.active_memtable().size() + pinned as u64
        };
        let held = keyspaces.flatten().map(|keyspace| held(&keyspace.tree));
        held.sum()
    }

    pub(super) fn disk_bytes(&self) -> Result<u64> {
        let bytes = self
            .existing()?
            .map(|database| database.disk_space())
            .transpose();
        Ok(bytes
            .map_err(|error| self.failed("measuring", &error))?
            .unwrap_or(0))
    }
}

/// One map, as it is or as it was at a moment.
struct WrittenMap {
    maps: Arc<WrittenMaps>,
    name: String,
    /// `None` after the database was let go.
    opened: RwLock<Option<Opened>>,
}

/// What a map is read from.
#[derive(Clone)]
struct Opened {
    database: Database,
    keyspace: Keyspace,
    /// The moment at which the map is read, if it is not read as it is.
    moment: Option<Snapshot>,
}

impl std::fmt::Debug for WrittenMap {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("WrittenMap")
            .field(&self.name)
            .finish()
    }
}

impl Opened {
    fn get(&self, key: &[u8]) -> fjall::Result<Option<fjall::Slice>> {
        match &self.moment {
            Some(moment) => moment.get(&self.keyspace, key),
            None => self.keyspace.get(key),
        }
    }
}

impl WrittenMap {
    /// Does something with what the map is read from.
    fn with<T>(&self, read: impl FnOnce(&Opened) -> T) -> Result<T> {
        if let Some(opened) = &*self.opened.read() {
            return Ok(read(opened));
        }
        // Looked up on every call from here on, and not kept: see the invariant above.
        let opened = self.open_in(self.maps.existing()?)?;
        Ok(read(&opened))
    }

    fn open_in(&self, database: Option<Database>) -> Result<Opened> {
        match database.filter(|database| database.keyspace_exists(&self.name)) {
            Some(database) => Ok(Opened {
                keyspace: self.maps.keyspace(&database, &self.name)?,
                database,
                moment: None,
            }),
            None => Err(Error::Closed("the map was dropped".to_owned())),
        }
    }
}

impl Map for WrittenMap {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        if check_key(key).is_err() {
            return Ok(None);
        }
        let value = self.with(|opened| opened.get(key))?;
        let value = value.map_err(|error| self.maps.failed("reading", &error))?;
        Ok(value.map(Into::into))
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> Scan<'_> {
        let Some(range) = range(from, to) else {
            return Box::new(std::iter::empty());
        };
        let range = self.with(|opened| {
            // A range of the keyspace itself would meet what is written while it is walked over.
            let moment = opened.moment.clone();
            let moment = moment.unwrap_or_else(|| opened.database.snapshot());
            moment.range::<&[u8], _>(&opened.keyspace, range)
        });
        let range = match range {
            Ok(range) => range,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let entry = |guard: fjall::Guard| match guard.into_inner() {
            Ok((key, value)) => Ok((key.into(), value.into())),
            Err(error) => Err(self.maps.failed("scanning", &error)),
        };
        match direction {
            Direction::Forwards => Box::new(range.map(entry)),
            Direction::Backwards => Box::new(range.rev().map(entry)),
        }
    }

    fn moment(self: Arc<Self>) -> Result<Arc<dyn Map>> {
        // Locked first: whoever lets the database go finds what is handed out here.
        let mut state = self.maps.state.write();
        let opened = self.opened.read().clone();
        let mut opened = match opened {
            Some(opened) => opened,
            None => {
                let database = self.maps.existing_in(&mut state)?;
                self.open_in(database)?
            }
        };
        let Opened {
            database, moment, ..
        } = &mut opened;
        moment.get_or_insert_with(|| database.snapshot());
        Ok(self.maps.hand_out(&mut state, &self.name, opened))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(maps: &WrittenMaps, name: &str, value: &str) -> Result<()> {
        let mut batch = Batch::default();
        batch.put(name, "key", value);
        maps.write(&batch)
    }

    #[test]
    fn a_failed_write_lets_the_database_go_and_the_next_opens_it_again() {
        let dir = tempfile::tempdir().unwrap();
        let maps = WrittenMaps::open(dir.path().join("written"), &BlockCache::new(1024));
        let maps = Arc::new(maps.unwrap());
        put(&maps, "one", "before").unwrap();
        let held = maps.map("one").unwrap().unwrap();
        let mut scan = held.scan(b"", b"", Direction::Forwards);
        // Without this directory no map can be created.
        let (keyspaces, away) = (maps.dir.join(KEYSPACES_DIR), dir.path().join("away"));
        std::fs::rename(&keyspaces, &away).unwrap();
        std::fs::write(&keyspaces, "").unwrap();
        put(&maps, "two", "lost").unwrap_err();
        assert!(maps.state.read().database.is_none());
        std::fs::remove_file(&keyspaces).unwrap();
        std::fs::rename(&away, &keyspaces).unwrap();
        assert_eq!(maps.names().unwrap(), ["one"]);
        assert_eq!(held.get(b"key").unwrap().unwrap(), "before");
        assert_eq!(scan.next().unwrap().unwrap().1, "before");
        put(&maps, "one", "after").unwrap();
        assert_eq!(held.get(b"key").unwrap().unwrap(), "after");
    }

    #[test]
    fn a_creation_that_was_cut_short_is_begun_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("written");
        let cache = BlockCache::new(1024);
        let marker = path.join(CREATED_MARKER);
        let maps = WrittenMaps::open(path.clone(), &cache).unwrap();
        put(&maps, "map", "first").unwrap();
        drop(maps);
        let whole = std::fs::read(&marker).unwrap();
        assert_eq!(whole.len() as u64, CREATED_MARKER_BYTES);
        for n_bytes in 0..whole.len() {
            std::fs::write(&marker, &whole[..n_bytes]).unwrap();
            let maps = WrittenMaps::open(path.clone(), &cache).unwrap();
            put(&maps, "map", "again").unwrap();
        }
        std::fs::remove_file(&marker).unwrap();
        WrittenMaps::open(path, &cache).unwrap();
    }

    #[test]
    fn a_full_disk_is_told_from_other_failures() {
        let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        let dir = Path::new("maps");
        for error in [
            fjall::Error::Io(full()),
            fjall::Error::Storage(fjall::LsmError::Io(full())),
        ] {
            let told = failed(dir, "writing to", &error);
            assert!(matches!(told, Error::DiskFull(_)), "{told}");
        }
    }

    /// A checkpoint of a busy state writes batches like these; `manifest` is never large enough to
    /// write a table by itself, and must not keep the journal.
    #[test]
    fn large_batches_do_not_pile_up_in_the_journal() {
        let dir = tempfile::tempdir().unwrap();
        let cache = BlockCache::new(1024 * 1024);
        let maps = WrittenMaps::open(dir.path().join("written"), &cache).unwrap();
        for round in 0..12_u64 {
            let mut batch = Batch::default();
            for key in 0..16_384_u64 {
                let number = (round + key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let value = (1..=256).map(|times| number.wrapping_mul(times).to_le_bytes());
                batch.put(
                    "state",
                    key.to_be_bytes(),
                    value.collect::<Vec<_>>().concat(),
                );
            }
            batch.put("manifest", "index", round.to_be_bytes());
            maps.write(&batch).unwrap();
            let files = std::fs::read_dir(&maps.dir).unwrap().flatten();
            let sizes = files.filter_map(|file| Some(file.metadata().ok()?.len()));
            let bytes: u64 = sizes.sum();
            assert!(
                bytes < 4 * JOURNAL_BYTES_MAX,
                "{bytes} after {round} batches"
            );
        }
    }

    #[test]
    fn much_that_was_written_is_read_from_tables() {
        let dir = tempfile::tempdir().unwrap();
        let maps =
            WrittenMaps::open(dir.path().join("written"), &BlockCache::new(1 << 20)).unwrap();
        for round in 0..3_u32 {
            let mut batch = Batch::default();
            for key in 0..40_000_u32 {
                batch.put("state", key.to_be_bytes(), round.to_be_bytes().repeat(16));
            }
            maps.write(&batch).unwrap();
            let database = maps.database().unwrap();
            let tree = maps.keyspace(&database, "state").unwrap().tree.clone();
            assert_eq!(tree.sealed_memtable_count(), 0);
            assert_eq!(tree.active_memtable().size(), 0);
        }
    }
}
