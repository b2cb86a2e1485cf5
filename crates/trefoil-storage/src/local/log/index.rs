//! From a position to the place of its item in a segment.
//!
//! Items are numbered within a segment by *ordinals* from 0. Positions mostly follow the ordinals;
//! where they jump, a new *range* begins: the position and the ordinal of its first item.

use std::ops::Range;
use std::sync::Arc;

use trefoil_core::Result;
use xxhash_rust::xxh3::Xxh3;

use crate::local::reading::file::{LogFile, ReadPatience};
use crate::local::reading::gather::BlockGather;

use super::growing::Growing;
use super::layout::{u32_at, u64_at};

/// The bytes of a stored range: a position and an ordinal.
pub(crate) const RANGE_BYTES: usize = 16;
/// The bytes of a stored offset.
pub(crate) const OFFSET_BYTES: usize = 4;
/// The bytes of a stored waypoint: a commit and an offset.
pub(crate) const WAYPOINT_BYTES: usize = 16;
/// How far apart waypoints are, in bytes of the segment.
const WAYPOINT_STEP: u64 = 64 * 1024;
/// So many ranges of an index in a file are in memory. Of more of them, one in so many is.
const RANGES_MAX: usize = 256;
/// How much of an index is checked at once.
const CHECKED_BYTES: u64 = 64 * 1024;

/// Where an item is in its segment's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemPlace {
    pub(crate) start: usize,
    /// In a plain segment only about where it ends: where the next one begins, as far as that is
    /// known.
    pub(crate) end: usize,
}

impl ItemPlace {
    /// Whether nothing is left of the item: one that is there has a header.
    pub(crate) fn is_dropped(self) -> bool {
        self.start == self.end
    }
}

/// How long the last item of a plain segment is taken to be.
const LAST_ITEM_BYTES: usize = 512;

/// The index of a segment that is being written, or has no sidecar yet.
#[derive(Debug, Default)]
pub(crate) struct GrowingIndex {
    /// Position and ordinal of each range, one after the other.
    ranges: Growing,
    offsets: Growing,
    /// The first commit and the offset of some groups, one after the other.
    waypoints: Growing,
}

impl GrowingIndex {
    /// Returns what was stored of an index: its ranges and offsets, and its waypoints.
    pub(crate) fn decode(table: &[u8], n_ranges: usize, waypoints: &[u8]) -> Self {
        let index = Self::default();
        let (ranges, offsets) = table.split_at(n_ranges * RANGE_BYTES);
        let push_all = |list: &Growing, numbers: &[u8]| {
            let numbers = numbers.chunks_exact(8).map(|number| u64_at(number, 0));
            numbers.for_each(|number| list.push(number));
        };
        push_all(&index.ranges, ranges);
        push_all(&index.waypoints, waypoints);
        for offset in offsets.chunks_exact(OFFSET_BYTES) {
            index.offsets.push(u32_at(offset, 0).into());
        }
        index
    }

    /// Notes where a group begins, if that is far enough from the last one that was noted.
    pub(crate) fn note_group(&self, first_commit: u64, offset: u64) {
        let last = self.waypoints.len().checked_sub(1);
        let last = last.map_or(0, |last| self.waypoints.get(last));
        if offset >= last + WAYPOINT_STEP {
            self.waypoints.push(first_commit);
            self.waypoints.push(offset);
        }
    }

