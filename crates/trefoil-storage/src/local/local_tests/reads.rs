//! What reads ask the disk for, and what becomes of those that it does not answer.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use super::*;
use crate::BlockCache;

/// The most that one event may cost.
const EVENT_BYTES_MAX: u64 = 16 * 1024;
const N_ITEMS: u64 = 24_000;

/// A disk that counts what it is asked for and fails on command.
#[derive(Debug, Default)]
struct WatchedDisk {
    read_bytes: AtomicU64,
    /// Whether the operating system has nothing in memory.
    is_cold: AtomicBool,
    /// The name of a file that cannot be read.
    failing: Mutex<Option<PathBuf>>,
}

impl WatchedDisk {
    fn check(&self, file: &File) -> io::Result<()> {
        use std::os::fd::AsRawFd as _;
        let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        match self.failing.lock().as_ref() == Some(&path) {
            true => Err(io::Error::from_raw_os_error(5)),
            false => Ok(()),
        }
    }

    /// How many bytes `work` reads.
    fn reads<T>(&self, work: impl FnOnce() -> T) -> (u64, T) {
        let before = self.read_bytes.load(Ordering::Relaxed);
        let done = work();
        (self.read_bytes.load(Ordering::Relaxed) - before, done)
    }
}

impl Disk for WatchedDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        UnsyncedDisk.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        UnsyncedDisk.open(path)
    }

    fn allocate(&self, file: &File, length: u64) -> io::Result<()> {
        UnsyncedDisk.allocate(file, length)
    }

    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        UnsyncedDisk.write_at(file, bytes, offset)
    }

    fn sync_data(&self, file: &File) -> io::Result<()> {
        UnsyncedDisk.sync_data(file)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        UnsyncedDisk.sync_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        UnsyncedDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        UnsyncedDisk.remove(path)
    }

    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.check(file)?;
        let n_read = UnsyncedDisk.read_at(file, bytes, offset)?;
        self.read_bytes.fetch_add(n_read as u64, Ordering::Relaxed);
        Ok(n_read)
    }

    fn read_at_hand(&self, file: &File, bytes: &mut [u8], offset: u64) -> bool {
        let is_cold = self.is_cold.load(Ordering::Relaxed);
        !is_cold && matches!(self.read_at(file, bytes, offset), Ok(n) if n == bytes.len())
    }
}

/// A log of several segments of both kinds, not read yet, and its disk and cache.
struct ColdLog {
    dir: TempDir,
    disk: Arc<WatchedDisk>,
    options: LocalOptions,
}

impl ColdLog {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let disk = Arc::new(WatchedDisk::default());
        let options = LocalOptions {
            segment_bytes_min: 1 << 20,
            segment_bytes_max: 2 << 20,
            plain_segments: 2,
            disk: Arc::clone(&disk) as Arc<dyn Disk>,
            ..LocalOptions::default()
        };
        let storage = open(dir.path(), &options).unwrap();
        let mut random = Random::new(7);
        for first in (1..=N_ITEMS).step_by(100) {
            storage
                .append(&group(first, 100, &mut random))
                .wait()
                .unwrap();
            storage.maintain(&|| false).unwrap();
        }
        maintain_fully(&storage);
        let usage = storage.usage().unwrap();
        assert!(
            usage.compressed_segments > 1 && usage.plain_segments > 2,
            "{usage:?}"
        );
        drop(storage);
        let cache = Arc::new(BlockCache::new(64 << 20));
        let options = LocalOptions { cache, ..options };
        Self { dir, disk, options }
    }

    fn open(&self) -> LocalStorage {
        open(self.dir.path(), &self.options).unwrap()
    }
}

/// `n_items` items of 300 bytes that cannot be compressed, which say where they are.
fn group(first: u64, n_items: u64, random: &mut Random) -> Group {
    let mut items = Items::default();
    for position in first..first + n_items {
        let mut bytes = position.to_le_bytes().to_vec();
        bytes.extend((0..292).map(|_| random.below(256) as u8));
        items.push(Label::default(), &bytes);
    }
    let record = Record {
        first_commit: first,
        n_commits: n_items as u32,
        first_position: first,
        items,
        ..Record::default()
    };
    Group {
        records: vec![record],
    }
}

