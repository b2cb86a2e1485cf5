//! A file of the log, open for reading as long as somebody has it.
//!
//! Invariants: the bytes before its end never change, so a block of them may be kept for good. A file
//! that is being appended to has its last block, which is not whole, in memory.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use trefoil_core::{Error, Result};

use super::FileAccess;
use super::walk::FileWalk;
use crate::file_cache::{BLOCK_BYTES, BlockKey, FileBlock};
use crate::local::files::step;
use crate::local::log::layout::damaged;

/// Whether a read waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::local) enum ReadPatience {
    /// It does.
    Waits,
    /// It takes only what is in memory: in the cache, or in that of the operating system.
    AtHand,
}

/// The part of a file at its end that is not a whole block, while the file is being appended to.
#[derive(Debug)]
struct Growth {
    /// Where the bytes that may be read end.
    end: AtomicU64,
    /// Those behind the last whole block.
    last_block: Mutex<Vec<u8>>,
}

/// A file that is read.
#[derive(Debug)]
pub(in crate::local) struct LogFile {
    path: PathBuf,
    access: FileAccess,
    number: u64,
    /// What tells it from another file of the same name.
    inode: (u64, u64),
    length: u64,
    growth: Option<Growth>,
    /// Set when it can no longer be opened under its name.
    kept: OnceLock<Arc<File>>,
}

impl LogFile {
    /// Opens the file at `path`, which is complete.
    pub(in crate::local) fn open(path: &Path, access: &FileAccess) -> Result<Self> {
        let file = step("opening", path, access.disk.open_to_read(path))?;
        let metadata = step("measuring", path, file.metadata())?;
        let number = access.cache.next_file();
        access.cache.put_file(number, Arc::new(file));
        Ok(Self {
            path: path.to_owned(),
            access: access.clone(),
            number,
            inode: (metadata.dev(), metadata.ino()),
            length: metadata.len(),
            growth: None,
            kept: OnceLock::new(),
        })
    }

    /// Returns the same file, to be appended to at `end`. `path` is where it is from now on.
    pub(in crate::local) fn growing_from(mut self, end: u64, path: &Path) -> Result<Self> {
        let start = end - end % BLOCK_BYTES;
        let growth = Growth {
            end: end.into(),
            last_block: Mutex::new(self.read(start..end)?),
        };
        self.path = path.to_owned();
        self.growth = Some(growth);
        Ok(self)
    }

    /// Returns how long it was when it was opened.
    pub(in crate::local) fn length(&self) -> u64 {
        self.length
    }

    /// Returns where the bytes end that may be read.
    pub(in crate::local) fn end(&self) -> u64 {
        let end = self.growth.as_ref();
        end.map_or(self.length, |growth| growth.end.load(Ordering::Acquire))
    }

    /// Lets readers see what was appended.
    pub(in crate::local) fn append(&self, bytes: &[u8]) {
        let Some(growth) = &self.growth else {
            return;
        };
        let mut last_block = growth.last_block.lock();
        let end = growth.end.load(Ordering::Relaxed) + bytes.len() as u64;
        let n_last = (end % BLOCK_BYTES) as usize;
        if n_last >= bytes.len() {
            last_block.extend_from_slice(bytes);
        } else {
            last_block.clear();
            last_block.extend_from_slice(&bytes[bytes.len() - n_last..]);
        }
        growth.end.store(end, Ordering::Release);
    }

    /// Keeps the file open from now on, as it is about to be removed or replaced.
    pub(in crate::local) fn keep(&self) -> Result<()> {
        let file = self.opened()?;
        let _ = self.kept.set(file);
        Ok(())
    }

