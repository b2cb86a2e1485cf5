//! From a position to the place of its item in a segment.
//!
//! Items are numbered within a segment by *ordinals* from 0. Positions mostly follow the ordinals;
//! where they jump, a new *range* begins: the position and the ordinal of its first item.

use crate::local::mapping::Mapping;

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

/// Where in a mapped file an index is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexPlace {
    /// The offset of the first range; the offsets follow the ranges.
    pub(crate) start: usize,
    pub(crate) n_ranges: usize,
    pub(crate) n_items: usize,
}

impl IndexPlace {
    fn offsets_start(&self) -> usize {
        self.start + self.n_ranges * RANGE_BYTES
    }

    /// The offset that is stored for an ordinal.
    pub(crate) fn offset(&self, file: &[u8], ordinal: usize) -> usize {
        u32_at(file, self.offsets_start() + ordinal * OFFSET_BYTES) as usize
    }

    /// The ordinals and positions of all items.
    pub(crate) fn positions(&self, file: &[u8]) -> impl Iterator<Item = (usize, u64)> {
        (0..self.n_ranges).flat_map(move |index| {
            let at = self.start + index * RANGE_BYTES;
            let (position, ordinal) = (u64_at(file, at), u64_at(file, at + 8) as usize);
            let is_last = index + 1 == self.n_ranges;
            let end = if is_last {
                self.n_items
            } else {
                u64_at(file, at + RANGE_BYTES + 8) as usize
            };
            (ordinal..end).zip(position..)
        })
    }

    /// The stretch that the item at `position` is in, if there is one.
    pub(crate) fn stretch(&self, file: &[u8], position: u64) -> Option<Stretch> {
        let range = |index: usize| {
            let at = self.start + index * RANGE_BYTES;
            (u64_at(file, at), u64_at(file, at + 8))
        };
        Stretch::around(position, self.n_items, self.n_ranges, range)
    }
}

/// The index of a plain segment.
#[derive(Debug)]
pub(crate) enum SegmentIndex {
    /// In memory.
    Growing(Box<GrowingIndex>),
    /// In a sidecar.
    Mapped(Mapping, IndexPlace),
}

impl SegmentIndex {
    /// Says to `find` where in its segment the item at the first of these positions is, and those at
    /// the ones after it as long as they are in the same stretch.
    pub(crate) fn locate(&self, positions: &[u64], find: impl FnMut(u64, ItemPlace)) {
        let Some(&first) = positions.first() else {
            return;
        };
        match self {
            Self::Growing(index) => {
                // The items before the ranges: see `push`.
                let n_items = index.offsets.len();
                let n_ranges = index.ranges.len() / 2;
                if let Some(stretch) =
                    Stretch::around(first, n_items, n_ranges, |at| index.range(at))
                {
                    let offset = |ordinal| index.offsets.get(ordinal) as usize;
                    stretch.locate(
                        positions,
                        |ordinal| place_of(ordinal, n_items, offset),
                        find,
                    );
                }
            }
            Self::Mapped(file, index) => {
                let file: &[u8] = file;
                if let Some(stretch) = index.stretch(file, first) {
                    let offset = |ordinal| index.offset(file, ordinal);
                    stretch.locate(
                        positions,
                        |ordinal| place_of(ordinal, index.n_items, offset),
                        find,
                    );
                }
            }
        }
    }

    /// The stored form of the ranges and the offsets, and how many ranges there are.
    pub(crate) fn encode(&self) -> (Vec<u8>, u32) {
        match self {
            Self::Mapped(file, place) => (file[place.start..].to_vec(), place.n_ranges as u32),
            Self::Growing(index) => index.encode_first(index.offsets.len()),
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

    /// Says to `find` where the items at these positions are, up to the first one that is not in
    /// this stretch. `place` knows where the item with an ordinal is.
    pub(crate) fn locate(
        &self,
        positions: &[u64],
        place: impl Fn(usize) -> ItemPlace,
        mut find: impl FnMut(u64, ItemPlace),
    ) {
        for &position in positions {
            let Some(ordinal) = self.ordinal(position) else {
                break;
            };
            find(position, place(ordinal));
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
            index.locate(positions, |at, place| {
                found.push((at, place.start, place.end));
            });
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
