//! Maps that were loaded whole and never change: one LSM tree and one directory each.
//!
//! A map is loaded into `<name>.new`, which is renamed when everything in it is durable. So a
//! directory without that ending is a whole map, or one that was being removed, which nobody asks
//! for any more.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use hashbrown::HashMap;
use lsm_tree::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
    HashRatioPolicy, PinningPolicy,
};
use lsm_tree::{
    AbstractTree as _, AnyTree, Cache, CompressionType, Config, DescriptorTable, Guard as _, SeqNo,
    SequenceNumberCounter,
};
use parking_lot::Mutex;
use trefoil_core::{Direction, Error, Result};

use crate::contract::check_key;
use crate::local::disk::RealDisk;
use crate::local::files::sync_dir;
use crate::local::{io, private};
use crate::range::range;
use crate::{BlockCache, Fill, Map, Scan};

/// The bytes of a block that one point read has to look through.
const BLOCK_BYTES: u32 = 4 * 1024;
/// The bits per key that let a map say "not here" without reading: about one error in a hundred.
const FILTER_BITS_PER_KEY: f32 = 10.0;
/// Below this many open files, trees open and close them all the time.
const FILES_MIN: usize = 10;
/// What the directory of a map that is being loaded ends with.
const UNFINISHED: &str = ".new";

/// The maps of a namespace that were loaded, each in a directory that is named after it.
pub struct LoadedMaps {
    dir: PathBuf,
    cache: Arc<Cache>,
    files: Arc<DescriptorTable>,
    /// Every map, and its tree once somebody has asked for it.
    maps: Mutex<HashMap<String, Option<Arc<LoadedMap>>>>,
}

impl std::fmt::Debug for LoadedMaps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("LoadedMaps")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl LoadedMaps {
    /// Returns the maps in `dir`, which need not exist. They have this many files open at most.
    pub fn open(dir: PathBuf, cache: &BlockCache, files_max: usize) -> Result<Self> {
        let mut maps = HashMap::new();
        if dir.exists() {
            for entry in fs::read_dir(&dir).map_err(io("listing", &dir))? {
                let entry = entry.map_err(io("listing", &dir))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.ends_with(UNFINISHED) {
                    fs::remove_dir_all(entry.path()).map_err(io("removing", &entry.path()))?;
                } else {
                    maps.insert(name, None);
                }
            }
        }
        Ok(Self {
            dir,
            cache: Arc::clone(cache.maps()),
            files: Arc::new(DescriptorTable::new(files_max.max(FILES_MIN))),
            maps: Mutex::new(maps),
        })
    }

    /// Small blocks, and a filter that is always in memory.
    fn open_tree(&self, dir: &Path) -> Result<AnyTree> {
        let bits = BloomConstructionPolicy::BitsPerKey(FILTER_BITS_PER_KEY);
        let counter = SequenceNumberCounter::default;
        Config::new(dir, counter(), counter())
            .use_cache(Arc::clone(&self.cache))
            .use_descriptor_table(Some(Arc::clone(&self.files)))
            .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
            .data_block_hash_ratio_policy(HashRatioPolicy::all(0.0))
            .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(bits)))
            .filter_block_pinning_policy(PinningPolicy::all(true))
            .index_block_pinning_policy(PinningPolicy::all(true))
            .open()
            .map_err(|error| failed(dir, "opening", &error))
    }

    /// Returns whether there is a map of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.maps.lock().contains_key(name)
    }

    /// Returns the names of all maps, in no order.
    pub fn names(&self) -> Vec<String> {
        self.maps.lock().keys().cloned().collect()
    }

    /// Returns the map of this name, if it exists.
    pub fn map(&self, name: &str) -> Result<Option<Arc<dyn Map>>> {
        let mut maps = self.maps.lock();
        let Some(slot) = maps.get_mut(name) else {
            return Ok(None);
        };
        if slot.is_none() {
            let dir = self.dir.join(name);
            let tree = self.open_tree(&dir)?;
            *slot = Some(Arc::new(LoadedMap {
                tree: Some(tree),
                dir,
                is_dropped: false.into(),
            }));
        }
        Ok(slot.clone().map(|map| map as Arc<dyn Map>))
    }

    /// Returns the directory of a map.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Creates a map of the entries that `fill` hands over in ascending order of their keys, durably.
    pub fn load(&self, name: &str, fill: &mut Fill<'_>) -> Result<()> {
        if self.path(name).exists() {
            return Err(Error::invalid(format!("map {name} exists already")));
        }
        let unfinished = self.build(name, fill)?;
        self.adopt(&unfinished, name)
    }

    /// Makes a new directory for a map that does not count yet.
    pub fn prepare(&self, name: &str) -> Result<PathBuf> {
        let unfinished = self.dir.join(format!("{name}{UNFINISHED}"));
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io("removing", &unfinished)(error));
            }
            _ => private::create_dir(&unfinished).map_err(io("creating", &unfinished))?,
        }
        Ok(unfinished)
    }

    /// Makes a map of what `fill` hands over that does not count yet. Returns its directory, in which
    /// everything is durable.
    pub fn build(&self, name: &str, fill: &mut Fill<'_>) -> Result<PathBuf> {
        let unfinished = self.prepare(name)?;
        if let Err(error) = self.ingest(&unfinished, fill) {
            // What is left of it would be removed at the next start anyway.
            if let Err(left) = fs::remove_dir_all(&unfinished)
                && left.kind() != std::io::ErrorKind::NotFound
            {
                let dir = unfinished.display();
                tracing::warn!(%dir, error = %left, "cannot remove a map that was not loaded");
            }
            return Err(error);
        }
        Ok(unfinished)
    }

    /// Makes the map in a directory, which is complete, count under this name.
    pub fn adopt(&self, unfinished: &Path, name: &str) -> Result<()> {
        fs::rename(unfinished, self.path(name)).map_err(io("renaming", unfinished))?;
        sync_dir(&RealDisk, &self.dir)?;
        if let Some(parent) = self.dir.parent() {
            sync_dir(&RealDisk, parent)?;
        }
        self.maps.lock().insert(name.to_owned(), None);
        Ok(())
    }

    /// The tree syncs its tables and the list of them.
    fn ingest(&self, dir: &Path, fill: &mut Fill<'_>) -> Result<()> {
        let failed = |error: lsm_tree::Error| failed(dir, "loading a map into", &error);
        let tree = self.open_tree(dir)?;
        let mut ingestion = tree.ingestion().map_err(failed)?;
        let mut last: Option<Bytes> = None;
        fill(&mut |key, value| {
            check_key(&key)?;
            let key = Bytes::from(key);
            if last.as_ref().is_some_and(|last| *last >= key) {
                return Err(Error::invalid("the keys of a map to be loaded must ascend"));
            }
            last = Some(key.clone());
            ingestion.write(key, value).map_err(failed)
        })?;
        ingestion.finish().map_err(failed)?;
        sync_dir(&RealDisk, dir)
    }

    /// Drops a map. Returns whether there was one of this name. Handles to it that are still held keep
    /// answering.
    pub fn drop_map(&self, name: &str) -> Result<bool> {
        let Some(slot) = self.maps.lock().remove(name) else {
            return Ok(false);
        };
        match slot {
            Some(map) => map.is_dropped.store(true, Ordering::Release),
            None => {
                let dir = self.dir.join(name);
                fs::remove_dir_all(&dir).map_err(io("removing", &dir))?;
            }
        }
        Ok(true)
    }

    /// Returns how many bytes of memory they hold outside the cache: filters, and indexes of blocks.
    pub fn held_bytes(&self) -> u64 {
        let maps = self.maps.lock();
        let trees = maps.values().flatten().filter_map(|map| map.tree.as_ref());
        let held = |tree: &AnyTree| tree.pinned_filter_size() + tree.pinned_block_index_size();
        trees.map(|tree| held(tree) as u64).sum()
    }

    /// Returns how many bytes on disk they take.
    pub fn disk_bytes(&self) -> u64 {
        let names = self.names();
        let bytes = names
            .iter()
            .map(|name| directory_bytes(&self.dir.join(name)));
        bytes.sum()
    }
}

