//! The seal: proof of where the log ends, left when it was closed.
//!
//! It is written when the log is closed and removed, durably, before the first write after that. So
//! while there is one, nothing was being written: a bad record at the end is damage and not a write
//! that a crash cut short. Without one, as after a crash, it may be either.

use std::cmp::Ordering;
use std::path::Path;

use trefoil_core::Result;

use crate::LogEnd;
use crate::local::disk::Disk;
use crate::local::files::{self, step};

use super::Log;
use super::layout::{
    FORMAT_VERSION, SEGMENT_HEADER_BYTES, SegmentHeader, check_version, checksum, damaged, u32_at,
    u64_at,
};
use super::names;
use super::writer::LogWriter;

const MAGIC: [u8; 8] = *b"TREFEND\0";
const SEAL_BYTES: usize = 64;

/// Where the log ended when it was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seal {
    /// The number of the last segment.
    pub(crate) segment: u64,
    /// The salt of that segment.
    pub(crate) salt: u64,
    /// The offset after its last record.
    pub(crate) offset: u64,
    /// The last commit and the last position of the log.
    pub(crate) end: LogEnd,
}

impl Seal {
    fn encode(&self) -> [u8; SEAL_BYTES] {
        let mut out = [0; SEAL_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&self.segment.to_le_bytes());
        out[24..32].copy_from_slice(&self.salt.to_le_bytes());
        out[32..40].copy_from_slice(&self.offset.to_le_bytes());
        out[40..48].copy_from_slice(&self.end.commit.to_le_bytes());
        out[48..56].copy_from_slice(&self.end.position.to_le_bytes());
        let check = checksum(&out[..56], 0);
        out[56..].copy_from_slice(&check.to_le_bytes());
        out
    }

    /// Reads the seal at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let bytes = step("reading", path, std::fs::read(path))?;
        let is_seal = bytes.len() == SEAL_BYTES && bytes[..8] == MAGIC;
        if !is_seal || u64_at(&bytes, 56) != checksum(&bytes[..56], 0) {
            return Err(damaged(path, 0, 0, "the seal of the log is not valid"));
        }
        check_version(path, u32_at(&bytes, 8))?;
        Ok(Self {
            segment: u64_at(&bytes, 16),
            salt: u64_at(&bytes, 24),
            offset: u64_at(&bytes, 32),
            end: LogEnd {
                commit: u64_at(&bytes, 40),
                position: u64_at(&bytes, 48),
            },
        })
    }

    /// Returns the offset at which a segment ends that is the last one, or comes after it.
    pub(crate) fn end_in(&self, segment: SegmentHeader) -> Option<u64> {
        match segment.number.cmp(&self.segment) {
            Ordering::Less => None,
            Ordering::Equal => (segment.salt == self.salt).then_some(self.offset),
            Ordering::Greater => Some(SEGMENT_HEADER_BYTES as u64),
        }
    }

    /// What says that a log which ends at `end` has lost what was there when it was sealed.
    pub(crate) fn loss(&self, end: LogEnd) -> Option<String> {
        let (sealed, found) = (self.end.commit, end.commit);
        (found < sealed).then(|| {
            format!(
                "the log was closed at commit {sealed} and ends at commit {found}: a record is \
                 missing or not valid"
            )
        })
    }
}

/// Removes the seal of the log in `dir`, durably.
pub(super) fn remove(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let path = names::seal_path(dir);
    files::remove(disk, &path)?;
    files::sync_parent(disk, &path)
}

impl Log {
    /// Seals the log. See [`Storage::seal`](crate::Storage::seal).
    pub(crate) fn seal(&self) -> Result<()> {
        let mut writer = self.writer.lock();
        let end = self.end();
        if writer.is_sealed || writer.poison.is_some() || end.commit == 0 {
            return Ok(());
        }
        let seal = Seal {
            segment: writer.active.header.number,
            salt: writer.active.header.salt,
            offset: writer.active.summary().used_bytes,
            end,
        };
        let path = names::seal_path(&self.dir);
        files::replace(&*self.options.disk, &path, &seal.encode())?;
        writer.is_sealed = true;
        Ok(())
    }

    /// Removes the seal before something is written.
    pub(super) fn break_seal(&self, writer: &mut LogWriter) -> Result<()> {
        remove(&*self.options.disk, &self.dir)?;
        writer.is_sealed = false;
        Ok(())
    }
}