    /// Returns the offset of a group at or before the record that has `commit`, as far as one is
    /// known.
    pub(crate) fn group_before(&self, commit: u64) -> Option<u64> {
        let (mut low, mut high) = (0, self.waypoints.len() / 2);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.waypoints.get(2 * middle) <= commit {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(self.waypoints.get(2 * low.checked_sub(1)? + 1))
    }

    /// Returns the stored form of the waypoints before an offset.
    pub(crate) fn encode_waypoints(&self, end: u64) -> Vec<u8> {
        let n_waypoints = self.waypoints.len() / 2;
        let all = (0..n_waypoints)
            .map(|index| [2 * index, 2 * index + 1].map(|at| self.waypoints.get(at)));
        let before = all.take_while(|[_, offset]| *offset < end);
        before.flatten().flat_map(u64::to_le_bytes).collect()
    }

    /// Returns the stored form of the ranges and the offsets of the first items, and how many ranges
    /// there are.
    pub(crate) fn encode_first(&self, n_items: usize) -> (Vec<u8>, u32) {
        let all = 0..self.ranges.len() / 2;
        let n_ranges = all.take_while(|&index| self.range(index).1 < n_items as u64);
        let n_ranges = n_ranges.count();
        let mut out = Vec::with_capacity(n_ranges * RANGE_BYTES + n_items * OFFSET_BYTES);
        for number in 0..2 * n_ranges {
            out.extend_from_slice(&self.ranges.get(number).to_le_bytes());
        }
        for ordinal in 0..n_items {
            out.extend_from_slice(&(self.offsets.get(ordinal) as u32).to_le_bytes());
        }
        (out, n_ranges as u32)
    }

    /// Adds the items of one record, the first of which is at `first_position`.
    pub(crate) fn push(&self, first_position: u64, offsets: impl Iterator<Item = u64>) {
        let mut offsets = offsets.peekable();
        if offsets.peek().is_none() {
            return;
        }
        let ordinal = self.offsets.len() as u64;
        if self.next_position() != Some(first_position) {
            // The range before its items: a reader looks at them in the opposite order, so it
            // never takes the new items for a part of the range before.
            self.ranges.push(first_position);
            self.ranges.push(ordinal);
        }
        offsets.for_each(|offset| self.offsets.push(offset));
    }

    /// The position after that of the last item.
    fn next_position(&self) -> Option<u64> {
        let last = (self.ranges.len() / 2).checked_sub(1)?;
        let (position, ordinal) = self.range(last);
        Some(position + self.offsets.len() as u64 - ordinal)
    }

    fn range(&self, index: usize) -> (u64, u64) {
        (self.ranges.get(2 * index), self.ranges.get(2 * index + 1))
    }
}

/// An index in a file.
#[derive(Debug)]
pub(crate) struct StoredIndex {
    file: Arc<LogFile>,
    /// The offset of the first range; the offsets follow the ranges.
    start: u64,
    n_ranges: usize,
    n_items: usize,
    /// How many offsets there are: that of each item, and in a compressed segment where the last one
    /// ends.
    n_offsets: usize,
    /// The first position and ordinal of the ranges, or of every [`RANGES_MAX`]th.
    ranges: Vec<(u64, u64)>,
    range_step: usize,
}

/// A range as it is stored.
fn range_at(bytes: &[u8]) -> (u64, u64) {
    (u64_at(bytes, 0), u64_at(bytes, 8))
}

impl StoredIndex {
    /// Reads the index of `n_items` items at `start` of a file, and takes its bytes into a checksum.
    pub(crate) fn read(
        file: &Arc<LogFile>,
        start: u64,
        (n_ranges, n_items, n_offsets): (usize, usize, usize),
        check: &mut Xxh3,
    ) -> Result<Self> {
        let mut index = Self {
            file: Arc::clone(file),
            start,
            n_ranges,
            n_items,
            n_offsets,
            ranges: Vec::new(),
            range_step: if n_ranges <= RANGES_MAX {
                1
            } else {
                RANGES_MAX
            },
        };
        let mut walk = file.walk()?;
        for at in (0..n_ranges).step_by(index.range_step) {
            let bytes = walk.bytes(index.range_place(at..at + 1))?;
            index.ranges.extend(bytes.map(range_at));
        }
        let (mut at, end) = (start, index.end());
        while at < end {
            let next = end.min(at + CHECKED_BYTES);
            check.update(walk.bytes(at..next)?.unwrap_or_default());
            at = next;
        }
        Ok(index)
    }

    fn range_place(&self, ranges: Range<usize>) -> Range<u64> {
        let place = |at: usize| self.start + (at * RANGE_BYTES) as u64;
        place(ranges.start)..place(ranges.end)
    }

    /// Where the offsets with these ordinals are.
    fn offset_place(&self, ordinals: Range<usize>) -> Range<u64> {
        let start = self.start + (self.n_ranges * RANGE_BYTES) as u64;
        let place = |at: usize| start + (at * OFFSET_BYTES) as u64;
        place(ordinals.start)..place(ordinals.end)
    }

    /// Where it ends.
    fn end(&self) -> u64 {
        self.offset_place(0..self.n_offsets).end
    }

    pub(crate) fn file(&self) -> &LogFile {
        &self.file
    }