/// Reads the items at these positions and checks that they are those.
#[track_caller]
fn read(storage: &dyn Storage, positions: &[u64]) {
    let mut seen = Vec::new();
    let mut visit = |item: crate::StoredItem| {
        assert_eq!(item.bytes[..8], item.position.to_le_bytes());
        seen.push(item.position);
        ControlFlow::Continue(())
    };
    storage.read(positions, &mut visit).unwrap();
    assert_eq!(seen, positions);
}

/// Positions all over the log.
fn scattered(first: u64) -> Vec<u64> {
    (first..=N_ITEMS).step_by(N_ITEMS as usize / 50).collect()
}

#[test]
fn an_event_costs_little_of_a_disk_the_first_time_and_nothing_the_second() {
    let log = ColdLog::new();
    let storage = log.open();
    // What is needed to read a segment at all is read once.
    let (opening, ()) = log.disk.reads(|| read(&storage, &scattered(1)));
    let log_bytes = storage.usage().unwrap().log_used_bytes;
    assert!(opening < log_bytes / 5, "{opening} of {log_bytes}");
    let positions = scattered(200);
    let n_events = positions.len() as u64;
    let (first, ()) = log.disk.reads(|| read(&storage, &positions));
    assert!(first > 0 && first <= n_events * EVENT_BYTES_MAX, "{first}");
    let (second, ()) = log.disk.reads(|| read(&storage, &positions));
    assert_eq!(second, 0);
    let backwards: Vec<u64> = positions.into_iter().rev().collect();
    let (third, ()) = log.disk.reads(|| read(&storage, &backwards));
    assert_eq!(third, 0);
}

#[test]
fn what_was_just_appended_is_in_memory() {
    let log = ColdLog::new();
    let storage = log.open();
    let mut random = Random::new(8);
    for first in N_ITEMS + 1..N_ITEMS + 40 {
        let group = group(first, 1, &mut random);
        storage.append(&group).wait().unwrap();
        let (bytes, ()) = log.disk.reads(|| read(&storage, &[first]));
        // One in 12 is the first of a block: the one before it, which is whole now, is read.
        assert!(bytes == 0 || bytes == 4096, "{bytes}");
    }
    let written: Vec<u64> = (N_ITEMS + 1..N_ITEMS + 40).collect();
    read(&storage, &written);
}

#[test]
fn what_is_read_in_order_does_not_fill_the_cache() {
    let log = ColdLog::new();
    let storage = log.open();
    read(&storage, &scattered(1));
    let bytes = log.options.cache.bytes();
    let all: Vec<u64> = (1..=N_ITEMS).collect();
    let (asked, ()) = log.disk.reads(|| read(&storage, &all));
    let log_bytes = storage.usage().unwrap().log_used_bytes;
    assert!(asked < log_bytes * 5 / 4, "{asked} of {log_bytes}");
    assert_eq!(replay(&storage, 0).unwrap().len() as u64, N_ITEMS / 100);
    let grown = log.options.cache.bytes() - bytes;
    assert!(grown < log_bytes / 10, "{grown}");
}

#[test]
fn who_does_not_wait_reads_what_is_in_memory() {
    let log = ColdLog::new();
    let storage = log.open();
    let positions = scattered(100);
    let at_hand = |positions: &[u64]| {
        let mut n_seen = 0;
        let read = storage.read_at_hand(positions, &mut |_| {
            n_seen += 1;
            ControlFlow::Continue(())
        });
        read.unwrap().then_some(n_seen)
    };
    log.disk.is_cold.store(true, Ordering::Relaxed);
    let (asked, found) = log.disk.reads(|| at_hand(&positions));
    assert_eq!((asked, found), (0, None));
    read(&storage, &positions);
    assert_eq!(at_hand(&positions), Some(positions.len()));
    let others = scattered(300);
    assert_eq!(at_hand(&others), None);
    // What the operating system has in memory is read at once.
    log.disk.is_cold.store(false, Ordering::Relaxed);
    assert_eq!(at_hand(&others), Some(others.len()));
}

