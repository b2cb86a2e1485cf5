//! Appending: one group is one write and one sync.
//!
//! Invariants: nothing is written behind `summary.used_bytes` of the active segment before the
//! group there is durable; readers see a group only after that; after a failed write or sync
//! nothing is written again, unless the disk was full and the write could be taken back.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use trefoil_core::{Error, Result, is_disk_full};

use crate::contract::dropped;
use crate::local::disk::Disk;
use crate::local::files;
use crate::{Group, LogEnd, Record};

use super::Log;
use super::create::{NewSegment, Room};
use super::layout::{Placement, RecordHeader, SEGMENT_HEADER_BYTES, encode_record, encoded_bytes};
use super::names::{self, FileKind};
use super::plain::PlainSegment;
use super::scan::ExpectedRecord;
use super::segments::{Segment, SegmentEntry};
use super::summary::Summary;

/// The largest segment, and with it the largest group: a segment's offsets have 32 bits, also those
/// of its compressed form.
pub(crate) const SEGMENT_BYTES_LIMIT: u64 = 1024 * 1024 * 1024;
/// The write buffer is given back when it has grown beyond this.
const BUFFER_BYTES_KEPT: usize = 16 * 1024 * 1024;
const PAGE_BYTES: u64 = 4096;

/// What appending needs.
#[derive(Debug)]
pub(crate) struct LogWriter {
    pub(crate) active: Arc<PlainSegment>,
    pub(crate) file: File,
    pub(crate) summary: Summary,
    /// What the active segment held before its last group.
    pub(crate) before_last: Summary,
    pub(crate) expected: ExpectedRecord,
    /// Why nothing may be written any more.
    pub(crate) poison: Option<String>,
    /// Whether there is a seal, which must be removed before something is written.
    pub(crate) is_sealed: bool,
    buffer: Vec<u8>,
    offsets: Vec<u64>,
}

impl LogWriter {
    pub(crate) fn new(
        active: Arc<PlainSegment>,
        before_last: Summary,
        file: File,
        expected: ExpectedRecord,
    ) -> Self {
        let summary = active.summary();
        Self {
            active,
            file,
            summary,
            before_last,
            expected,
            poison: None,
            is_sealed: false,
            buffer: Vec::new(),
            offsets: Vec::new(),
        }
    }

    /// Checks that the group continues the log; returns how many bytes it takes and what to expect
    /// after it.
    fn check(&self, group: &Group) -> Result<(u64, ExpectedRecord)> {
        let mut expected = self.expected;
        let mut bytes = 0;
        for record in &group.records {
            if let Some(wrong) = expected.follow(&header_of(record)) {
                return Err(Error::invalid(format!(
                    "the group does not continue the log: {wrong}"
                )));
            }
            if record.lacks_something() {
                return Err(dropped());
            }
            bytes += encoded_bytes(record) as u64;
        }
        if bytes + SEGMENT_HEADER_BYTES as u64 > SEGMENT_BYTES_LIMIT {
            let limit = SEGMENT_BYTES_LIMIT as usize;
            return Err(Error::over_limit("bytes of a group", bytes as usize, limit));
        }
        Ok((bytes, expected))
    }

    /// Fills the buffer with the bytes of the group.
    fn encode(&mut self, group: &Group) {
        self.buffer.clear();
        self.offsets.clear();
        let group_start = self.summary.used_bytes;
        for (index, record) in group.records.iter().enumerate() {
            let placement = Placement {
                salt: self.active.header.salt,
                group_start,
                continues: index + 1 < group.records.len(),
            };
            encode_record(record, placement, &mut self.buffer, &mut self.offsets);
            let end = group_start + self.buffer.len() as u64;
            self.summary.add(&header_of(record), end);
        }
    }
}

/// The parts of a record's header that do not depend on where it stands.
fn header_of(record: &Record) -> RecordHeader {
    RecordHeader {
        continues: false,
        body_bytes: 0,
        change_bytes: record.changes.len() as u32,
        n_commits: record.n_commits,
        n_items: record.items.len() as u32,
        first_commit: record.first_commit,
        first_position: record.first_position,
        commit_bytes: record.commits.len() as u32,
        group_start: 0,
        body_check: 0,
    }
}

impl Log {
    /// Appends a group and returns when it is durable.
    pub(crate) fn append(&self, group: &Group) -> Result<()> {
        let mut writer = self.writer.lock();
        if let Some(reason) = &writer.poison {
            return Err(Error::Poisoned(reason.clone()));
        }
        let (bytes, expected) = writer.check(group)?;
        if group.records.is_empty() {
            return Ok(());
        }
        match self.make_way(&mut writer, bytes) {
            Err(error @ Error::DiskFull(_)) => return Err(error),
            Err(error) => return Err(poison(&mut writer, error.to_string())),
            Ok(()) => {}
        }
        let before = writer.summary;
        writer.encode(group);
        self.write(&mut writer, before)?;
        writer.expected = expected;
        writer.before_last = before;
        let LogWriter {
            active,
            summary,
            buffer,
            offsets,
            ..
        } = &*writer;
        active.publish(*summary, buffer, &group.records, offsets);
        self.publish_end(&writer.summary);
        self.note_demand(bytes);
        if writer.buffer.capacity() > BUFFER_BYTES_KEPT {
            writer.buffer = Vec::new();
        }
        Ok(())
    }