    /// Where the offset of an item is and, if it has one, that of the next one.
    pub(crate) fn ends_place(&self, ordinal: usize) -> Range<u64> {
        self.offset_place(ordinal..(ordinal + 2).min(self.n_offsets))
    }

    /// The place of an item, given what is at its [`Self::ends_place`]; offsets count from `base`.
    pub(crate) fn place(&self, ends: &[u8], base: usize) -> ItemPlace {
        let start = base + u32_at(ends, 0) as usize;
        let end = match ends.len() > OFFSET_BYTES {
            true => base + u32_at(ends, OFFSET_BYTES) as usize,
            false => start + LAST_ITEM_BYTES,
        };
        ItemPlace { start, end }
    }

    /// Hands the ordinals, positions and places of all items to `visit`.
    pub(crate) fn each(
        &self,
        base: usize,
        visit: &mut dyn FnMut(usize, u64, ItemPlace) -> Result<()>,
    ) -> Result<()> {
        let (mut ranges, mut offsets) = (self.file.walk()?, self.file.walk()?);
        for at in 0..self.n_ranges {
            let next = (at + 2).min(self.n_ranges);
            let Some(bytes) = ranges.bytes(self.range_place(at..next))? else {
                break;
            };
            let (position, ordinal) = range_at(bytes);
            let end = match bytes.get(RANGE_BYTES..) {
                Some(next @ [_, ..]) => range_at(next).1,
                _ => self.n_items as u64,
            };
            for (ordinal, position) in (ordinal..end.min(self.n_items as u64)).zip(position..) {
                let ordinal = ordinal as usize;
                if let Some(ends) = offsets.bytes(self.ends_place(ordinal))? {
                    visit(ordinal, position, self.place(ends, base))?;
                }
            }
        }
        Ok(())
    }

    /// The stretch that the item at `position` is in, if there is one; `None` if that would have to be
    /// waited for.
    fn stretch(&self, position: u64, patience: ReadPatience) -> Result<Option<Option<Stretch>>> {
        let after = self.ranges.partition_point(|range| range.0 <= position);
        let Some(found) = after.checked_sub(1) else {
            return Ok(Some(None));
        };
        if self.range_step == 1 {
            let stretch = Stretch::around(position, self.n_items, self.n_ranges, |at| {
                self.ranges.get(at).copied().unwrap_or_default()
            });
            return Ok(Some(stretch));
        }
        let first = found * self.range_step;
        // One more, which says where the last one ends.
        let end = (first + self.range_step + 1).min(self.n_ranges);
        let place = self.range_place(first..end);
        let mut gather = BlockGather::default();
        let gathered = gather.need(&self.file, place.clone());
        if !gather.fetch(patience)? {
            return Ok(None);
        }
        let bytes = gather.bytes(gathered, place).unwrap_or_default();
        let n_ranges = bytes.len() / RANGE_BYTES;
        let range = |at: usize| range_at(&bytes[at * RANGE_BYTES..]);
        Ok(Some(Stretch::around(
            position,
            self.n_items,
            n_ranges,
            range,
        )))
    }
}

/// The index of a segment.
#[derive(Debug)]
pub(crate) enum SegmentIndex {
    /// In memory.
    Growing(Box<GrowingIndex>),
    /// In a sidecar.
    Stored(StoredIndex),
}

/// Where an index says that an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Located {
    At(ItemPlace),
    /// Where the index in the file says for this ordinal.
    Ordinal(usize),
}

impl StoredIndex {
    /// See [`SegmentIndex::locate`].
    pub(crate) fn locate(
        &self,
        positions: &[u64],
        patience: ReadPatience,
        mut find: impl FnMut(u64, Located),
    ) -> Result<bool> {
        let Some(&first) = positions.first() else {
            return Ok(true);
        };
        let Some(stretch) = self.stretch(first, patience)? else {
            return Ok(false);
        };
        if let Some(stretch) = stretch {
            stretch.locate(positions, |position, ordinal| {
                find(position, Located::Ordinal(ordinal));
            });
        }
        Ok(true)
    }
}

