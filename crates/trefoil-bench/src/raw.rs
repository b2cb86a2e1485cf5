//! The raw limit: append bytes to a preallocated file and `fdatasync` each time.
//!
//! Nothing durable on this disk can be faster with one flush per batch.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{FallocateFlags, fallocate};

/// The size of the file.
const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// How much is zeroed with one write. Linux may keep what was written at once as one large folio in
/// its cache, which makes every small write into it slower.
const ZERO_BYTES: usize = 32 * 1024;

/// The file and the place of the next record; it begins again at the front when it is full.
#[derive(Debug)]
pub(crate) struct RawFile {
    file: File,
    offset: u64,
}

impl RawFile {
    /// A file that was written once with zeros: the fastest one for small records.
    pub(crate) fn written(directory: &Path) -> Result<Self> {
        let mut file = create(directory)?;
        let zeros = vec![0; ZERO_BYTES];
        for _ in 0..FILE_BYTES / zeros.len() as u64 {
            file.write_all(&zeros)?;
        }
        file.sync_all()?;
        Ok(Self { file, offset: 0 })
    }

    /// A file with room that was never written, as a log that grows fast has it.
    pub(crate) fn reserved(directory: &Path) -> Result<Self> {
        let file = create(directory)?;
        fallocate(&file, FallocateFlags::empty(), 0, FILE_BYTES)?;
        file.sync_all()?;
        Ok(Self { file, offset: 0 })
    }

    /// Appends a record and waits until it is on disk.
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<()> {
        if self.offset + record.len() as u64 > FILE_BYTES {
            self.offset = 0;
        }
        self.file.write_all_at(record, self.offset)?;
        self.file.sync_data()?;
        self.offset += record.len() as u64;
        Ok(())
    }
}

fn create(directory: &Path) -> Result<File> {
    let path = directory.join("raw");
    File::create_new(&path).with_context(|| path.display().to_string())
}
