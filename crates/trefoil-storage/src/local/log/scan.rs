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
    /// Nothing is known of the end of these bytes.
    pub(crate) fn of(segment: &[u8]) -> Self {
        Self {
            sealed: None,
            written: segment.len(),
        }
    }
}

/// Reads a segment to its end. The error is damage that is no torn tail.
pub(crate) fn scan(
    path: &Path,
    segment: &[u8],
    salt: u64,
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
    let mut group: Vec<(usize, RecordHeader)> = Vec::new();
    let mut last_group = offset..offset;
    let problem =
        |offset: usize, position, what: String| damaged(path, offset as u64, position, what);
    let tail = loop {
        let group_start = group.first().map_or(offset, |&(start, _)| start);
        let position = expected.position;
        let header = RecordHeader::at(segment, offset, salt)
            .filter(|header| header.body(segment, offset, salt).is_some());
        let Some(header) = header else {
            let is_sealed = known_end.sealed == Some(offset as u64) && offset == group_start;
            if is_sealed && is_blank_behind(segment, offset) {
                break Tail::Clean;
            }
            let written = &segment[..known_end.written.min(segment.len())];
            match find_tail(written, salt, offset, group_start) {
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
        group.push((offset, header));
        offset = header.end(offset);
        if !header.continues {
            last_group = group_start..offset;
            before_last = summary;
            index.note_group(group[0].1.first_commit, group_start as u64);
            for (offset, header) in group.drain(..) {
                add_record(&mut summary, &index, segment, salt, offset, &header)
                    .ok_or_else(|| problem(offset, position, "items are not valid".to_owned()))?;
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

fn add_record(
    summary: &mut Summary,
    index: &GrowingIndex,
    segment: &[u8],
    salt: u64,
    offset: usize,
    header: &RecordHeader,
) -> Option<()> {
    let start = offset + RECORD_HEADER_BYTES;
    let body = &segment[start..header.end(offset)];
    let (mut n_items, mut end) = (0, 0);
    let offsets = items_of(header, body, salt).map(|(at, item, _)| {
        n_items += 1;
        end = at + ITEM_HEADER_BYTES + item.length as usize;
        (start + at) as u64
    });
    index.push(header.first_position, offsets);
    summary.add(header, header.end(offset) as u64);
    let padded = (end + header.end_bytes()).next_multiple_of(ALIGNMENT);
    (n_items == header.n_items && padded == body.len()).then_some(())
}

/// Whether there are only zeros in the block behind `offset`.
fn is_blank_behind(segment: &[u8], offset: usize) -> bool {
    let rest = segment.get(offset..).unwrap_or_default();
    end_of_data(&rest[..rest.len().min(SEALED_BLANK_BYTES)]) == 0
}

/// How the segment ends, if what follows `offset` can be left by a crash while the group at
/// `group_start` was being written.
fn find_tail(segment: &[u8], salt: u64, offset: usize, group_start: usize) -> Option<Tail> {
    let rest = segment.get(offset..).unwrap_or_default();
    let used = end_of_data(rest);
    if used == 0 && offset == group_start {
        return Some(Tail::Clean);
    }
    let start = offset + ALIGNMENT;
    let mut later = records_from(segment, salt, start, offset + used);
    if later.any(|(_, header)| header.group_start != group_start as u64) {
        return None;
    }
    Some(Tail::Torn {
        start: group_start,
        end: (offset + used).max(group_start),
    })
}

/// The length of `bytes` without the zeros at its end.
pub(crate) fn end_of_data(bytes: &[u8]) -> usize {
    // Block by block: comparing with zeros is much faster than looking at single bytes.
    const BLOCK: usize = 4096;
    let zeros = [0; BLOCK];
    let mut end = bytes.len();
    while end > 0 {
        let start = (end - 1) / BLOCK * BLOCK;
        let block = &bytes[start..end];
        if block != &zeros[..block.len()] {
            let last = block.iter().rposition(|&byte| byte != 0);
            return start + last.map_or(0, |last| last + 1);
        }
        end = start;
    }
    0
}

/// The valid record headers at any aligned offset in `start..end`.
pub(crate) fn records_from(
    segment: &[u8],
    salt: u64,
    start: usize,
    end: usize,
) -> impl Iterator<Item = (usize, RecordHeader)> {
    (start.next_multiple_of(ALIGNMENT)..end)
        .step_by(ALIGNMENT)
        .filter_map(move |offset| Some((offset, RecordHeader::at(segment, offset, salt)?)))
}
