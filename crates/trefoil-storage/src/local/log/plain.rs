//! A plain segment: records as they were appended, read through a memory map.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::RwLock;
use trefoil_core::Result;

use crate::local::mapping::Mapping;
use crate::{Label, Record, StoredItem};

use super::index::{GrowingIndex, ItemPlace, SegmentIndex};
use super::layout::{
    ITEM_HEADER_BYTES, ItemHeader, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader, damaged,
    decode_record, short_checksum,
};
use super::scan::{ExpectedRecord, KnownEnd, ScanStart, scan};
use super::sidecar;
use super::summary::Summary;

/// A plain segment. Its bytes below `summary.used_bytes` are durable and never change.
#[derive(Debug)]
pub(crate) struct PlainSegment {
    pub(crate) path: PathBuf,
    pub(crate) header: SegmentHeader,
    mapping: Arc<Mapping>,
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
        mapping: Mapping,
        summary: Summary,
        index: GrowingIndex,
    ) -> Self {
        Self {
            path,
            header,
            mapping: Arc::new(mapping),
            summary: RwLock::new(summary),
            index: OnceLock::from(SegmentIndex::Growing(Box::new(index))),
            sidecar: None,
        }
    }

    /// A full segment whose index is read from `sidecar` when it is needed.
    pub(crate) fn with_sidecar(
        path: PathBuf,
        header: SegmentHeader,
        mapping: Mapping,
        summary: Summary,
        sidecar: PathBuf,
    ) -> Self {
        Self {
            path,
            header,
            mapping: Arc::new(mapping),
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
            mapping: Arc::clone(&self.mapping),
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
        self.mapping.len() as u64
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.mapping
    }

    /// Lets readers see a durable group: the first position and the offsets of each record.
    pub(crate) fn publish(&self, summary: Summary, records: &[Record], offsets: &[u64]) {
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
            SegmentIndex::Mapped(..) => None,
        }
    }

    /// The index; read from the sidecar, or rebuilt if that is not valid.
    pub(crate) fn index(&self) -> Result<&SegmentIndex> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let summary = self.summary();
        let loaded = self.sidecar.as_ref().and_then(|path| {
            let sidecar = sidecar::open(path, self.header).ok()?;
            (sidecar.summary == summary)
                .then(|| sidecar.into_index())
                .flatten()
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
        let bytes = self.bytes();
        let end = KnownEnd::of(bytes);
        let scanned = scan(&self.path, bytes, self.header.salt, start, end)?;
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

    fn item_header(&self, position: u64, place: ItemPlace) -> Result<ItemHeader> {
        let seed = self.header.salt.wrapping_add(position);
        ItemHeader::at(self.bytes(), place.start, seed).ok_or_else(|| {
            let what = "an item's header is not valid";
            self.damage(place.start as u64, position, what)
        })
    }

    /// The label of the item at `position`, which is at this place.
    pub(crate) fn label(&self, position: u64, place: ItemPlace) -> Result<Label> {
        Ok(self.item_header(position, place)?.label)
    }

    /// The item at `position`, which is at this place.
    pub(crate) fn item(&self, position: u64, place: ItemPlace) -> Result<StoredItem> {
        let (label, bytes) = self.stored(position, place)?;
        Ok(StoredItem {
            position,
            label,
            bytes: Bytes::copy_from_slice(bytes),
        })
    }

    /// The label and the bytes of the item at `position`, which is at this place.
    pub(crate) fn stored(&self, position: u64, place: ItemPlace) -> Result<(Label, &[u8])> {
        let header = self.item_header(position, place)?;
        let start = place.start + ITEM_HEADER_BYTES;
        let bytes = self.bytes().get(start..start + header.length as usize);
        let seed = self.header.salt.wrapping_add(position);
        match bytes.filter(|bytes| short_checksum(bytes, seed) == header.check) {
            Some(bytes) => Ok((header.label, bytes)),
            None => {
                let what = "an item's bytes are not valid";
                Err(self.damage(place.start as u64, position, what))
            }
        }
    }

    /// The headers of all records, with their offsets.
    pub(crate) fn headers(&self) -> impl Iterator<Item = Result<(usize, RecordHeader)>> {
        self.headers_from(SEGMENT_HEADER_BYTES)
    }

    /// The headers of the records from `offset` on, where one begins.
    fn headers_from(
        &self,
        mut offset: usize,
    ) -> impl Iterator<Item = Result<(usize, RecordHeader)>> {
        let summary = self.summary();
        let mut position = summary.first_position;
        std::iter::from_fn(move || {
            if offset as u64 >= summary.used_bytes {
                return None;
            }
            let Some(header) = RecordHeader::at(self.bytes(), offset, self.header.salt) else {
                let error = self.damage(offset as u64, position, "a record's header is not valid");
                offset = usize::MAX;
                return Some(Err(error));
            };
            let at = offset;
            offset = header.end(at);
            position = header.end_position();
            Some(Ok((at, header)))
        })
    }

    /// The body of the record at `offset`.
    pub(crate) fn body(&self, offset: usize, header: &RecordHeader) -> Result<&[u8]> {
        header
            .body(self.bytes(), offset, self.header.salt)
            .ok_or_else(|| {
                self.damage(
                    offset as u64,
                    header.first_position,
                    "a record's body is not valid",
                )
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
        for found in self.headers_from(start) {
            let (offset, header) = found?;
            if header.last_commit() <= after_commit {
                continue;
            }
            let body = self.body(offset, &header)?;
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

/// Reads the header of the segment at `path` and checks that it belongs there.
pub(crate) fn read_header(path: &Path, mapping: &[u8], number: u64) -> Result<SegmentHeader> {
    let header = SegmentHeader::decode(path, mapping)?;
    if header.number != number {
        let what = format!("the file says that it is segment {}", header.number);
        return Err(damaged(path, 0, 0, what));
    }
    Ok(header)
}
