//! A plain segment: records as they were appended.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use trefoil_core::Result;

use crate::local::reading::FileAccess;
use crate::local::reading::file::LogFile;
use crate::{Label, Record};

use super::index::{GrowingIndex, ItemPlace, SegmentIndex};
use super::layout::{
    ItemHeader, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader, damaged, decode_record,
    short_checksum,
};
use super::records::SegmentWalk;
use super::scan::{ExpectedRecord, KnownEnd, ScanStart, scan};
use super::sidecar;
use super::summary::Summary;

/// A plain segment. Its bytes below `summary.used_bytes` are durable and never change.
#[derive(Debug)]
pub(crate) struct PlainSegment {
    pub(crate) path: PathBuf,
    pub(crate) header: SegmentHeader,
    pub(crate) file: Arc<LogFile>,
    summary: RwLock<Summary>,
    /// Filled from the start, or on first use from the sidecar.
    index: OnceLock<SegmentIndex>,
    sidecar: Option<PathBuf>,
}

impl PlainSegment {
    /// A segment that holds what `summary` and `index` say.
    pub(crate) fn new(
        path: PathBuf,
        header: SegmentHeader,
        file: LogFile,
        summary: Summary,
        index: GrowingIndex,
    ) -> Self {
        Self {
            path,
            header,
            file: Arc::new(file),
            summary: RwLock::new(summary),
            index: OnceLock::from(SegmentIndex::Growing(Box::new(index))),
            sidecar: None,
        }
    }

    /// A full segment whose index is read from `sidecar` when it is needed.
    pub(crate) fn with_sidecar(
        path: PathBuf,
        header: SegmentHeader,
        file: LogFile,
        summary: Summary,
        sidecar: PathBuf,
    ) -> Self {
        Self {
            path,
            header,
            file: Arc::new(file),
            summary: RwLock::new(summary),
            index: OnceLock::new(),
            sidecar: Some(sidecar),
        }
    }

    /// The same segment, with its index moved out of memory.
    pub(crate) fn backed_by(&self, sidecar: PathBuf) -> Self {
        Self {
            path: self.path.clone(),
            header: self.header,
            file: Arc::clone(&self.file),
            summary: RwLock::new(self.summary()),
            index: OnceLock::new(),
            sidecar: Some(sidecar),
        }
    }

    pub(crate) fn has_sidecar(&self) -> bool {
        self.sidecar.is_some()
    }

    pub(crate) fn summary(&self) -> Summary {
        *self.summary.read()
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.file.length()
    }

    /// Lets readers see a durable group: its bytes, and the first position and the offsets of each
    /// record.
    pub(crate) fn publish(
        &self,
        summary: Summary,
        bytes: &[u8],
        records: &[Record],
        offsets: &[u64],
    ) {
        self.file.append(bytes);
        let before = std::mem::replace(&mut *self.summary.write(), summary);
        let (Some(index), Some(first)) = (self.growing_index(), records.first()) else {
            return;
        };
        index.note_group(first.first_commit, before.used_bytes);
        let mut rest = offsets;
        for record in records {
            let (offsets, others) = rest.split_at(record.items.len());
            index.push(record.first_position, offsets.iter().copied());
            rest = others;
        }
    }

    /// The index of a segment that is being written.
    pub(crate) fn growing_index(&self) -> Option<&GrowingIndex> {
        match self.index.get()? {
            SegmentIndex::Growing(index) => Some(index),
            SegmentIndex::Stored(..) => None,
        }
    }

    /// The index, if it has been needed before.
    pub(crate) fn index_at_hand(&self) -> Option<&SegmentIndex> {
        self.index.get()
    }