    /// Sees to it that there is room for `bytes` and that no seal says that the log ends here.
    fn make_way(&self, writer: &mut LogWriter, bytes: u64) -> Result<()> {
        if writer.is_sealed {
            self.break_seal(writer)?;
        }
        if writer.summary.used_bytes + bytes > writer.active.capacity() {
            self.rotate(writer, bytes)?;
        }
        Ok(())
    }

    /// Writes the group that is in the buffer to the end of what the segment held `before`.
    fn write(&self, writer: &mut LogWriter, before: Summary) -> Result<()> {
        let disk = &*self.options.disk;
        let start = before.used_bytes;
        let path = writer.active.path.display().to_string();
        let began = self.options.stopwatch.elapsed();
        let written = disk.write_at(&writer.file, &writer.buffer, start);
        let writing = self.options.stopwatch.elapsed().saturating_sub(began);
        let nanos = u64::try_from(writing.as_nanos()).unwrap_or(u64::MAX);
        let total = &self.done.writing_nanos;
        total.fetch_add(nanos, Ordering::Relaxed);
        let failed = match written {
            Ok(()) => match disk.sync_data(&writer.file) {
                Ok(()) => return Ok(()),
                // Nobody knows what of it is on the disk.
                Err(error) => error,
            },
            Err(error) if is_disk_full(&error) => {
                match take_back(disk, &writer.file, start, writer.buffer.len()) {
                    Ok(()) => {
                        writer.summary = before;
                        return Err(Error::io(format!("writing {path}"), &error));
                    }
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        let context = format!("writing {path}");
        poison(writer, format!("{context}: {failed}"));
        Err(Error::unknown(&context, &failed))
    }

    fn publish_end(&self, summary: &Summary) {
        let mut end = self.end.write();
        let position = end.position.max(summary.last_position);
        *end = LogEnd {
            commit: summary.last_commit,
            position,
        };
    }

    /// Goes on in the next segment, which has room for `bytes`.
    pub(super) fn rotate(&self, writer: &mut LogWriter, bytes: u64) -> Result<()> {
        // A segment without records would be a hole in the log: it is replaced.
        let is_unused = writer.summary.n_records == 0;
        let number = writer.active.header.number + u64::from(!is_unused);
        let needed = bytes + SEGMENT_HEADER_BYTES as u64;
        // Held until the list names the new segment: whoever prepares the next one numbers it after
        // the last of the list, under this lock.
        let mut prepared = self.prepared.lock();
        let new = match prepared.take_if(|new| fits(new, number, needed)) {
            Some(new) => new,
            None => self.create_segment(number, needed, writer.active.capacity())?,
        };
        *prepared = None;
        let NewSegment { file, segment } = new;
        let active = Arc::new(segment);
        let entry = SegmentEntry {
            first_commit: writer.expected.commit,
            first_position: writer.expected.position,
            segment: Segment::Plain(Arc::clone(&active)),
        };
        self.change_segments(|segments| {
            if is_unused {
                segments.entries.pop();
            }
            segments.entries.push(entry);
        });
        writer.summary = active.summary();
        writer.before_last = writer.summary;
        writer.active = active;
        writer.file = file;
        Ok(())
    }

    /// Creates a segment in a hurry: its room is reserved but not written.
    fn create_segment(&self, number: u64, needed: u64, last_capacity: u64) -> Result<NewSegment> {
        let capacity = self
            .next_capacity(last_capacity)
            .max(needed.next_multiple_of(PAGE_BYTES));
        let disk = &*self.options.disk;
        let path = files::unfinished(&names::path_of(&self.dir, number, FileKind::Plain));
        Room::reserve(disk, &path, capacity, false)?.into_segment(&self.access, &self.dir, number)
    }

    /// The size of the segment after one of this size: twice as much, but no more than the log has.
    /// A log that forgets as fast as it grows needs no large segments.
    pub(crate) fn next_capacity(&self, capacity: u64) -> u64 {
        let held = self.segments().held_bytes().next_power_of_two();
        self.doubled(capacity)
            .min(held.max(self.options.segment_bytes_min))
    }

    /// Twice a size, as far as the limits allow.
    pub(crate) fn doubled(&self, capacity: u64) -> u64 {
        capacity
            .saturating_mul(2)
            .min(self.options.segment_bytes_max)
            .min(SEGMENT_BYTES_LIMIT)
    }
}

fn fits(new: &NewSegment, number: u64, needed: u64) -> bool {
    new.segment.header.number == number && new.segment.capacity() >= needed
}

/// Takes back what was written of a group for which there was no room: parts of it behind a later
/// group would pass for damage. Only what is not zero is overwritten, for which there is room.
fn take_back(disk: &dyn Disk, file: &File, start: u64, length: usize) -> std::io::Result<()> {
    let end = start + length as u64;
    let zeros = [0; PAGE_BYTES as usize];
    let mut page = zeros;
    let mut offset = start;
    while offset < end {
        // From page to page of the file, which are what there is room for or not.
        let next = (offset / PAGE_BYTES + 1) * PAGE_BYTES;
        let n = (end.min(next) - offset) as usize;
        file.read_exact_at(&mut page[..n], offset)?;
        if page[..n] != zeros[..n] {
            disk.write_at(file, &zeros[..n], offset)?;
        }
        offset = next;
    }
    disk.sync_data(file)
}

/// Refuses all writes from now on.
pub(super) fn poison(writer: &mut LogWriter, reason: String) -> Error {
    tracing::error!(%reason, "the log refuses writes after an I/O error");
    writer.poison = Some(reason.clone());
    Error::Poisoned(reason)
}