    pub(super) fn opened(&self) -> Result<Arc<File>> {
        if let Some(file) = self.kept.get() {
            return Ok(Arc::clone(file));
        }
        if let Some(file) = self.access.cache.file(self.number) {
            return Ok(file);
        }
        let file = match self.access.disk.open_to_read(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(self.damage(0, "the file is missing"));
            }
            opened => step("opening", &self.path, opened)?,
        };
        let metadata = step("measuring", &self.path, file.metadata())?;
        if (metadata.dev(), metadata.ino()) != self.inode {
            return Err(self.damage(0, "there is another file in the place of this one"));
        }
        let file = Arc::new(file);
        self.access.cache.put_file(self.number, Arc::clone(&file));
        Ok(file)
    }

    pub(in crate::local) fn damage(&self, offset: u64, what: &str) -> Error {
        damaged(&self.path, offset, 0, what)
    }

    /// Fills `bytes` with what is at `offset`.
    pub(super) fn read_exact(&self, file: &File, bytes: &mut [u8], offset: u64) -> Result<()> {
        let read = self.access.disk.read_at(file, bytes, offset);
        let n_read = read.map_err(|error| self.failed(offset, &error))?;
        match n_read == bytes.len() {
            true => Ok(()),
            false => Err(self.damage(offset + n_read as u64, "the file ends too early")),
        }
    }

    fn failed(&self, offset: u64, error: &std::io::Error) -> Error {
        let path = self.path.display();
        Error::io(format!("reading {path} at offset {offset}"), error)
    }

    /// Reads a range as a whole, past the cache; `None` if that would have to be waited for.
    pub(in crate::local) fn read_if(
        &self,
        range: Range<u64>,
        patience: ReadPatience,
    ) -> Result<Option<Vec<u8>>> {
        if range.end > self.length {
            return Err(self.damage(self.length, "the file ends too early"));
        }
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let file = self.opened()?;
        if patience == ReadPatience::Waits {
            self.read_exact(&file, &mut bytes, range.start)?;
            return Ok(Some(bytes));
        }
        let disk = &self.access.disk;
        let is_read = disk.read_at_hand(&file, &mut bytes, range.start);
        Ok(is_read.then_some(bytes))
    }

    /// Reads a range as a whole, past the cache.
    pub(in crate::local) fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let start = range.start;
        self.read_if(range, ReadPatience::Waits)?
            .ok_or_else(|| self.damage(start, "the file ends too early"))
    }

    /// Says that a range is about to be read.
    pub(super) fn expect(&self, file: &File, range: Range<u64>) {
        let end = range.end.min(self.length);
        if range.start < end {
            self.access
                .disk
                .expect(file, range.start, end - range.start);
        }
    }

    /// Says that the bytes behind `offset` are about to be read, in order.
    pub(in crate::local) fn read_on(&self, range: Range<u64>) {
        if let Ok(file) = self.opened() {
            self.expect(&file, range);
        }
    }

    /// Returns a walk over all of the file.
    pub(in crate::local) fn walk(&self) -> Result<FileWalk<'_>> {
        FileWalk::new(self, self.length)
    }

    fn key(&self, number: u64) -> BlockKey {
        BlockKey {
            file: self.number,
            number,
        }
    }

    /// Returns a block that is in memory.
    pub(super) fn block_at_hand(&self, number: u64) -> Option<FileBlock> {
        if let Some(growth) = &self.growth
            && number >= growth.end.load(Ordering::Acquire) / BLOCK_BYTES
        {
            let last_block = growth.last_block.lock();
            // It may have become whole meanwhile.
            if growth.end.load(Ordering::Relaxed) / BLOCK_BYTES == number {
                return Some(FileBlock::new(&last_block));
            }
        }
        self.access.cache.block(self.key(number))
    }

    /// Reads blocks that follow each other, all of them whole or at the end of the file, and keeps
    /// them in memory. `None` if that would have to be waited for.
    pub(super) fn read_blocks(
        &self,
        numbers: Range<u64>,
        patience: ReadPatience,
    ) -> Result<Option<Vec<FileBlock>>> {
        let end = (numbers.end * BLOCK_BYTES).min(self.length);
        let Some(bytes) = self.read_if(numbers.start * BLOCK_BYTES..end, patience)? else {
            return Ok(None);
        };
        let blocks = bytes.chunks(BLOCK_BYTES as usize).map(FileBlock::new);
        let blocks: Vec<FileBlock> = blocks.collect();
        for (number, block) in numbers.zip(&blocks) {
            self.access.cache.put_block(self.key(number), block.clone());
        }
        Ok(Some(blocks))
    }

    /// Returns what tells it from all other files.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        self.access.cache.forget_file(self.number);
    }
}