    /// The index; read from the sidecar, or rebuilt if that is not valid.
    pub(crate) fn index(&self, access: &FileAccess) -> Result<&SegmentIndex> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let summary = self.summary();
        let loaded = self.sidecar.as_ref().and_then(|path| {
            let sidecar = sidecar::open(path, self.header, access).ok()?;
            let index = (sidecar.summary == summary).then(|| sidecar.into_index());
            index?.ok().flatten()
        });
        let index = match loaded {
            Some(index) => index,
            None => {
                tracing::warn!(segment = %self.path.display(), "rebuilding the offsets of a segment");
                SegmentIndex::Growing(Box::new(self.scan_index(&summary)?))
            }
        };
        Ok(self.index.get_or_init(|| index))
    }

    fn scan_index(&self, summary: &Summary) -> Result<GrowingIndex> {
        let expected = ExpectedRecord {
            commit: summary.first_commit,
            position: summary.first_position,
        };
        let start = ScanStart::beginning(expected);
        let mut walk = SegmentWalk::new(&self.file, self.header.salt)?;
        let end = KnownEnd::of(&walk);
        let scanned = scan(&self.path, &mut walk, start, end)?;
        if scanned.summary == *summary {
            return Ok(scanned.index);
        }
        let what = "the segment does not hold what it held when it was closed";
        Err(self.damage(
            scanned.summary.used_bytes,
            scanned.summary.next_position,
            what,
        ))
    }

    fn damage(&self, offset: u64, position: u64, what: &str) -> trefoil_core::Error {
        damaged(&self.path, offset, position, what)
    }

    /// The header of the item at `position`, which is at this place: `bytes` are those there.
    pub(crate) fn item_header(
        &self,
        position: u64,
        place: ItemPlace,
        bytes: Option<&[u8]>,
    ) -> Result<ItemHeader> {
        let seed = self.header.salt.wrapping_add(position);
        let header = bytes.and_then(|bytes| ItemHeader::at(bytes, 0, seed));
        header.ok_or_else(|| {
            let what = "an item's header is not valid";
            self.damage(place.start as u64, position, what)
        })
    }

    /// Checks the bytes of the item at `position`, which is at this place, and returns its label.
    pub(crate) fn check_item(
        &self,
        position: u64,
        place: ItemPlace,
        header: &ItemHeader,
        bytes: &[u8],
    ) -> Result<Label> {
        let seed = self.header.salt.wrapping_add(position);
        if short_checksum(bytes, seed) == header.check {
            return Ok(header.label);
        }
        let what = "an item's bytes are not valid";
        Err(self.damage(place.start as u64, position, what))
    }

    /// A walk over its records.
    pub(crate) fn records(&self) -> Result<PlainRecords<'_>> {
        self.records_from(SEGMENT_HEADER_BYTES)
    }

    /// A walk over its records from `offset` on, where one begins.
    fn records_from(&self, offset: usize) -> Result<PlainRecords<'_>> {
        let summary = self.summary();
        let walk = SegmentWalk::new(&self.file, self.header.salt)?;
        Ok(PlainRecords {
            segment: self,
            walk: walk.until(summary.used_bytes),
            offset,
            position: summary.first_position,
        })
    }

    /// Hands every record with a commit after `after_commit` to `visit`.
    pub(crate) fn replay(
        &self,
        after_commit: u64,
        visit: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        if self.summary().last_commit <= after_commit {
            return Ok(());
        }
        let known = self.growing_index();
        let group = known.and_then(|index| index.group_before(after_commit + 1));
        let start = group.map_or(SEGMENT_HEADER_BYTES, |offset| offset as usize);
        let mut record = Record::default();
        let mut records = self.records_from(start)?;
        while let Some((offset, header)) = records.next_header()? {
            if header.last_commit() <= after_commit {
                continue;
            }
            let body = records.body(offset, &header)?;
            decode_record(&header, body, self.header.salt, &mut record).ok_or_else(|| {
                self.damage(
                    offset as u64,
                    header.first_position,
                    "a record's items are not valid",
                )
            })?;
            visit(&record)?;
        }
        Ok(())
    }
}

/// A walk over the records of a plain segment.
#[derive(Debug)]
pub(crate) struct PlainRecords<'a> {
    segment: &'a PlainSegment,
    walk: SegmentWalk<'a>,
    offset: usize,
    position: u64,
}

impl PlainRecords<'_> {
    /// The header of the next record, and where it is.
    pub(crate) fn next_header(&mut self) -> Result<Option<(usize, RecordHeader)>> {
        let (offset, end) = (self.offset, self.walk.end());
        if offset >= end {
            return Ok(None);
        }
        let Some(header) = self.walk.header(offset, end)? else {
            let what = "a record's header is not valid";
            return Err(self.segment.damage(offset as u64, self.position, what));
        };
        self.offset = header.end(offset);
        self.position = header.end_position();
        Ok(Some((offset, header)))
    }

    /// The body of the record at `offset`.
    pub(crate) fn body(&mut self, offset: usize, header: &RecordHeader) -> Result<&[u8]> {
        let segment = self.segment;
        self.walk.body(offset, header)?.ok_or_else(|| {
            segment.damage(
                offset as u64,
                header.first_position,
                "a record's body is not valid",
            )
        })
    }
}

/// Reads the header of the segment at `path` and checks that it belongs there.
pub(crate) fn read_header(path: &Path, file: &LogFile, number: u64) -> Result<SegmentHeader> {
    let length = file.length().min(SEGMENT_HEADER_BYTES as u64);
    let header = SegmentHeader::decode(path, &file.read(0..length)?)?;
    if header.number != number {
        let what = format!("the file says that it is segment {}", header.number);
        return Err(damaged(path, 0, 0, what));
    }
    Ok(header)
}
