//! A namespace in a directory: segment files for the log, a fjall database for the maps.
//!
//! `docs/format.md` describes every byte of the log.

pub mod disk;
pub mod files;
mod inspect;
mod lock;
mod log;
mod maps;
mod options;
pub mod private;
mod reading;
mod verify;

#[cfg(test)]
mod local_tests;

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use trefoil_core::{Damage, Error, Result};

use crate::edits::Edits;
use crate::{
    Batch, Completion, Fill, Group, LogEnd, Map, ReadReach, Record, Snapshot, Storage, StorageWork,
    StoredItem, Upkeep, Usage, VisitEntry, VisitItem, VisitLabel,
};

pub use inspect::{RecordInfo, SegmentInfo, SegmentKind};
pub use log::recovery::LogRecovery;
pub use log::settle::Cut;
pub use options::{LocalOptions, Stopwatch};
pub use verify::{Finding, LogReport, Progress};

use disk::{Disk, RealDisk};
pub use lock::DirectoryLock;
use log::Log;
use maps::Maps;
pub use maps::{LoadedMaps, check_name};
use reading::FileAccess;
use reading::file::ReadPatience;

/// The directory of the log in a namespace's directory.
const LOG_DIR: &str = "log";
/// The directory of the maps in a namespace's directory.
const MAPS_DIR: &str = "maps";
/// What the directory of the maps is called while it is being removed.
const REMOVED_MAPS_DIR: &str = "maps.removed";

/// A namespace on this machine's disk.
#[derive(Debug)]
pub struct LocalStorage {
    // Fields are dropped in this order: the lock goes last.
    maps: Maps,
    log: Log,
    recovery: LogRecovery,
    _lock: DirectoryLock,
}

fn io(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let context = format!("{what} {}", path.display());
    move |error| Error::io(context, &error)
}

impl LocalStorage {
    /// Opens the namespace in `dir`, which is created if it does not exist, and brings it back to
    /// the last durable group.
    pub fn open(dir: impl AsRef<Path>, options: LocalOptions) -> Result<Self> {
        Self::open_reaching(dir, options, &|_| Ok(0))
    }

    /// Opens the namespace in `dir`, unless its log ends before a commit that its maps know of: that
    /// is refused before anything is changed.
    pub fn open_reaching(
        dir: impl AsRef<Path>,
        options: LocalOptions,
        reach: &ReadReach<'_>,
    ) -> Result<Self> {
        let dir = dir.as_ref();
        let log_dir = dir.join(LOG_DIR);
        private::create_dir(&log_dir).map_err(io("creating", &log_dir))?;
        let lock = DirectoryLock::take(dir)?;
        sync_dirs(&*options.disk, dir)?;
        remove_dir(&dir.join(REMOVED_MAPS_DIR))?;
        let access = FileAccess::of(&options);
        let maps = Maps::open(&dir.join(MAPS_DIR), &options)?;
        let known_commit = reach(&|name| maps.map(name))?;
        let (log, recovery) = log::recovery::open(&log_dir, (options, access), known_commit)?;
        Ok(Self {
            maps,
            log,
            recovery,
            _lock: lock,
        })
    }

    /// Checks that a namespace has been made in `dir`: that there is a log, and a segment in it.
    pub fn require(dir: impl AsRef<Path>) -> Result<()> {
        let log_dir = dir.as_ref().join(LOG_DIR);
        if !log_dir.is_dir() {
            return Err(missing(&log_dir, "the directory of the log is missing"));
        }
        let segments = log::names::list(&log_dir)?.segments;
        match segments
            .values()
            .any(|files| files.plain || files.compressed)
        {
            true => Ok(()),
            false => Err(missing(&log_dir, "all segments of the log are missing")),
        }
    }

    /// What opening found and did.
    pub fn recovery(&self) -> &LogRecovery {
        &self.recovery
    }

    /// Removes the maps of the namespace in `dir`, to be built again from the log. All of them go at
    /// once, whenever the process ends. If the log cannot be opened, or lacks a commit that the maps
    /// know of, they stay.
    pub fn remove_maps(dir: impl AsRef<Path>, reach: &ReadReach<'_>) -> Result<()> {
        let dir = dir.as_ref();
        let _lock = DirectoryLock::take(dir)?;
        let (maps, removed) = (dir.join(MAPS_DIR), dir.join(REMOVED_MAPS_DIR));
        let options = LocalOptions::default();
        let known = Maps::open(&maps, &options).and_then(|maps| reach(&|name| maps.map(name)));
        // Maps that cannot be read know of nothing.
        let access = FileAccess::of(&options);
        log::recovery::open(&dir.join(LOG_DIR), (options, access), known.unwrap_or(0))?;
        remove_dir(&removed)?;
        if maps.exists() {
            fs::rename(&maps, &removed).map_err(io("removing", &maps))?;
            files::sync_dir(&RealDisk, dir)?;
        }
        remove_dir(&removed)
    }
}

