//! Maps that were loaded whole and never change: files in a local directory, and objects.
//!
//! The objects count. The local directory is a cache: a file that is missing or damaged is fetched again.
//! Objects and directories are named after the writer's epoch, a number and the hash of the list of
//! files. Objects know no fence: what a writer uploads or removes too late is never that of another.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use trefoil_core::{Damage, Direction, Error, Result};
use trefoil_storage::parts::LoadedMaps;
use trefoil_storage::{BlockCache, Entry, Fill, Map, Scan};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::errors::failed;
use super::facts::{GarbageFact, MapFact, RunFile, RunId};
use super::store::OpenStore;

/// How many files of maps may be open at once.
const FILES_MAX: usize = 64;
/// How many entries a scan reads first, and how many at most at a time.
const PAGE_FIRST: usize = 4;
const PAGE_MAX: usize = 512;
/// How much of a file is read at a time.
const READ_BYTES: usize = 256 * 1024;

/// The local directory of all maps that were loaded.
#[derive(Debug)]
pub(super) struct Runs {
    store: Arc<OpenStore>,
    pub(super) loaded: LoadedMaps,
}

fn io(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let context = format!("{what} {}", path.display());
    move |error| Error::io(context, &error)
}

impl Runs {
    pub(super) fn open(store: &Arc<OpenStore>, dir: PathBuf, cache: &BlockCache) -> Result<Self> {
        Ok(Self {
            store: Arc::clone(store),
            loaded: LoadedMaps::open(dir, cache, FILES_MAX)?,
        })
    }

    /// Removes what belongs to none of these maps.
    pub(super) fn sweep<'a>(&self, facts: impl Iterator<Item = &'a MapFact>) -> Result<()> {
        let known: Vec<String> = facts.map(local_name).collect();
        for name in self.loaded.names() {
            if !known.iter().any(|known| name.starts_with(known.as_str())) {
                self.loaded.drop_map(&name)?;
            }
        }
        Ok(())
    }

    /// Makes the files of a new map, which does not count yet.
    pub(super) fn build(&self, fill: &mut Fill<'_>) -> Result<LoadingMap> {
        let (epoch, number) = (self.store.epoch, self.store.new_number());
        let dir = self.loaded.build(&number.to_string(), fill)?;
        Ok(LoadingMap {
            run: RunId { epoch, number },
            declared: self.store.new_number(),
            dir,
        })
    }
}

/// Returns what the names of a map's directories begin with; how often it was fetched comes after it.
fn local_name(fact: &MapFact) -> String {
    match fact {
        MapFact::Written(number) => format!("{number}-"),
        MapFact::Loaded { run, .. } => {
            let hash = xxh3_128(&fact.encode());
            format!("{}-{}-{hash:032x}-", run.epoch, run.number)
        }
    }
}

/// A map that is being loaded.
#[derive(Debug)]
pub(super) struct LoadingMap {
    pub(super) run: RunId,
    /// Under this number its objects are declared garbage until it counts.
    pub(super) declared: u64,
    dir: PathBuf,
}

impl LoadingMap {
    /// Uploads the files. Returns what is to be known of the map.
    pub(super) fn upload(&self, runs: &Runs) -> Result<MapFact> {
        let store = &runs.store;
        let garbage = GarbageFact::Objects(self.run);
        store.commit(vec![store.declaration(self.declared, &garbage)])?;
        let files = list_files(&self.dir)?;
        let fact = MapFact::Loaded {
            run: self.run,
            files: files.clone(),
        };
        for (index, file) in files.iter().enumerate() {
            let name = object_name(store, &fact, index);
            let path = self.dir.join(&file.path);
            let uploaded = store.engine.objects().upload(&name, &path);
            uploaded.map_err(failed("uploading a file of the index"))?;
        }
        Ok(fact)
    }

    /// Takes the files into the cache. If that fails, they are fetched when somebody asks for them.
    pub(super) fn finish(&self, runs: &Arc<Runs>, fact: MapFact) -> RunMap {
        let name = format!("{}0", local_name(&fact));
        if let Err(error) = runs.loaded.adopt(&self.dir, &name) {
            tracing::warn!(%error, "cannot keep the files of a map that was loaded");
        }
        RunMap::new(runs, fact)
    }

    /// Removes the files of a map that was not loaded. What is left would be removed at the next
    /// start.
    pub(super) fn give_up(&self) {
        if let Err(error) = fs::remove_dir_all(&self.dir)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            let dir = self.dir.display();
            tracing::warn!(%dir, %error, "cannot remove a map that was not loaded");
        }
    }
}

