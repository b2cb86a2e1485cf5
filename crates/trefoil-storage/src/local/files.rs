//! Whole files that exist completely or not at all: written under another name, synced, renamed.
//!
//! A crash leaves the file that was there before or the new one. What is left under the other name
//! never counts.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use trefoil_core::{Error, Result};

use super::disk::Disk;

/// How the name of a file ends until the file is complete.
pub(crate) const UNFINISHED: &str = "new";

/// The name under which `path` is written until it is complete.
pub fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(UNFINISHED);
    name.into()
}

/// Creates the file at `path`, or replaces the one that is there, durably.
pub fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<()> {
    let unfinished = unfinished(path);
    write_unfinished(disk, &unfinished, bytes)?;
    finish(disk, &unfinished, path)
}

/// Writes and syncs a file that does not count yet. Nothing is left of it if that fails.
pub fn write_unfinished(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> Result<()> {
        let file = step("creating", path, disk.create(path))?;
        let reserved = disk.allocate(&file, bytes.len() as u64);
        step("reserving room for", path, reserved)?;
        step("writing", path, disk.write_at(&file, bytes, 0))?;
        step("syncing", path, disk.sync_data(&file))
    };
    let written = write();
    if written.is_err() {
        disk.remove(path).ok();
    }
    written
}

/// Gives a file that is complete and synced the name under which it counts, durably.
pub fn finish(disk: &dyn Disk, unfinished: &Path, path: &Path) -> Result<()> {
    let renamed = step("renaming to", path, disk.rename(unfinished, path));
    if renamed.is_err() {
        disk.remove(unfinished).ok();
    }
    renamed?;
    sync_parent(disk, path)
}

/// Removes a file if it is there.
pub fn remove(disk: &dyn Disk, path: &Path) -> Result<()> {
    match path.exists() {
        true => step("removing", path, disk.remove(path)),
        false => Ok(()),
    }
}

/// Makes what was created, renamed and removed in the directory of `path` durable.
pub fn sync_parent(disk: &dyn Disk, path: &Path) -> Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    sync_dir(disk, parent.unwrap_or(Path::new(".")))
}

/// Makes what was created, renamed and removed in a directory durable.
pub fn sync_dir(disk: &dyn Disk, dir: &Path) -> Result<()> {
    step("syncing", dir, disk.sync_dir(dir))
}

/// Returns where the last bytes of a file end that were ever written, as far as the file system knows.
/// Behind that is room, at most, which reads as zeros.
pub(crate) fn written_end(path: &Path) -> Result<u64> {
    let file = step("opening", path, File::open(path))?;
    let length = step("measuring", path, file.metadata())?.len();
    let mut end = 0;
    while end < length {
        end = match seek(&file, SeekFrom::Data(end)) {
            Ok(data) => seek(&file, SeekFrom::Hole(data)).unwrap_or(length),
            Err(Errno::NXIO) => break,
            // It cannot tell.
            Err(_) => length,
        };
    }
    Ok(end)
}

/// Says in the error of one step on the file at `path` which one failed.
pub(crate) fn step<T>(what: &str, path: &Path, result: std::io::Result<T>) -> Result<T> {
    result.map_err(|error| Error::io(format!("{what} {}", path.display()), &error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::disk::RealDisk;
    use super::*;

    #[test]
    fn a_file_is_replaced_or_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        replace(&RealDisk, &path, b"one").unwrap();
        replace(&RealDisk, &path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert!(!unfinished(&path).exists());
        fs::create_dir(unfinished(&path)).unwrap();
        replace(&RealDisk, &path, b"three").unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        remove(&RealDisk, &path).unwrap();
        remove(&RealDisk, &path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_was_never_written_lies_behind_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = RealDisk.create(&path).unwrap();
        RealDisk.allocate(&file, 1 << 20).unwrap();
        let end = || {
            RealDisk.sync_data(&file).unwrap();
            written_end(&path).unwrap()
        };
        let empty = end();
        RealDisk.write_at(&file, b"first", 0).unwrap();
        let first = end();
        RealDisk.write_at(&file, b"second", 700_000).unwrap();
        let second = end();
        // A file system may know nothing of all that.
        if empty < 1 << 20 {
            assert_eq!(empty, 0);
            assert!((5..100_000).contains(&first), "{first}");
            assert!((700_006..800_000).contains(&second), "{second}");
        }
        RealDisk
            .write_at(&file, b"at the end", (1 << 20) - 10)
            .unwrap();
        assert_eq!(end(), 1 << 20);
        assert!(written_end(&dir.path().join("none")).is_err());
    }
}