/// What says that something is not where it must be, as when a volume is not mounted.
pub fn missing(path: &Path, what: &str) -> Error {
    Error::Damaged(Box::new(Damage {
        file: path.to_owned(),
        offset: 0,
        position: 0,
        what: what.to_owned(),
        help: "mount the volume that has it, or restore it from a backup".to_owned(),
    }))
}

fn remove_dir(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(io("removing", dir)(error))
        }
        _ => Ok(()),
    }
}

/// Makes a namespace's directories durable: itself in its parent, and what is in it. Also when they
/// exist: who made them may have been killed before it could do this.
fn sync_dirs(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let parent = dir.parent().map(|parent| match parent.as_os_str().len() {
        0 => Path::new("."),
        _ => parent,
    });
    for dir in [Some(dir), parent].into_iter().flatten() {
        files::sync_dir(disk, dir)?;
    }
    Ok(())
}

impl Storage for LocalStorage {
    fn append(&self, group: &Group) -> Completion {
        self.log.append(group).into()
    }

    fn end(&self) -> LogEnd {
        self.log.end()
    }

    fn read(&self, positions: &[u64], visit: &mut VisitItem<'_>) -> Result<()> {
        self.log
            .read(positions, ReadPatience::Waits, visit)
            .map(drop)
    }

    fn read_at_hand(&self, positions: &[u64], visit: &mut VisitItem<'_>) -> Result<bool> {
        self.log.read(positions, ReadPatience::AtHand, visit)
    }

    fn read_labels(&self, positions: &[u64], visit: &mut VisitLabel<'_>) -> Result<()> {
        self.log.read_labels(positions, visit)
    }

    fn replace_items(&self, stubs: &[StoredItem]) -> Result<()> {
        self.log.edit(&Edits::replacing(stubs))
    }

    fn drop_items(&self, positions: &[Range<u64>]) -> Result<()> {
        self.log.edit(&Edits::dropping(positions))
    }

    fn replay(
        &self,
        after_commit: u64,
        visit: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        self.log.replay(after_commit, visit)
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.log.snapshot().map(|snapshot| snapshot.info())
    }

    fn write_snapshot(&self, commit: u64, fill: &mut Fill<'_>) -> Result<()> {
        self.log.write_snapshot(commit, fill)
    }

    fn read_snapshot(&self, visit: &mut VisitEntry<'_>) -> Result<()> {
        let snapshot = self.log.snapshot();
        snapshot.map_or(Ok(()), |snapshot| snapshot.read(visit))
    }

    fn map(&self, name: &str) -> Result<Option<Arc<dyn Map>>> {
        self.maps.map(name)
    }

    fn map_names(&self) -> Result<Vec<String>> {
        self.maps.names()
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        self.maps.write(batch)
    }

    fn load(&self, name: &str, fill: &mut Fill<'_>) -> Result<()> {
        self.maps.load(name, fill)
    }

    fn drop_map(&self, name: &str) -> Result<()> {
        self.maps.drop_map(name)
    }

    fn maintain(&self, is_busy: &dyn Fn() -> bool) -> Result<Upkeep> {
        self.log.maintain(is_busy)
    }

    fn abandon(&self) {
        self.log.abandon();
    }

    fn seal(&self) -> Result<()> {
        self.log.seal()
    }

    fn mark(&self) -> Result<()> {
        self.log.mark()
    }

    fn usage(&self) -> Result<Usage> {
        // Asked once: they may grow meanwhile, and are a part of all maps.
        let written_map_bytes = self.maps.written_disk_bytes()?;
        let mut usage = Usage {
            map_bytes: written_map_bytes + self.maps.loaded_disk_bytes(),
            written_map_bytes,
            ..Usage::default()
        };
        self.log.add_usage(&mut usage);
        Ok(usage)
    }

    fn work(&self) -> StorageWork {
        self.log.work()
    }

    fn held_bytes(&self) -> u64 {
        self.maps.held_bytes()
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        self.log.segment_infos()
    }

    fn records(&self, segment: u64, visit: &mut dyn FnMut(RecordInfo)) -> Result<()> {
        self.log.record_infos(segment, visit)
    }
}