impl SegmentIndex {
    /// Says to `find` where in its segment the item at the first of these positions is, and those at
    /// the ones after it as long as they are in the same stretch. Returns whether it could say that
    /// without waiting.
    pub(crate) fn locate(
        &self,
        positions: &[u64],
        patience: ReadPatience,
        mut find: impl FnMut(u64, Located),
    ) -> Result<bool> {
        let index = match self {
            Self::Growing(index) => index,
            Self::Stored(index) => return index.locate(positions, patience, find),
        };
        let Some(&first) = positions.first() else {
            return Ok(true);
        };
        // The items before the ranges: see `push`.
        let n_items = index.offsets.len();
        let n_ranges = index.ranges.len() / 2;
        if let Some(stretch) = Stretch::around(first, n_items, n_ranges, |at| index.range(at)) {
            let offset = |ordinal| index.offsets.get(ordinal) as usize;
            stretch.locate(positions, |position, ordinal| {
                find(position, Located::At(place_of(ordinal, n_items, offset)));
            });
        }
        Ok(true)
    }

    /// The stored form of the ranges and the offsets, and how many ranges there are.
    pub(crate) fn encode(&self) -> Result<(Vec<u8>, u32)> {
        match self {
            Self::Stored(index) => {
                let bytes = index.file.read(index.start..index.end())?;
                Ok((bytes, index.n_ranges as u32))
            }
            Self::Growing(index) => Ok(index.encode_first(index.offsets.len())),
        }
    }
}

/// Where an item of a plain segment is, given the offsets of all of them.
fn place_of(ordinal: usize, n_items: usize, offset: impl Fn(usize) -> usize) -> ItemPlace {
    let start = offset(ordinal);
    let end = if ordinal + 1 < n_items {
        offset(ordinal + 1)
    } else {
        start + LAST_ITEM_BYTES
    };
    ItemPlace { start, end }
}

/// Items whose positions follow each other without a gap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    first_position: u64,
    first_ordinal: u64,
    end_ordinal: u64,
}

impl Stretch {
    /// The stretch that the item at `position` is in, given what each range's first position and
    /// ordinal are.
    fn around(
        position: u64,
        n_items: usize,
        n_ranges: usize,
        range: impl Fn(usize) -> (u64, u64),
    ) -> Option<Self> {
        let (mut low, mut high) = (0, n_ranges);
        while low < high {
            let middle = low + (high - low) / 2;
            if range(middle).0 <= position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let (first_position, first_ordinal) = range(low.checked_sub(1)?);
        let end = if low < n_ranges {
            range(low).1
        } else {
            n_items as u64
        };
        let stretch = Self {
            first_position,
            first_ordinal,
            end_ordinal: end.min(n_items as u64),
        };
        stretch.ordinal(position).map(|_| stretch)
    }

    /// The ordinal of the item at `position`, if it is in this stretch.
    fn ordinal(&self, position: u64) -> Option<usize> {
        let steps = position.checked_sub(self.first_position)?;
        let ordinal = self.first_ordinal.checked_add(steps)?;
        (ordinal < self.end_ordinal).then_some(ordinal as usize)
    }

    /// Says to `find` which ordinals the items at these positions have, up to the first one that is
    /// not in this stretch.
    fn locate(&self, positions: &[u64], mut find: impl FnMut(u64, usize)) {
        for &position in positions {
            let Some(ordinal) = self.ordinal(position) else {
                break;
            };
            find(position, ordinal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_found_over_jumps() {
        let index = GrowingIndex::default();
        index.push(1, [10, 20].into_iter());
        index.push(3, std::iter::empty());
        index.push(3, [30].into_iter());
        index.push(10, [40, 50].into_iter());
        index.push(20, [60].into_iter());
        assert_eq!(index.ranges.len(), 6);
        let index = SegmentIndex::Growing(Box::new(index));
        let locate = |positions: &[u64]| {
            let mut found = Vec::new();
            let find = |at, located| match located {
                Located::At(place) => found.push((at, place.start, place.end)),
                Located::Ordinal(ordinal) => panic!("{ordinal} is in a file"),
            };
            assert!(index.locate(positions, ReadPatience::AtHand, find).unwrap());
            found
        };
        let found: Vec<_> = (0..23).flat_map(|at| locate(&[at])).collect();
        let expected = [
            (1, 10, 20),
            (2, 20, 30),
            (3, 30, 40),
            (10, 40, 50),
            (11, 50, 60),
            (20, 60, 60 + LAST_ITEM_BYTES),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            locate(&[1, 3, 2, 10, 11]),
            [expected[0], expected[2], expected[1]]
        );
        assert_eq!(locate(&[4, 1]), []);
    }
}
