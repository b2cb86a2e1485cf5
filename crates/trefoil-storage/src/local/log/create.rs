//! Making segments: room is reserved under another name, and gets that of a segment when it is one.

use std::fs::File;
use std::path::Path;

use trefoil_core::{Cause, Error, Result};

use crate::local::disk::Disk;
use crate::local::files::{step, sync_dir};
use crate::local::reading::FileAccess;
use crate::local::reading::file::LogFile;

use super::index::GrowingIndex;
use super::layout::{SEGMENT_HEADER_BYTES, SegmentHeader};
use super::names::{self, FileKind};
use super::plain::PlainSegment;
use super::summary::Summary;

/// How much is zeroed with one write. The operating system may keep what was written at once
/// together in its cache, and then goes through all of it for every small group that is appended
/// there.
const ZERO_BYTES: usize = 32 * 1024;
/// How much is zeroed between two syncs: the groups that are appended meanwhile wait in the same
/// queue of the device.
const UNSYNCED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A segment without records, and the file to write it.
#[derive(Debug)]
pub(crate) struct NewSegment {
    pub(crate) file: File,
    pub(crate) segment: PlainSegment,
}

/// Room for a segment: a file of its size that has no name of its own yet.
#[derive(Debug)]
pub(crate) struct Room {
    file: File,
    path: std::path::PathBuf,
    capacity: u64,
}

/// A random number that seeds the checksums of a file.
pub(crate) fn new_salt() -> Result<u64> {
    getrandom::u64().map_err(|error| Error::failed("making a salt", Cause::new(error)))
}

impl Room {
    /// Reserves room in a new file at `path`. With `zeroed` its bytes are really written: syncing a
    /// write into written bytes is much faster than into reserved ones. The end of the zeros is
    /// synced with the header.
    pub(crate) fn reserve(
        disk: &dyn Disk,
        path: &Path,
        capacity: u64,
        zeroed: bool,
    ) -> Result<Self> {
        let file = step("creating", path, disk.create(path))?;
        let room = Self {
            file,
            path: path.to_owned(),
            capacity,
        };
        let filled = room.fill(disk, zeroed);
        if filled.is_err() {
            // What is left of it would be removed at the next start anyway.
            disk.remove(path).ok();
        }
        filled.map(|()| room)
    }

    fn fill(&self, disk: &dyn Disk, zeroed: bool) -> Result<()> {
        step(
            "reserving room for",
            &self.path,
            disk.allocate(&self.file, self.capacity),
        )?;
        let mut start = 0;
        while zeroed && start < self.capacity {
            let end = self.capacity.min(start + UNSYNCED_BYTES_MAX);
            write_zeros(disk, &self.file, &self.path, start, end)?;
            if end < self.capacity {
                step("syncing", &self.path, disk.sync_data(&self.file))?;
            }
            start = end;
        }
        Ok(())
    }

    /// Makes the room segment `number` of the log in `dir`, durably.
    pub(crate) fn into_segment(
        self,
        access: &FileAccess,
        dir: &Path,
        number: u64,
    ) -> Result<NewSegment> {
        let disk = &*access.disk;
        let path = names::path_of(dir, number, FileKind::Plain);
        let header = SegmentHeader {
            number,
            salt: new_salt()?,
        };
        step(
            "writing",
            &path,
            disk.write_at(&self.file, &header.encode(), 0),
        )?;
        step("syncing", &path, disk.sync_data(&self.file))?;
        let file = LogFile::open(&self.path, access)?;
        let file = file.growing_from(SEGMENT_HEADER_BYTES as u64, &path)?;
        step("renaming to", &path, disk.rename(&self.path, &path))?;
        sync_dir(disk, dir)?;
        let summary = Summary {
            used_bytes: SEGMENT_HEADER_BYTES as u64,
            ..Summary::default()
        };
        let segment = PlainSegment::new(path, header, file, summary, GrowingIndex::default());
        Ok(NewSegment {
            file: self.file,
            segment,
        })
    }
}

/// Overwrites `start..end` of a file with zeros.
pub(crate) fn write_zeros(
    disk: &dyn Disk,
    file: &File,
    path: &Path,
    start: u64,
    end: u64,
) -> Result<()> {
    let zeros = vec![0; ZERO_BYTES.min((end - start) as usize)];
    let mut offset = start;
    while offset < end {
        let length = (end - offset).min(zeros.len() as u64);
        step(
            "zeroing",
            path,
            disk.write_at(file, &zeros[..length as usize], offset),
        )?;
        offset += length;
    }
    Ok(())
}
