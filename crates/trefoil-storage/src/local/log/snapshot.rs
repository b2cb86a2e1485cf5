//! The snapshot: the entries of the state as of one commit, in blocks with checksums, in one file.
//!
//! It is written and read in order, a block at a time, so that neither needs memory for all of it.
//! The header is written last, under a name that does not count yet.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trefoil_core::{Error, Result, put_bytes, take_bytes};

use crate::contract::no_such_snapshot;
use crate::local::disk::Disk;
use crate::local::files::{self, step};
use crate::local::reading::FileAccess;
use crate::local::reading::file::LogFile;
use crate::{Fill, Snapshot, VisitEntry};

use super::Log;
use super::codec::{ZstdEncoder, decompress};
use super::create::new_salt;
use super::layout::{FORMAT_VERSION, check_version, checksum, damaged, u32_at, u64_at};
use super::names::{self, FileKind};

const MAGIC: [u8; 8] = *b"TREFSNP\0";
const HEADER_BYTES: usize = 64;
const BLOCK_HEADER_BYTES: usize = 16;
/// A block is closed when it holds this much.
const BLOCK_BYTES: usize = 256 * 1024;
/// How much is written between two syncs: the groups that are appended meanwhile wait in the same
/// queue of the device.
const UNSYNCED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What a snapshot's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    snapshot: Snapshot,
    salt: u64,
    blocks_bytes: u64,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&self.snapshot.commit.to_le_bytes());
        out[24..32].copy_from_slice(&self.salt.to_le_bytes());
        out[32..40].copy_from_slice(&self.snapshot.entries.to_le_bytes());
        out[40..48].copy_from_slice(&self.snapshot.bytes.to_le_bytes());
        out[48..56].copy_from_slice(&self.blocks_bytes.to_le_bytes());
        let check = checksum(&out[..56], 0);
        out[56..].copy_from_slice(&check.to_le_bytes());
        out
    }

    fn decode(path: &Path, bytes: &[u8], file_bytes: u64) -> Result<Self> {
        let is_header = bytes.len() >= HEADER_BYTES && bytes[..8] == MAGIC;
        if !is_header || u64_at(bytes, 56) != checksum(&bytes[..56], 0) {
            return Err(damaged(path, 0, 0, "the snapshot's header is not valid"));
        }
        check_version(path, u32_at(bytes, 8))?;
        let snapshot = Snapshot {
            commit: u64_at(bytes, 16),
            entries: u64_at(bytes, 32),
            bytes: u64_at(bytes, 40),
        };
        let header = Self {
            snapshot,
            salt: u64_at(bytes, 24),
            blocks_bytes: u64_at(bytes, 48),
        };
        if header.blocks_bytes != file_bytes - HEADER_BYTES as u64 {
            let what = "the snapshot's length is not what its header says";
            return Err(damaged(path, 0, 0, what));
        }
        Ok(header)
    }
}

/// The checksum of a block whose header begins with `lengths`.
fn block_check(lengths: &[u8], stored: &[u8], seed: u64) -> u64 {
    checksum(stored, checksum(lengths, seed))
}

/// A snapshot that is being written.
struct SnapshotWriter<'a> {
    disk: &'a dyn Disk,
    path: &'a Path,
    file: File,
    encoder: ZstdEncoder<'a>,
    header: Header,
    block: Vec<u8>,
    last_key: Option<Vec<u8>>,
    unsynced_bytes: u64,
}

impl SnapshotWriter<'_> {
    fn push(&mut self, key: Vec<u8>, value: &[u8]) -> Result<()> {
        if self.last_key.as_ref().is_some_and(|last| *last >= key) {
            return Err(Error::invalid("the keys of a snapshot must ascend"));
        }
        put_bytes(&mut self.block, &key);
        put_bytes(&mut self.block, value);
        self.header.snapshot.entries += 1;
        self.header.snapshot.bytes += (key.len() + value.len()) as u64;
        self.last_key = Some(key);
        if self.block.len() >= BLOCK_BYTES {
            self.close_block()
        } else {
            Ok(())
        }
    }

    fn close_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let stored = self.encoder.compress(&self.block)?.unwrap_or(&self.block);
        let length = |bytes: &[u8]| {
            let limit = u32::MAX as usize;
            u32::try_from(bytes.len())
                .map_err(|_| Error::over_limit("bytes of an entry", bytes.len(), limit))
        };
        let mut out = Vec::with_capacity(BLOCK_HEADER_BYTES + stored.len());
        out.extend_from_slice(&length(&self.block)?.to_le_bytes());
        out.extend_from_slice(&length(stored)?.to_le_bytes());
        let seed = self.header.salt.wrapping_add(self.header.blocks_bytes);
        let check = block_check(&out, stored, seed);
        out.extend_from_slice(&check.to_le_bytes());
        out.extend_from_slice(stored);
        self.block.clear();
        self.write(&out)
    }

    /// Appends to the file.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let start = HEADER_BYTES as u64 + self.header.blocks_bytes;
        let end = start + bytes.len() as u64;
        let reserved = self.disk.allocate(&self.file, end);
        step("reserving room for", self.path, reserved)?;
        let written = self.disk.write_at(&self.file, bytes, start);
        step("writing", self.path, written)?;
        self.header.blocks_bytes += bytes.len() as u64;
        self.unsynced_bytes += bytes.len() as u64;
        if self.unsynced_bytes < UNSYNCED_BYTES_MAX {
            return Ok(());
        }
        self.unsynced_bytes = 0;
        step("syncing", self.path, self.disk.sync_data(&self.file))
    }

    fn finish(mut self) -> Result<()> {
        self.close_block()?;
        self.write(&[])?;
        let written = self.disk.write_at(&self.file, &self.header.encode(), 0);
        step("writing", self.path, written)?;
        step("syncing", self.path, self.disk.sync_data(&self.file))
    }
}

