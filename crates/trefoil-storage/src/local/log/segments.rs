//! The list of a log's segments, found by position or by commit.

use std::sync::Arc;

use trefoil_core::Result;

use crate::Record;
use crate::local::reading::FileAccess;
use crate::local::reading::file::{LogFile, ReadPatience};

use super::compressed::CompressedSegment;
use super::index::{Located, SegmentIndex, StoredIndex};
use super::plain::PlainSegment;
use super::summary::Summary;

/// One segment.
#[derive(Debug, Clone)]
pub(crate) enum Segment {
    /// As it was written.
    Plain(Arc<PlainSegment>),
    /// Compressed since.
    Compressed(Arc<CompressedSegment>),
}

impl Segment {
    pub(crate) fn number(&self) -> u64 {
        match self {
            Self::Plain(segment) => segment.header.number,
            Self::Compressed(segment) => segment.header.number,
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    pub(crate) fn summary(&self) -> Summary {
        match self {
            Self::Plain(segment) => segment.summary(),
            Self::Compressed(segment) => segment.header.summary,
        }
    }

    /// The changes of its records up to this commit were dropped; 0 if none were.
    pub(crate) fn dropped_commit(&self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Compressed(segment) => segment.header.dropped_commit,
        }
    }

    /// The seed of its checksums.
    pub(crate) fn salt(&self) -> u64 {
        match self {
            Self::Plain(segment) => segment.header.salt,
            Self::Compressed(segment) => segment.header.salt,
        }
    }

    /// The length of its file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file().length()
    }

    /// Its file.
    pub(super) fn file(&self) -> &LogFile {
        match self {
            Self::Plain(segment) => &segment.file,
            Self::Compressed(segment) => &segment.file,
        }
    }

    /// Keeps it readable when its files are removed.
    pub(super) fn keep(&self) -> Result<()> {
        if let Self::Plain(segment) = self
            && let Some(SegmentIndex::Stored(index)) = segment.index_at_hand()
        {
            index.file().keep()?;
        }
        self.file().keep()
    }

    /// See [`SegmentIndex::locate`].
    pub(super) fn locate(
        &self,
        positions: &[u64],
        (access, patience): (&FileAccess, ReadPatience),
        find: impl FnMut(u64, Located),
    ) -> Result<bool> {
        let waits = patience == ReadPatience::Waits;
        match self {
            Self::Plain(segment) => match segment.index_at_hand() {
                None if !waits => Ok(false),
                None => segment.index(access)?.locate(positions, patience, find),
                Some(index) => index.locate(positions, patience, find),
            },
            Self::Compressed(segment) => match segment.reader_at_hand() {
                None if !waits => Ok(false),
                None => segment.reader()?.index.locate(positions, patience, find),
                Some(reader) => reader.index.locate(positions, patience, find),
            },
        }
    }

    /// Its index, if that is in a file and has been needed before, and where the items begin from which
    /// its offsets count.
    pub(super) fn stored_index(&self) -> Option<(&StoredIndex, usize)> {
        match self {
            Self::Plain(segment) => match segment.index_at_hand()? {
                SegmentIndex::Stored(index) => Some((index, 0)),
                SegmentIndex::Growing(_) => None,
            },
            Self::Compressed(segment) => {
                let base = segment.header.items_start();
                Some((&segment.reader_at_hand()?.index, base))
            }
        }
    }

    pub(crate) fn replay(
        &self,
        after_commit: u64,
        visit: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Plain(segment) => segment.replay(after_commit, visit),
            Self::Compressed(segment) => segment.replay(after_commit, visit),
        }
    }
}

/// A segment and where it begins.
#[derive(Debug, Clone)]
pub(crate) struct SegmentEntry {
    pub(crate) first_commit: u64,
    /// No item of the segment has a lower position.
    pub(crate) first_position: u64,
    pub(crate) segment: Segment,
}

/// All segments in order; the last one is being written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Segments {
    pub(crate) entries: Vec<SegmentEntry>,
}

impl Segments {
    /// The segment that has the item at `position` if any has.
    pub(super) fn holding(&self, position: u64) -> Option<&Segment> {
        let after = self
            .entries
            .partition_point(|entry| entry.first_position <= position);
        Some(&self.entries.get(after.checked_sub(1)?)?.segment)
    }

    /// The segments with commits after `commit`.
    pub(crate) fn after_commit(&self, commit: u64) -> &[SegmentEntry] {
        let after = self
            .entries
            .partition_point(|entry| entry.first_commit <= commit.saturating_add(1));
        &self.entries[after.saturating_sub(1)..]
    }

    /// The segments that are not written any more.
    pub(crate) fn full(&self) -> &[SegmentEntry] {
        self.entries.split_last().map_or(&[], |(_, full)| full)
    }

    /// The bytes of what all segments hold, without room that is not used yet.
    pub(crate) fn held_bytes(&self) -> u64 {
        let held = |entry: &SegmentEntry| match &entry.segment {
            Segment::Plain(segment) => segment.summary().used_bytes,
            Segment::Compressed(_) => entry.segment.file_bytes(),
        };
        self.entries.iter().map(held).sum()
    }

    /// Puts `segment` in the place of the one with the same number.
    pub(crate) fn replace(&mut self, segment: Segment) {
        let number = segment.number();
        if let Some(entry) = self
            .entries
            .iter_mut()
            .find(|entry| entry.segment.number() == number)
        {
            entry.segment = segment;
        }
    }
}
