//! A disk that fails and loses power on command, for tests.
//!
//! It works on real files and remembers what is not yet durable: the former bytes of every
//! 512-byte sector written since the last sync of its file, and every change of a directory since
//! its last sync. [`SimulatedDisk::crash`] takes a random part of that back,
//! [`SimulatedDisk::kill`] leaves it as it is, to be taken back later.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::{Disk, RealDisk};

const SECTOR_BYTES: u64 = 512;

/// What the next operations do.
#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    /// After this many operations all further ones fail, as if the power were gone.
    power_left: Option<u64>,
    /// Whether reserving room fails.
    is_full: bool,
    /// How writes fail, and after how many bytes.
    failing_writes: Option<(ErrorKind, usize)>,
    /// How syncs fail.
    failing_syncs: Option<ErrorKind>,
    /// How reads fail.
    failing_reads: Option<ErrorKind>,
    /// Whether every read has to be waited for.
    is_cold: bool,
}

#[derive(Debug)]
enum Change {
    Created(PathBuf),
    Renamed {
        from: PathBuf,
        to: PathBuf,
        replaced: Option<PathBuf>,
    },
    Removed {
        path: PathBuf,
        kept: PathBuf,
    },
}

impl Change {
    fn directory(&self) -> Option<&Path> {
        match self {
            Self::Created(path) | Self::Removed { path, .. } => path.parent(),
            Self::Renamed { to, .. } => to.parent(),
        }
    }

    fn undo(self) -> Result<()> {
        match self {
            Self::Created(path) => fs::remove_file(path),
            Self::Renamed { from, to, replaced } => {
                fs::rename(&to, from)?;
                replaced.map_or(Ok(()), |kept| fs::rename(kept, to))
            }
            Self::Removed { path, kept } => fs::rename(kept, path),
        }
    }
}

/// A sector that may differ from what is durable.
#[derive(Debug)]
struct Sector {
    path: PathBuf,
    durable: Vec<u8>,
    /// Whether the next sync writes it. After a failed sync it does not: the operating system takes
    /// the sector for written.
    is_dirty: bool,
}

#[derive(Debug, Default)]
struct SimulatedState {
    faults: Faults,
    operations: u64,
    /// By inode and number.
    unsynced: BTreeMap<(u64, u64), Sector>,
    changes: Vec<Change>,
    kept: u64,
    random: u64,
}

impl SimulatedState {
    /// A step of xorshift64*.
    fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// A disk whose failures are chosen by a test.
#[derive(Debug)]
pub struct SimulatedDisk {
    /// Where replaced and removed files are kept until that is durable.
    attic: PathBuf,
    state: Mutex<SimulatedState>,
}

fn lost_power() -> Error {
    Error::other("the power is gone")
}

impl SimulatedDisk {
    /// A disk that works; `attic` is an empty directory on the same file system as the log.
    pub fn new(attic: impl Into<PathBuf>, seed: u64) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let state = SimulatedState {
            random,
            ..SimulatedState::default()
        };
        Self {
            attic: attic.into(),
            state: Mutex::new(state),
        }
    }

    /// Lets all operations fail after the next `operations`; a write that meets the end of power
    /// is done in part.
    pub fn cut_power_after(&self, operations: u64) {
        self.state.lock().faults.power_left = Some(operations);
    }

    /// Sets whether there is no room for new files.
    pub fn set_full(&self, is_full: bool) {
        self.state.lock().faults.is_full = is_full;
    }

    /// Lets writes fail after their first `n_bytes`, or not any more. A write of zeros succeeds: it
    /// goes to where there is something already.
    pub fn fail_writes(&self, failure: Option<(ErrorKind, usize)>) {
        self.state.lock().faults.failing_writes = failure;
    }

    /// Lets syncs fail, or not any more.
    pub fn fail_syncs(&self, failure: Option<ErrorKind>) {
        self.state.lock().faults.failing_syncs = failure;
    }

    /// Lets reads of files fail, or not any more.
    pub fn fail_reads(&self, failure: Option<ErrorKind>) {
        self.state.lock().faults.failing_reads = failure;
    }

    /// Sets whether the operating system has nothing of its files in memory.
    pub fn set_cold(&self, is_cold: bool) {
        self.state.lock().faults.is_cold = is_cold;
    }

    /// How many operations were asked for so far.
    pub fn n_operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Kills the process: what is not durable stays, but may still be taken back when the power is
    /// lost later. The disk works again afterwards.
    pub fn kill(&self) {
        self.state.lock().faults = Faults::default();
    }

    /// Loses power: a random part of what is not durable is taken back. Nothing may have the files
    /// open. The disk works again afterwards.
    pub fn crash(&self) -> Result<()> {
        let mut state = self.state.lock();
        state.faults = Faults::default();
        let unsynced = std::mem::take(&mut state.unsynced);
        // Either a coin per sector, or all, or none.
        let mode = state.random() % 4;
        let mut opened: BTreeMap<u64, File> = BTreeMap::new();
        for ((inode, number), sector) in unsynced {
            let reverts = match mode {
                0 => true,
                1 => false,
                _ => state.random().is_multiple_of(2),
            };
            if !reverts {
                continue;
            }
            if let std::collections::btree_map::Entry::Vacant(entry) = opened.entry(inode) {
                // The file may have been renamed or removed since: then its inode is gone.
                let Some(file) = find_inode(&sector.path, &self.attic, inode)? else {
                    continue;
                };
                entry.insert(file);
            }
            if let Some(file) = opened.get(&inode) {
                file.write_all_at(&sector.durable, number * SECTOR_BYTES)?;
            }
        }
        let survivors = state.random() as usize % (state.changes.len() + 1);
        while state.changes.len() > survivors {
            if let Some(change) = state.changes.pop() {
                change.undo()?;
            }
        }
        state.changes.clear();
        Ok(())
    }