fn object_name(store: &OpenStore, fact: &MapFact, index: usize) -> String {
    format!("{}{}{index}", store.objects, local_name(fact))
}

/// Returns the files below a directory, in order.
fn list_files(dir: &Path) -> Result<Vec<RunFile>> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(&next).map_err(io("listing", &next))? {
            let path = entry.map_err(io("listing", &next))?.path();
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let (n_bytes, check) = check_file(&path)?;
            let relative = path.strip_prefix(dir).unwrap_or(&path);
            files.push(RunFile {
                path: relative.to_string_lossy().into_owned(),
                n_bytes,
                check,
            });
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Returns the length of a file and the XXH3 of its bytes.
fn check_file(path: &Path) -> Result<(u64, u64)> {
    let mut file = File::open(path).map_err(io("opening", path))?;
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut n_bytes = 0;
    loop {
        let n = file.read(&mut buffer).map_err(io("reading", path))?;
        if n == 0 {
            return Ok((n_bytes, hasher.digest()));
        }
        n_bytes += n as u64;
        hasher.update(&buffer[..n]);
    }
}

/// A map that was loaded.
#[derive(Debug)]
pub(super) struct RunMap {
    runs: Arc<Runs>,
    fact: MapFact,
    /// The local map, once somebody has asked for it, and the name of its directory.
    local: Mutex<Option<(String, Arc<dyn Map>)>>,
}

impl RunMap {
    pub(super) fn new(runs: &Arc<Runs>, fact: MapFact) -> Self {
        Self {
            runs: Arc::clone(runs),
            fact,
            local: Mutex::new(None),
        }
    }

    /// Returns what its objects are called once they are garbage.
    pub(super) fn garbage(&self) -> GarbageFact {
        match &self.fact {
            MapFact::Loaded { run, .. } => GarbageFact::Objects(*run),
            MapFact::Written(number) => GarbageFact::Entries(*number),
        }
    }

    fn files(&self) -> &[RunFile] {
        match &self.fact {
            MapFact::Loaded { files, .. } => files,
            MapFact::Written(_) => &[],
        }
    }

    /// Returns how many bytes its files take.
    pub(super) fn n_bytes(&self) -> u64 {
        self.files().iter().map(|file| file.n_bytes).sum()
    }

    /// Returns the local map. Fetches what is missing.
    pub(super) fn open(&self) -> Result<Arc<dyn Map>> {
        let mut local = self.local.lock();
        if let Some((_, map)) = &*local {
            return Ok(Arc::clone(map));
        }
        let (name, map) = match self.open_cached()? {
            Some(opened) => opened,
            None => self.fetch()?,
        };
        *local = Some((name, Arc::clone(&map)));
        Ok(map)
    }

    /// Opens what the cache has, if it is whole as far as can be seen without reading it.
    fn open_cached(&self) -> Result<Option<(String, Arc<dyn Map>)>> {
        let prefix = local_name(&self.fact);
        let names = self.runs.loaded.names().into_iter();
        for name in names.filter(|name| name.starts_with(&prefix)) {
            let dir = self.runs.loaded.path(&name);
            let is_there = |file: &RunFile| {
                let found = fs::metadata(dir.join(&file.path));
                found.is_ok_and(|found| found.len() == file.n_bytes)
            };
            if self.files().iter().all(is_there) {
                match self.runs.loaded.map(&name) {
                    Ok(Some(map)) => return Ok(Some((name, map))),
                    Ok(None) | Err(Error::Damaged(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            self.runs.loaded.drop_map(&name)?;
        }
        Ok(None)
    }

    /// Fetches the files of the map into a new directory.
    fn fetch(&self) -> Result<(String, Arc<dyn Map>)> {
        let (loaded, store) = (&self.runs.loaded, &self.runs.store);
        let name = format!("{}{}", local_name(&self.fact), store.new_number());
        let dir = loaded.prepare(&name)?;
        for (index, file) in self.files().iter().enumerate() {
            let object = object_name(store, &self.fact, index);
            let path = dir.join(&file.path);
            let parent = path.parent().unwrap_or(&dir);
            fs::create_dir_all(parent).map_err(io("creating", parent))?;
            let fetched = store.engine.objects().download(&object, &path);
            let is_there = fetched.map_err(failed("fetching a file of the index"))?;
            if !is_there {
                return Err(damaged_object(object, "the object is missing"));
            }
            if check_file(&path)? != (file.n_bytes, file.check) {
                return Err(damaged_object(object, "the object is not what was stored"));
            }
        }
        loaded.adopt(&dir, &name)?;
        let map = loaded.map(&name)?;
        let map = map.ok_or_else(|| Error::Closed("the map was dropped".to_owned()))?;
        Ok((name, map))
    }

    /// Fetches a map again that turned out to be damaged, unless somebody has done so meanwhile.
    fn open_again(&self, damaged: &Arc<dyn Map>) -> Result<Arc<dyn Map>> {
        let mut local = self.local.lock();
        if let Some((_, map)) = local.as_ref().filter(|(_, map)| !Arc::ptr_eq(map, damaged)) {
            return Ok(Arc::clone(map));
        }
        let number = self.fact.number();
        tracing::warn!(
            number,
            "a file of the index is damaged here: it is fetched again"
        );
        if let Some((name, _)) = local.take() {
            self.runs.loaded.drop_map(&name)?;
        }
        let (name, map) = self.fetch()?;
        *local = Some((name, Arc::clone(&map)));
        Ok(map)
    }

    /// Does something with the local map, once more if it turns out to be damaged.
    fn with<T>(&self, read: impl Fn(&dyn Map) -> Result<T>) -> Result<T> {
        let map = self.open()?;
        match read(&*map) {
            Err(Error::Damaged(_)) => read(&*self.open_again(&map)?),
            other => other,
        }
    }

    /// Drops the files. Handles to the map that are still held keep answering.
    pub(super) fn drop_files(&self) {
        let prefix = local_name(&self.fact);
        let names = self.runs.loaded.names().into_iter();
        for name in names.filter(|name| name.starts_with(&prefix)) {
            if let Err(error) = self.runs.loaded.drop_map(&name) {
                tracing::warn!(name, %error, "cannot remove a dropped map");
            }
        }
    }
}

fn damaged_object(object: String, what: &str) -> Error {
    Error::Damaged(Box::new(Damage {
        file: object.into(),
        offset: 0,
        position: 0,
        what: what.to_owned(),
        help: "run `trefoil repair`, which rebuilds the maps from the log".to_owned(),
    }))
}

impl Map for RunMap {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.with(|map| map.get(key))
    }

    fn scan(&self, from: &[u8], to: &[u8], direction: Direction) -> Scan<'_> {
        Box::new(RunWalk {
            map: self,
            left: Some((from.to_vec(), to.to_vec())),
            direction,
            skipped: None,
            page: Vec::new().into_iter(),
            page_entries: PAGE_FIRST,
        })
    }

    fn moment(self: Arc<Self>) -> Result<Arc<dyn Map>> {
        Ok(self)
    }
}

/// A walk over a map whose files may be fetched again meanwhile.
struct RunWalk<'a> {
    map: &'a RunMap,
    left: Option<(Vec<u8>, Vec<u8>)>,
    direction: Direction,
    /// The key that was read last, if it is where `left` begins.
    skipped: Option<Bytes>,
    page: std::vec::IntoIter<Entry>,
    page_entries: usize,
}

impl RunWalk<'_> {
    /// Reads the next page. Returns whether there was one.
    fn read_on(&mut self) -> Result<bool> {
        let Some((from, to)) = self.left.take() else {
            return Ok(false);
        };
        let n_entries = self.page_entries;
        let page: Vec<Entry> = self.map.with(|map| {
            let entries = map.scan(&from, &to, self.direction);
            let is_new = |entry: &Result<Entry>| match (entry, &self.skipped) {
                (Ok((key, _)), Some(skipped)) => key != skipped,
                _ => true,
            };
            entries.filter(is_new).take(n_entries).collect()
        })?;
        self.page_entries = (n_entries * 4).min(PAGE_MAX);
        if page.len() == n_entries
            && let Some((last, _)) = page.last()
        {
            self.left = Some(match self.direction {
                Direction::Forwards => (last.to_vec(), to),
                Direction::Backwards => (from, last.to_vec()),
            });
            self.skipped = Some(last.clone()).filter(|_| self.direction == Direction::Forwards);
        }
        self.page = page.into_iter();
        Ok(true)
    }
}

impl Iterator for RunWalk<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        loop {
            if let Some(entry) = self.page.next() {
                return Some(Ok(entry));
            }
            match self.read_on() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
