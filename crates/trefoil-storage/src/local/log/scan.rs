//! Reading a plain segment from its beginning, record by record, to where it ends.
//!
//! A group is written only after the one before it is durable. So when a crash cuts a write short,
//! what is torn is the last group, and nothing but parts of that group lies behind the tear. A
//! valid record of any *other* group behind invalid bytes means that bytes which were durable have
//! changed: that is damage and never repaired silently.

use std::ops::Range;
use std::path::Path;

use trefoil_core::Result;

use super::index::GrowingIndex;
use super::layout::{
    ALIGNMENT, ITEM_HEADER_BYTES, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES, damaged,
    items_of,
};
use super::records::SegmentWalk;
use super::summary::Summary;

/// So many bytes behind the end of a log that was closed are looked at.
const SEALED_BLANK_BYTES: usize = 4096;

/// How a segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// With zeros only.
    Clean,
    /// With a group that was not written to its end.
    Torn {
        /// The offset of the group's first record.
        start: usize,
        /// The offset after the last byte that is not zero.
        end: usize,
    },
}

/// What is known of a segment after reading it.
#[derive(Debug)]
pub(crate) struct SegmentScan {
    pub(crate) summary: Summary,
    pub(crate) index: GrowingIndex,
    pub(crate) tail: Tail,
    /// Where the last whole group is; empty if none was read.
    pub(crate) last_group: Range<usize>,
    /// What the segment holds before that group.
    pub(crate) before_last: Summary,
}

/// What is known of a segment, from where on it is read.
#[derive(Debug)]
pub(crate) struct ScanStart {
    pub(crate) summary: Summary,
    pub(crate) index: GrowingIndex,
    pub(crate) expected: ExpectedRecord,
}

impl ScanStart {
    /// Returns the beginning of a segment in which this record is expected first.
    pub(crate) fn beginning(expected: ExpectedRecord) -> Self {
        Self {
            summary: Summary {
                used_bytes: SEGMENT_HEADER_BYTES as u64,
                ..Summary::default()
            },
            index: GrowingIndex::default(),
            expected,
        }
    }
}

/// What the log before a segment ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpectedRecord {
    pub(crate) commit: u64,
    pub(crate) position: u64,
}

impl ExpectedRecord {
    /// What is wrong about the order of a record, and what to expect after it.
    pub(crate) fn follow(&mut self, header: &RecordHeader) -> Option<String> {
        let mut wrong = None;
        if header.first_commit != self.commit || header.n_commits == 0 {
            wrong = Some(format!(
                "a record with {} commits from {} where commit {} should follow",
                header.n_commits, header.first_commit, self.commit
            ));
        } else if header.first_position < self.position {
            wrong = Some(format!(
                "a record at position {} where {} is the lowest possible",
                header.first_position, self.position
            ));
        }
        self.commit = header.first_commit + u64::from(header.n_commits);
        self.position = header.end_position();
        wrong
    }
}

/// What is known of the end of a segment before it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownEnd {
    /// Where the log was closed, if it ends here. Behind that nothing was being written, so only the
    /// bytes next to it are looked at.
    pub(crate) sealed: Option<u64>,
    /// Behind this nothing was ever written, so it need not be read to know that there are zeros.
    pub(crate) written: usize,
}

impl KnownEnd {
    /// Nothing is known of the end of a segment.
    pub(crate) fn of(segment: &SegmentWalk<'_>) -> Self {
        Self {
            sealed: None,
            written: segment.end(),
        }
    }
}

/// Reads a segment to its end. The error is damage that is no torn tail.
pub(crate) fn scan(
    path: &Path,
    segment: &mut SegmentWalk<'_>,
    start: ScanStart,
    known_end: KnownEnd,
) -> Result<SegmentScan> {
    let ScanStart {
        mut summary,
        index,
        mut expected,
    } = start;
    let mut before_last = summary;
    let mut offset = summary.used_bytes as usize;
    // The records of a group count once its last one was seen.
    let mut group: Vec<(RecordItems, RecordHeader)> = Vec::new();
    let mut last_group = offset..offset;
    let problem =
        |offset: usize, position, what: String| damaged(path, offset as u64, position, what);
    let tail = loop {
        let group_start = group.first().map_or(offset, |(items, _)| items.offset);
        let position = expected.position;
        let Some(header) = segment.record(offset)? else {
            let is_sealed = known_end.sealed == Some(offset as u64) && offset == group_start;
            if is_sealed && is_blank_behind(segment, offset)? {
                break Tail::Clean;
            }
            match find_tail(segment, known_end.written, offset, group_start)? {
                Some(tail) => break tail,
                None => {
                    let what = "a record is not valid, but later ones are".to_owned();
                    return Err(problem(offset, position, what));
                }
            }
        };
        if header.group_start != group_start as u64 {
            let what = format!("a record of the group at offset {}", header.group_start);
            return Err(problem(offset, position, what));
        }
        if let Some(what) = expected.follow(&header) {
            return Err(problem(offset, position, what));
        }
        group.push((RecordItems::read(segment, offset, &header)?, header));
        offset = header.end(offset);
        if !header.continues {
            last_group = group_start..offset;
            before_last = summary;
            index.note_group(group[0].1.first_commit, group_start as u64);
            for (items, header) in group.drain(..) {
                if !items.are_valid {
                    return Err(problem(offset, position, "items are not valid".to_owned()));
                }
                index.push(header.first_position, items.offsets.into_iter());
                summary.add(&header, header.end(items.offset) as u64);
            }
        }
    };
    Ok(SegmentScan {
        summary,
        index,
        tail,
        last_group,
        before_last,
    })
}

/// Where the items of a record are.
struct RecordItems {
    /// Where the record is.
    offset: usize,
    offsets: Vec<u64>,
    /// Whether the record holds what its header says.
    are_valid: bool,
}

impl RecordItems {
    fn read(segment: &mut SegmentWalk<'_>, offset: usize, header: &RecordHeader) -> Result<Self> {
        let salt = segment.salt();
        let body = segment.body(offset, header)?.unwrap_or_default();
        let start = offset + RECORD_HEADER_BYTES;
        let (mut offsets, mut end) = (Vec::with_capacity(header.n_items as usize), 0);
        for (at, item, _) in items_of(header, body, salt) {
            offsets.push((start + at) as u64);
            end = at + ITEM_HEADER_BYTES + item.length as usize;
        }
        let padded = (end + header.end_bytes()).next_multiple_of(ALIGNMENT);
        Ok(Self {
            are_valid: offsets.len() == header.n_items as usize && padded == body.len(),
            offset,
            offsets,
        })
    }
}

/// Whether there are only zeros in the block behind `offset`.
fn is_blank_behind(segment: &mut SegmentWalk<'_>, offset: usize) -> Result<bool> {
    let end = segment.end_of_data(offset, offset + SEALED_BLANK_BYTES)?;
    Ok(end == offset)
}

/// How the segment ends, if what follows `offset` can be left by a crash while the group at
/// `group_start` was being written. Nothing was ever written from `written` on.
fn find_tail(
    segment: &mut SegmentWalk<'_>,
    written: usize,
    offset: usize,
    group_start: usize,
) -> Result<Option<Tail>> {
    let end = segment.end_of_data(offset, written)?.max(offset);
    if end == offset && offset == group_start {
        return Ok(Some(Tail::Clean));
    }
    let is_of_another = |header: &RecordHeader| header.group_start != group_start as u64;
    let later = segment.find(offset + ALIGNMENT, end, is_of_another)?;
    Ok(later.is_none().then_some(Tail::Torn {
        start: group_start,
        end: end.max(group_start),
    }))
}