    /// Counts an operation and says whether there is power for it.
    fn spend(&self) -> bool {
        let mut state = self.state.lock();
        state.operations += 1;
        match &mut state.faults.power_left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    fn check_power(&self) -> Result<()> {
        self.spend().then_some(()).ok_or_else(lost_power)
    }

    /// Keeps the file at `path` from being lost, if it exists.
    fn keep(&self, path: &Path) -> Result<Option<PathBuf>> {
        if !path.exists() {
            return Ok(None);
        }
        let mut state = self.state.lock();
        state.kept += 1;
        let kept = self.attic.join(state.kept.to_string());
        fs::hard_link(path, &kept)?;
        Ok(Some(kept))
    }

    /// Remembers what was durable in the sectors from `offset` to `offset + length`.
    fn remember(&self, file: &File, offset: u64, length: u64) -> Result<()> {
        let inode = file.metadata()?.ino();
        let path = path_of(file)?;
        let mut state = self.state.lock();
        for number in offset / SECTOR_BYTES..(offset + length).div_ceil(SECTOR_BYTES) {
            if let Some(sector) = state.unsynced.get_mut(&(inode, number)) {
                sector.is_dirty = true;
                continue;
            }
            let mut durable = vec![0; SECTOR_BYTES as usize];
            let n = file.read_at(&mut durable, number * SECTOR_BYTES)?;
            durable.truncate(n);
            let path = path.clone();
            let sector = Sector {
                path,
                durable,
                is_dirty: true,
            };
            state.unsynced.insert((inode, number), sector);
        }
        Ok(())
    }
}

/// The path under which the operating system knows an open file.
fn path_of(file: &File) -> Result<PathBuf> {
    use std::os::fd::AsRawFd;
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Opens the file with this inode, which was at `path` once.
fn find_inode(path: &Path, attic: &Path, inode: u64) -> Result<Option<File>> {
    for directory in [path.parent().unwrap_or(attic), attic] {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.metadata()?.ino() == inode {
                return File::options().write(true).open(entry.path()).map(Some);
            }
        }
    }
    Ok(None)
}

impl Disk for SimulatedDisk {
    fn create(&self, path: &Path) -> Result<File> {
        self.check_power()?;
        if path.exists() {
            self.remove(path)?;
        }
        let file = RealDisk.create(path)?;
        self.state
            .lock()
            .changes
            .push(Change::Created(path.to_owned()));
        Ok(file)
    }

    fn open(&self, path: &Path) -> Result<File> {
        RealDisk.open(path)
    }

    fn allocate(&self, file: &File, length: u64) -> Result<()> {
        self.check_power()?;
        if self.state.lock().faults.is_full {
            return Err(ErrorKind::StorageFull.into());
        }
        file.set_len(length)
    }

    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> Result<()> {
        let has_power = self.spend();
        let failing = self.state.lock().faults.failing_writes;
        if let Some((kind, n_bytes)) = failing
            && bytes.iter().any(|byte| *byte != 0)
        {
            let written = &bytes[..n_bytes.min(bytes.len())];
            self.remember(file, offset, written.len() as u64)?;
            file.write_all_at(written, offset)?;
            return Err(kind.into());
        }
        self.remember(file, offset, bytes.len() as u64)?;
        if !has_power {
            // `crash` loses any of the sectors; that the rest of the write never began is another
            // way to lose them.
            let n = self.state.lock().random() as usize % (bytes.len() + 1);
            file.write_all_at(&bytes[..n], offset)?;
            return Err(lost_power());
        }
        file.write_all_at(bytes, offset)
    }

    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> Result<usize> {
        match self.state.lock().faults.failing_reads {
            Some(kind) => Err(kind.into()),
            None => RealDisk.read_at(file, bytes, offset),
        }
    }

    fn read_at_hand(&self, file: &File, bytes: &mut [u8], offset: u64) -> bool {
        let Faults {
            is_cold,
            failing_reads,
            ..
        } = self.state.lock().faults;
        !is_cold && failing_reads.is_none() && RealDisk.read_at_hand(file, bytes, offset)
    }

    fn sync_data(&self, file: &File) -> Result<()> {
        self.check_power()?;
        let inode = file.metadata()?.ino();
        let mut state = self.state.lock();
        let failing = state.faults.failing_syncs;
        state.unsynced.retain(|&(other, _), sector| {
            let is_written = other == inode && sector.is_dirty;
            sector.is_dirty &= other != inode;
            failing.is_some() || !is_written
        });
        failing.map_or(Ok(()), |kind| Err(Error::new(kind, "the sync failed")))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.check_power()?;
        let mut state = self.state.lock();
        if let Some(kind) = state.faults.failing_syncs {
            return Err(Error::new(kind, "the sync failed"));
        }
        state
            .changes
            .retain(|change| change.directory() != Some(path));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.check_power()?;
        let replaced = self.keep(to)?;
        fs::rename(from, to)?;
        let (from, to) = (from.to_owned(), to.to_owned());
        self.state
            .lock()
            .changes
            .push(Change::Renamed { from, to, replaced });
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.check_power()?;
        let kept = self.keep(path)?;
        fs::remove_file(path)?;
        if let Some(kept) = kept {
            let path = path.to_owned();
            self.state
                .lock()
                .changes
                .push(Change::Removed { path, kept });
        }
        Ok(())
    }
}
