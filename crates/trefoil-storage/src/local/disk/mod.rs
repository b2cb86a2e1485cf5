//! The few things the log does to files, behind a trait so that tests can make them fail.

#[cfg(any(test, feature = "testing"))]
mod simulated;

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{ErrorKind, IoSliceMut, Result};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Advice, fadvise};
use rustix::io::{ReadWriteFlags, preadv2};

#[cfg(any(test, feature = "testing"))]
pub use simulated::SimulatedDisk;

use super::private;

/// Changes to files and directories, and reading files.
pub trait Disk: Debug + Send + Sync {
    /// Creates a file, which replaces one of the same name, for reading and writing.
    fn create(&self, path: &Path) -> Result<File>;

    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> Result<File>;

    /// Gives a new file its length and reserves the room for it.
    fn allocate(&self, file: &File, length: u64) -> Result<()>;

    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> Result<()>;

    /// Makes the file's bytes, and what is needed to read them back, durable.
    fn sync_data(&self, file: &File) -> Result<()>;

    /// Makes creations, renames and removals in a directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    /// Renames a file, which replaces one of the new name.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Opens an existing file for reading. The operating system reads no more of it than it is asked
    /// for.
    fn open_to_read(&self, path: &Path) -> Result<File> {
        let file = File::open(path)?;
        // A file system that takes no advice reads ahead, which costs time and nothing else.
        let _ = fadvise(&file, 0, None, Advice::Random);
        Ok(file)
    }

    /// Fills `bytes` with what is at `offset`. Returns how many bytes there are: fewer where the file
    /// ends.
    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> Result<usize> {
        let mut n_read = 0;
        while n_read < bytes.len() {
            match file.read_at(&mut bytes[n_read..], offset + n_read as u64) {
                Ok(0) => break,
                Ok(n) => n_read += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(n_read)
    }

    /// Fills `bytes` with what is at `offset`, unless some of it would have to be waited for. Returns
    /// whether it did. What else is wrong is told by a read that waits.
    fn read_at_hand(&self, file: &File, bytes: &mut [u8], offset: u64) -> bool {
        let n_wanted = bytes.len();
        let mut bytes = [IoSliceMut::new(bytes)];
        let read = preadv2(file, &mut bytes, offset, ReadWriteFlags::NOWAIT);
        read == Ok(n_wanted)
    }

    /// Says that these bytes of a file are about to be read.
    fn expect(&self, file: &File, offset: u64, length: u64) {
        // It is advice: without it, reading takes longer.
        let _ = fadvise(file, offset, NonZeroU64::new(length), Advice::WillNeed);
    }
}

/// How much is written with one call. The operating system looks for memory in one piece for what is
/// written at once, and for megabytes that takes several times as long as to write them.
const PIECE_BYTES: usize = 1024 * 1024;

/// The disk of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> Result<File> {
        private::file_options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
    }

    fn open(&self, path: &Path) -> Result<File> {
        File::options().read(true).write(true).open(path)
    }

    fn allocate(&self, file: &File, length: u64) -> Result<()> {
        match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, length) {
            // A file system that cannot reserve room still gives the file its length.
            Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(length),
            other => other.map_err(Into::into),
        }
    }

    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> Result<()> {
        let (mut rest, mut offset) = (bytes, offset);
        while !rest.is_empty() {
            // Up to the next multiple, so that the pieces of memory are not smaller than need be.
            let room = PIECE_BYTES - offset as usize % PIECE_BYTES;
            let (piece, after) = rest.split_at(rest.len().min(room));
            file.write_all_at(piece, offset)?;
            offset += piece.len() as u64;
            rest = after;
        }
        Ok(())
    }

    fn sync_data(&self, file: &File) -> Result<()> {
        file.sync_data()
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path)
    }
}
