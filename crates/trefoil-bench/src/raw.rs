//! The raw limit: append bytes to a preallocated, already written file and `fdatasync` each time.
//!
//! Nothing durable on this disk can be faster with one flush per batch.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};

/// The size of the file, written once with zeros before anything is measured.
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
    pub(crate) fn create(directory: &Path) -> Result<Self> {
        let path = directory.join("raw");
        let mut file = File::create_new(&path).with_context(|| path.display().to_string())?;
        let zeros = vec![0; ZERO_BYTES];
        for _ in 0..FILE_BYTES / zeros.len() as u64 {
            file.write_all(&zeros)?;
        }
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
