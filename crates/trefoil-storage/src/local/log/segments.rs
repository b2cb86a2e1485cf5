//! The list of a log's segments, found by position or by commit.

use std::sync::Arc;

use trefoil_core::Result;

use crate::{Label, Record, StoredItem};

use super::compressed::CompressedSegment;
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

    pub(crate) fn summary(&self) -> Summary {
        match self {
            Self::Plain(segment) => segment.summary(),
            Self::Compressed(segment) => segment.header.summary,
        }
    }

    /// The length of its file.
    pub(crate) fn file_bytes(&self) -> u64 {
        match self {
            Self::Plain(segment) => segment.capacity(),
            Self::Compressed(segment) => segment.bytes().len() as u64,
        }
    }

    pub(crate) fn item(&self, position: u64) -> Result<Option<StoredItem>> {
        match self {
            Self::Plain(segment) => segment.item(position),
            Self::Compressed(segment) => segment.item(position),
        }
    }

    /// Reads a few bytes of the item at `position`, if there is one, and forgets them.
    fn touch(&self, position: u64) -> u8 {
        match self {
            Self::Plain(segment) => segment.touch(position),
            Self::Compressed(segment) => segment.touch(position),
        }
    }

    pub(crate) fn label(&self, position: u64) -> Result<Option<Label>> {
        match self {
            Self::Plain(segment) => segment.label(position),
            Self::Compressed(segment) => segment.label(position),
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
pub(crate) struct Entry {
    pub(crate) first_commit: u64,
    /// No item of the segment has a lower position.
    pub(crate) first_position: u64,
    pub(crate) segment: Segment,
}

/// All segments in order; the last one is being written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Segments {
    pub(crate) entries: Vec<Entry>,
}

impl Segments {
    /// The segment that has the item at `position` if any has.
    pub(crate) fn holding(&self, position: u64) -> Option<&Segment> {
        let after = self
            .entries
            .partition_point(|entry| entry.first_position <= position);
        Some(&self.entries.get(after.checked_sub(1)?)?.segment)
    }

    /// See [`Segment::touch`].
    pub(crate) fn touch(&self, position: u64) -> u8 {
        self.holding(position)
            .map_or(0, |segment| segment.touch(position))
    }

    /// The segments with commits after `commit`.
    pub(crate) fn after_commit(&self, commit: u64) -> &[Entry] {
        let after = self
            .entries
            .partition_point(|entry| entry.first_commit <= commit.saturating_add(1));
        &self.entries[after.saturating_sub(1)..]
    }

    /// The segments that are not written any more.
    pub(crate) fn full(&self) -> &[Entry] {
        self.entries.split_last().map_or(&[], |(_, full)| full)
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
