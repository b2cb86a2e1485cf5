//! The list of a log's segments, found by position or by commit.

use std::sync::Arc;

use trefoil_core::Result;

use crate::{Label, Record, StoredItem};

use super::compressed::CompressedSegment;
use super::index::ItemPlace;
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
        match self {
            Self::Plain(segment) => segment.capacity(),
            Self::Compressed(segment) => segment.bytes().len() as u64,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(segment) => segment.bytes(),
            Self::Compressed(segment) => segment.bytes(),
        }
    }

    /// See [`SegmentIndex::locate`](super::index::SegmentIndex::locate).
    fn locate(&self, positions: &[u64], find: impl FnMut(u64, ItemPlace)) -> Result<()> {
        match self {
            Self::Plain(segment) => segment.index()?.locate(positions, find),
            Self::Compressed(segment) => segment.locate(positions, find)?,
        }
        Ok(())
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

/// An item that was looked up and not read yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundItem<'a> {
    segment: &'a Segment,
    pub(crate) position: u64,
    place: ItemPlace,
}

const CACHE_LINE_BYTES: usize = 64;
/// What is longer has so much to be read in order that the processor fetches the rest by itself.
const TOUCHED_LINES_MAX: usize = 8;

impl FoundItem<'_> {
    /// Reads a byte of the item's first cache line.
    pub(crate) fn touch_beginning(&self) -> u8 {
        self.segment
            .bytes()
            .get(self.place.start)
            .copied()
            .unwrap_or(0)
    }

    /// Reads a byte of each of the item's first cache lines. There is no branch that depends on the
    /// item, so that the processor goes on to the next one without waiting for this one.
    pub(crate) fn touch(&self) -> u8 {
        let bytes = self.segment.bytes();
        let end = self.place.end.min(bytes.len());
        let Some(item @ [_, ..]) = bytes.get(self.place.start..end) else {
            return 0;
        };
        let byte = |line: usize| item[(line * CACHE_LINE_BYTES).min(item.len() - 1)];
        (0..TOUCHED_LINES_MAX).fold(0, |touched, line| touched ^ byte(line))
    }

    pub(crate) fn item(&self) -> Result<StoredItem> {
        match self.segment {
            Segment::Plain(segment) => segment.item(self.position, self.place),
            Segment::Compressed(segment) => segment.item(self.position, self.place),
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.segment, Segment::Plain(_))
    }

    /// Appends the item's bytes to `out` and returns its label.
    pub(crate) fn copy_to(&self, out: &mut Vec<u8>) -> Result<Label> {
        match self.segment {
            Segment::Plain(segment) => {
                let (label, bytes) = segment.stored(self.position, self.place)?;
                out.extend_from_slice(bytes);
                Ok(label)
            }
            Segment::Compressed(segment) => {
                let item = segment.item(self.position, self.place)?;
                out.extend_from_slice(&item.bytes);
                Ok(item.label)
            }
        }
    }

    /// About how many bytes there are in the segment.
    pub(crate) fn n_bytes(&self) -> usize {
        self.place.end.saturating_sub(self.place.start)
    }

    pub(crate) fn label(&self) -> Result<Label> {
        match self.segment {
            Segment::Plain(segment) => segment.label(self.position, self.place),
            Segment::Compressed(segment) => segment.label(self.position, self.place),
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
    fn holding(&self, position: u64) -> Option<&Segment> {
        let after = self
            .entries
            .partition_point(|entry| entry.first_position <= position);
        Some(&self.entries.get(after.checked_sub(1)?)?.segment)
    }

    /// Looks up the items at all these positions, as far as there are any.
    pub(crate) fn find<'a>(
        &'a self,
        positions: &[u64],
        found: &mut Vec<FoundItem<'a>>,
    ) -> Result<()> {
        let mut rest = positions;
        while let [first, ..] = rest {
            let mut n_located = 0;
            if let Some(segment) = self.holding(*first) {
                segment.locate(rest, |position, place| {
                    n_located += 1;
                    if !place.is_dropped() {
                        found.push(FoundItem {
                            segment,
                            position,
                            place,
                        });
                    }
                })?;
            }
            // If the first was not located, there is nothing at its position.
            rest = &rest[n_located.max(1)..];
        }
        Ok(())
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