/// The bytes of all files below `dir`; what vanishes meanwhile counts as nothing.
fn directory_bytes(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => directory_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

fn failed(dir: &Path, what: &str, error: &lsm_tree::Error) -> Error {
    let io = match error {
        lsm_tree::Error::Io(io) => Some(io),
        _ => None,
    };
    super::failed(dir, what, io, &error.to_string())
}

/// One map. Its directory goes with the last handle to it, if it was dropped.
struct LoadedMap {
    /// `None` only while it is being dropped.
    tree: Option<AnyTree>,
    dir: PathBuf,
    is_dropped: AtomicBool,
}

impl std::fmt::Debug for LoadedMap {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("LoadedMap").field(&self.dir).finish()
    }
}

impl Drop for LoadedMap {
    fn drop(&mut self) {
        self.tree = None;
        if self.is_dropped.load(Ordering::Acquire)
            && let Err(error) = fs::remove_dir_all(&self.dir)
        {
            tracing::warn!(dir = %self.dir.display(), %error, "cannot remove a dropped map");
        }
    }
}

impl LoadedMap {
    fn tree(&self) -> Result<&AnyTree> {
        self.tree
            .as_ref()
            .ok_or_else(|| Error::Closed("the map was dropped".to_owned()))
    }
}

impl Map for LoadedMap {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        if check_key(key).is_err() {
            return Ok(None);
        }
        let value = self.tree()?.get(key, SeqNo::MAX);
        let value = value.map_err(|error| failed(&self.dir, "reading", &error))?;
        Ok(value.map(Into::into))
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> Scan<'_> {
        let Some(range) = range(from, to) else {
            return Box::new(std::iter::empty());
        };
        let tree = match self.tree() {
            Ok(tree) => tree,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let range = tree.range::<&[u8], _>(range, SeqNo::MAX, None);
        let entry = |guard: lsm_tree::IterGuardImpl| match guard.into_inner() {
            Ok((key, value)) => Ok((key.into(), value.into())),
            Err(error) => Err(failed(&self.dir, "scanning", &error)),
        };
        match direction {
            Direction::Forwards => Box::new(range.map(entry)),
            Direction::Backwards => Box::new(range.rev().map(entry)),
        }
    }

    fn moment(self: Arc<Self>) -> Result<Arc<dyn Map>> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_fails_says_why_even_if_nothing_is_left_to_remove() {
        let dir = tempfile::tempdir().unwrap();
        let maps = LoadedMaps::open(dir.path().to_owned(), &BlockCache::new(0), 0).unwrap();
        let unfinished = dir.path().join("run.new");
        let failed = maps.load("run", &mut |_| {
            fs::remove_dir_all(&unfinished).unwrap();
            Err(Error::DiskFull("filling".to_owned()))
        });
        assert!(matches!(failed, Err(Error::DiskFull(_))), "{failed:?}");
    }
}