/// The files of the log that end like this.
fn files_ending(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = log_files(dir);
    files.retain(|file| file.extension().is_some_and(|other| other == extension));
    files
}

/// Reads each item on its own: how many can be read, and what is said of the others.
fn try_each(storage: &dyn Storage) -> (u64, Vec<Error>) {
    let (mut n_read, mut errors) = (0, Vec::new());
    for position in (1..=N_ITEMS).step_by(50) {
        match storage.read(&[position], &mut |_| ControlFlow::Continue(())) {
            Ok(()) => n_read += 1,
            Err(error) => errors.push(error),
        }
    }
    (n_read, errors)
}

#[test]
fn a_file_that_the_disk_cannot_read_costs_the_reads_of_it() {
    let log = ColdLog::new();
    for extension in ["segment", "compressed"] {
        let storage = log.open();
        let path = files_ending(log.dir.path(), extension).remove(0);
        let path = path.canonicalize().unwrap();
        *log.disk.failing.lock() = Some(path.clone());
        let (n_read, errors) = try_each(&storage);
        assert!(n_read > 100 && errors.len() > 20, "{n_read}");
        let name = path.file_name().unwrap().to_str().unwrap();
        for error in errors {
            assert!(matches!(error, Error::Io { .. }), "{error:?}");
            assert!(error.to_string().contains(name), "{error}");
        }
        *log.disk.failing.lock() = None;
        assert_eq!(try_each(&storage).1.len(), 0);
    }
}

#[test]
fn a_file_that_is_cut_short_while_it_is_open_is_damaged_and_the_rest_is_read() {
    for extension in ["segment", "compressed"] {
        let log = ColdLog::new();
        let storage = log.open();
        let path = files_ending(log.dir.path(), extension).remove(0);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        let (n_read, errors) = try_each(&storage);
        assert!(n_read > 100 && errors.len() > 10, "{n_read}");
        for error in errors {
            let Error::Damaged(damage) = error else {
                panic!("{error:?}");
            };
            assert_eq!(damage.file, path);
        }
        drop(storage);
        let report = LocalStorage::verify_log(log.dir.path(), &mut |_| {}).unwrap();
        assert!(report.findings.iter().any(|finding| finding.file == path));
    }
}

#[test]
fn positions_with_many_jumps_are_found_in_a_file() {
    let dir = TempDir::new().unwrap();
    let options = LocalOptions {
        segment_bytes_min: 64 * 1024,
        segment_bytes_max: 64 * 1024,
        plain_segments: 1,
        ..small()
    };
    let storage = open(dir.path(), &options).unwrap();
    let positions: Vec<u64> = (1..3000).map(|at| at * 3).collect();
    for (commit, &position) in (1..).zip(&positions) {
        let mut items = Items::default();
        items.push(Label::default(), &position.to_le_bytes());
        let record = Record {
            first_commit: commit,
            n_commits: 1,
            first_position: position,
            items,
            ..Record::default()
        };
        let records = vec![record];
        storage.append(&Group { records }).wait().unwrap();
    }
    maintain_fully(&storage);
    drop(storage);
    let storage = open(dir.path(), &options).unwrap();
    read(&storage, &positions);
    for &position in &positions {
        read(&storage, &[position]);
    }
    let jumped: Vec<u64> = positions.iter().map(|position| position + 1).collect();
    let mut visit = |item: crate::StoredItem| panic!("{}", item.position);
    storage.read(&jumped, &mut visit).unwrap();
    assert_eq!(replay(&storage, 0).unwrap().len(), positions.len());
    drop(storage);
    assert_eq!(findings(dir.path()), 0);
}