/// Writes the whole file at `path`.
fn write(
    disk: &dyn Disk,
    path: &Path,
    (commit, level): (u64, i32),
    fill: &mut Fill<'_>,
) -> Result<()> {
    let mut writer = SnapshotWriter {
        disk,
        path,
        file: step("creating", path, disk.create(path))?,
        encoder: ZstdEncoder::new(level, None)?,
        header: Header {
            snapshot: Snapshot {
                commit,
                ..Snapshot::default()
            },
            salt: new_salt()?,
            blocks_bytes: 0,
        },
        block: Vec::new(),
        last_key: None,
        unsynced_bytes: 0,
    };
    fill(&mut |key, value| writer.push(key, &value))?;
    writer.finish()
}

/// A snapshot whose header is valid; whether its blocks are shows when they are read.
#[derive(Debug)]
pub(crate) struct SnapshotFile {
    pub(crate) path: PathBuf,
    header: Header,
    file: LogFile,
}

impl SnapshotFile {
    /// Opens the snapshot of `commit` in the log's directory.
    pub(crate) fn open(dir: &Path, commit: u64, access: &FileAccess) -> Result<Self> {
        let path = names::path_of(dir, commit, FileKind::Snapshot);
        let file = LogFile::open(&path, access)?;
        let bytes = file.read(0..file.length().min(HEADER_BYTES as u64))?;
        let header = Header::decode(&path, &bytes, file.length())?;
        if header.snapshot.commit != commit {
            let what = format!(
                "the file says that it is of commit {}",
                header.snapshot.commit
            );
            return Err(damaged(&path, 0, 0, what));
        }
        Ok(Self { path, header, file })
    }

    pub(crate) fn info(&self) -> Snapshot {
        self.header.snapshot
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.file.length()
    }

    /// Hands every entry to `visit`.
    pub(crate) fn read(&self, visit: &mut VisitEntry<'_>) -> Result<()> {
        let mut walk = self.file.walk()?;
        let mut left = self.header.snapshot;
        let mut offset = 0;
        while offset < self.header.blocks_bytes {
            let wrong = || self.damage(offset, "a block of entries is not valid");
            let start = HEADER_BYTES as u64 + offset;
            let head = walk.bytes(start..start + BLOCK_HEADER_BYTES as u64)?;
            let stored_bytes = u32_at(head.ok_or_else(wrong)?, 4);
            let length = BLOCK_HEADER_BYTES as u64 + u64::from(stored_bytes);
            let bytes = walk.bytes(start..start + length)?.ok_or_else(wrong)?;
            let content = self.block(bytes, offset).ok_or_else(wrong)?;
            let mut rest = content.as_ref();
            while !rest.is_empty() {
                let key = take_bytes(&mut rest).ok_or_else(wrong)?;
                let value = take_bytes(&mut rest).ok_or_else(wrong)?;
                left.entries = left.entries.checked_sub(1).ok_or_else(wrong)?;
                visit(key, value)?;
            }
            offset += length;
        }
        match left.entries {
            0 => Ok(()),
            _ => Err(self.damage(
                offset,
                "the snapshot has fewer entries than its header says",
            )),
        }
    }

    fn damage(&self, offset: u64, what: &str) -> Error {
        damaged(&self.path, HEADER_BYTES as u64 + offset, 0, what)
    }

    /// The content of the block in `bytes`, which are at `offset` from the first block; `None` if it is
    /// not valid.
    fn block<'a>(&self, bytes: &'a [u8], offset: u64) -> Option<std::borrow::Cow<'a, [u8]>> {
        let (head, stored) = bytes.split_at_checked(BLOCK_HEADER_BYTES)?;
        let plain_bytes = u32_at(head, 0) as usize;
        let seed = self.header.salt.wrapping_add(offset);
        if block_check(&head[..8], stored, seed) != u64_at(head, 8) {
            return None;
        }
        Some(if stored.len() < plain_bytes {
            decompress(stored, plain_bytes, None)?.into()
        } else {
            stored.into()
        })
    }
}

impl Log {
    /// The snapshot as it is now.
    pub(crate) fn snapshot(&self) -> Option<Arc<SnapshotFile>> {
        self.snapshot.read().clone()
    }

    /// Replaces the snapshot. See [`Storage::write_snapshot`](crate::Storage::write_snapshot).
    pub(crate) fn write_snapshot(&self, commit: u64, fill: &mut Fill<'_>) -> Result<()> {
        let before = self.snapshot();
        let last = before.as_ref().map_or(0, |before| before.info().commit);
        let end = self.end().commit;
        if commit < last || commit > end {
            return Err(no_such_snapshot(commit, last, end));
        }
        let disk = &*self.options.disk;
        let path = names::path_of(&self.dir, commit, FileKind::Snapshot);
        let unfinished = files::unfinished(&path);
        let level = self.options.compression_level;
        if let Err(error) = write(disk, &unfinished, (commit, level), fill) {
            // What is left of it would be removed at the next start anyway.
            disk.remove(&unfinished).ok();
            return Err(error);
        }
        files::finish(disk, &unfinished, &path)?;
        let opened = SnapshotFile::open(&self.dir, commit, &self.access)?;
        *self.snapshot.write() = Some(Arc::new(opened));
        match before.filter(|before| before.path != path) {
            Some(before) => {
                before.file.keep()?;
                files::remove(disk, &before.path)?;
                files::sync_parent(disk, &path)
            }
            None => Ok(()),
        }
    }
}
