//! What is in a log, for people.

use std::path::PathBuf;

use trefoil_core::Result;

use super::log::Log;
use super::log::segments::Segment;

/// How a segment is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// Being written.
    Active,
    /// Full, as it was written.
    Plain,
    /// Full and compressed.
    Compressed,
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its number, from 1.
    pub number: u64,
    /// Its file.
    pub path: PathBuf,
    /// How it is stored.
    pub kind: SegmentKind,
    /// The number of its first commit; 0 if it has none.
    pub first_commit: u64,
    /// The number of its last commit; 0 if it has none.
    pub last_commit: u64,
    /// The lowest position of an item in it; 0 if it has none.
    pub first_position: u64,
    /// The highest position of an item in it; 0 if it has none.
    pub last_position: u64,
    /// How many items it has.
    pub items: u64,
    /// How many records it has.
    pub records: u64,
    /// The length of its file.
    pub file_bytes: u64,
    /// How many bytes its records take, or took before they were compressed.
    pub plain_bytes: u64,
    /// How many of them are changes that a snapshot makes superfluous.
    pub droppable_bytes: u64,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordInfo {
    /// The segment it is in.
    pub segment: u64,
    /// Where it begins in a plain segment's file.
    pub offset: Option<u64>,
    /// The number of its first commit.
    pub first_commit: u64,
    /// How many commits it has.
    pub commits: u64,
    /// The position of its first item.
    pub first_position: u64,
    /// How many items it has.
    pub items: u64,
    /// How many bytes its items, commits and changes have, without headers.
    pub bytes: u64,
}

impl Log {
    /// Returns what is known of the segments, in order.
    pub(super) fn segment_infos(&self) -> Vec<SegmentInfo> {
        let segments = self.segments();
        let last = segments.entries.len().saturating_sub(1);
        let infos = segments.entries.iter().enumerate();
        infos
            .map(|(index, entry)| segment_info(&entry.segment, index == last))
            .collect()
    }

    /// Hands what is known of the records of segment `number` to `visit`, in order.
    pub(super) fn record_infos(
        &self,
        number: u64,
        visit: &mut dyn FnMut(RecordInfo),
    ) -> Result<()> {
        let segments = self.segments();
        let found = segments
            .entries
            .iter()
            .find(|entry| entry.segment.number() == number);
        let Some(entry) = found else {
            let text = format!("there is no segment {number}");
            return Err(trefoil_core::Error::invalid(text));
        };
        match &entry.segment {
            Segment::Plain(segment) => {
                let mut records = segment.records()?;
                while let Some((offset, header)) = records.next_header()? {
                    visit(RecordInfo {
                        segment: number,
                        offset: Some(offset as u64),
                        first_commit: header.first_commit,
                        commits: header.n_commits.into(),
                        first_position: header.first_position,
                        items: header.n_items.into(),
                        bytes: header.body_bytes.into(),
                    });
                }
                Ok(())
            }
            Segment::Compressed(segment) => segment.replay(0, &mut |record| {
                visit(RecordInfo {
                    segment: number,
                    offset: None,
                    first_commit: record.first_commit,
                    commits: record.n_commits.into(),
                    first_position: record.first_position,
                    items: record.items.len() as u64,
                    bytes: (record.items.n_bytes() + record.commits.len() + record.changes.len())
                        as u64,
                });
                Ok(())
            }),
        }
    }
}

fn segment_info(segment: &Segment, is_last: bool) -> SegmentInfo {
    let summary = segment.summary();
    let (path, kind) = match segment {
        Segment::Plain(segment) if is_last => (&segment.path, SegmentKind::Active),
        Segment::Plain(segment) => (&segment.path, SegmentKind::Plain),
        Segment::Compressed(segment) => (&segment.path, SegmentKind::Compressed),
    };
    SegmentInfo {
        number: segment.number(),
        path: path.clone(),
        kind,
        first_commit: summary.first_commit,
        last_commit: summary.last_commit,
        first_position: summary.first_position,
        last_position: summary.last_position,
        items: summary.n_items.into(),
        records: summary.n_records.into(),
        file_bytes: segment.file_bytes(),
        plain_bytes: summary.used_bytes,
        droppable_bytes: summary.droppable_bytes,
    }
}
