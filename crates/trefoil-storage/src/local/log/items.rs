//! Reading items that were looked up, some of them together.
//!
//! Items here and there are read through the cache. Those that follow each other are read in one piece
//! past it, and the operating system is told that more of them will be.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use bytes::Bytes;
use trefoil_core::Result;

use crate::local::reading::file::{LogFile, ReadPatience};
use crate::local::reading::gather::{BlockGather, GatheredRange};
use crate::{Label, StoredItem, VisitItem, VisitLabel};

use super::compressed::CompressedSegment;
use super::layout::{ITEM_HEADER_BYTES, ItemHeader};
use super::lookup::FoundItem;
use super::plain::PlainSegment;
use super::segments::Segment;

/// How many bytes of items are read together.
const BATCH_BYTES: u64 = 256 * 1024;
/// An item that takes more is not kept in the cache.
const CACHED_ITEM_BYTES_MAX: u64 = 32 * 1024;
/// Items that follow each other and take as much are read in one piece.
const PIECE_BYTES_MIN: u64 = 64 * 1024;
/// How much is expected to be read after such a piece.
const EXPECTED_BYTES: u64 = 1024 * 1024;
/// Items that are more than this together get memory of their own, so that whoever keeps one of
/// them keeps little else.
const TOGETHER_BYTES_MAX: usize = 16 * 1024;

/// How a read went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// There may be more to see.
    All,
    /// Enough was seen.
    Enough,
    /// The rest would have to be waited for.
    NotAtHand,
}

/// What of the items is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemPart {
    Items,
    Labels,
}

impl FoundItem<'_> {
    fn n_bytes(&self) -> u64 {
        self.place.end.saturating_sub(self.place.start) as u64
    }

    /// Where what is wanted of it is, as far as that is known and it is to be kept in the cache.
    fn range(&self, wanted: ItemPart) -> Range<u64> {
        let (start, end) = (self.place.start as u64, self.place.end as u64);
        let header = match self.segment {
            Segment::Plain(_) => start..start + ITEM_HEADER_BYTES as u64,
            Segment::Compressed(_) => CompressedSegment::label_place(self.place),
        };
        match wanted == ItemPart::Items && self.n_bytes() <= CACHED_ITEM_BYTES_MAX {
            true => start..end.max(header.end),
            false => header,
        }
    }
}

/// Takes so many of the items as are read together: those up to the next piece, or that piece.
pub(super) fn split_batch<'a, 'b>(
    items: &'b [FoundItem<'a>],
) -> (&'b [FoundItem<'a>], &'b [FoundItem<'a>]) {
    let mut n_bytes = 0;
    let n_items = items
        .iter()
        .take_while(|item| {
            let has_room = n_bytes < BATCH_BYTES;
            n_bytes += item.n_bytes();
            has_room
        })
        .count();
    let mut n_before = 0;
    for run in items[..n_items].chunk_by(are_in_one_file) {
        match piece_of(run) {
            Some(_) if n_before == 0 => return items.split_at(run.len()),
            Some(_) => break,
            None => n_before += run.len(),
        }
    }
    items.split_at(n_before)
}

fn are_in_one_file(item: &FoundItem<'_>, other: &FoundItem<'_>) -> bool {
    std::ptr::eq(item.segment.file(), other.segment.file())
}

/// The bytes of some items.
enum BatchBytes<'a> {
    /// Those of each of them.
    Gathered(BlockGather<'a>, Vec<GatheredRange>),
    /// Those of all of them, from an offset of the one file that they are in.
    Piece(u64, Vec<u8>),
}

/// Some items, and their bytes.
struct ItemBatch<'a, 'b> {
    items: &'b [FoundItem<'a>],
    bytes: BatchBytes<'a>,
    patience: ReadPatience,
}

impl<'a, 'b> ItemBatch<'a, 'b> {
    /// Reads what is wanted of some items; `None` if that would have to be waited for.
    fn read(
        items: &'b [FoundItem<'a>],
        wanted: ItemPart,
        patience: ReadPatience,
    ) -> Result<Option<Self>> {
        let bytes = match piece_of(items) {
            Some(range) => {
                let file = items[0].segment.file();
                let Some(bytes) = file.read_if(range.clone(), patience)? else {
                    return Ok(None);
                };
                expect_more(file, items, &range);
                BatchBytes::Piece(range.start, bytes)
            }
            None => {
                let mut gather = BlockGather::default();
                let need =
                    |item: &FoundItem<'a>| gather.need(item.segment.file(), item.range(wanted));
                let ranges: Vec<GatheredRange> = items.iter().map(need).collect();
                if !gather.fetch(patience)? {
                    return Ok(None);
                }
                let places = items.iter().map(|item| item.range(wanted));
                gather.touch(ranges.iter().copied().zip(places));
                BatchBytes::Gathered(gather, ranges)
            }
        };
        Ok(Some(Self {
            items,
            bytes,
            patience,
        }))
    }

    /// The bytes in a range that belongs to an item, as far as they have been read.
    fn bytes_of(&self, item: usize, range: Range<u64>) -> Option<Cow<'_, [u8]>> {
        match &self.bytes {
            BatchBytes::Gathered(gather, ranges) => gather.bytes(*ranges.get(item)?, range),
            BatchBytes::Piece(start, bytes) => {
                let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
                let to = usize::try_from(range.end.checked_sub(*start)?).ok()?;
                bytes.get(from..to).map(Cow::Borrowed)
            }
        }
    }

    /// The bytes in a range that belongs to an item; `None` if they would have to be waited for.
    fn bytes(&self, item: usize, range: Range<u64>) -> Result<Option<Cow<'_, [u8]>>> {
        if let Some(bytes) = self.bytes_of(item, range.clone()) {
            return Ok(Some(bytes));
        }
        let read = self.items[item]
            .segment
            .file()
            .read_if(range, self.patience);
        Ok(read?.map(Cow::Owned))
    }

    /// The header of an item of a plain segment.
    fn header(&self, at: usize, segment: &PlainSegment) -> Result<ItemHeader> {
        let FoundItem {
            position, place, ..
        } = self.items[at];
        let start = place.start as u64;
        let bytes = self.bytes_of(at, start..start + ITEM_HEADER_BYTES as u64);
        segment.item_header(position, place, bytes.as_deref())
    }

    /// Appends the bytes of an item of a plain segment to `out`. Returns its label; `None` if it would
    /// have to be waited for.
    fn copy(&self, at: usize, segment: &PlainSegment, out: &mut Vec<u8>) -> Result<Option<Label>> {
        let FoundItem {
            position, place, ..
        } = self.items[at];
        let header = self.header(at, segment)?;
        let start = (place.start + ITEM_HEADER_BYTES) as u64;
        let range = start..start + u64::from(header.length);
        let Some(bytes) = self.bytes(at, range)? else {
            return Ok(None);
        };
        let label = segment.check_item(position, place, &header, &bytes)?;
        out.extend_from_slice(&bytes);
        Ok(Some(label))
    }

    /// The item of a compressed segment; `None` if it would have to be waited for.
    fn unpack(&self, at: usize, segment: &CompressedSegment) -> Result<Option<StoredItem>> {
        let FoundItem {
            position, place, ..
        } = self.items[at];
        match self.bytes(at, place.start as u64..place.end as u64)? {
            Some(bytes) => segment.item(position, place, Some(&bytes)).map(Some),
            None => Ok(None),
        }
    }

    /// How many of the items from `at` on are copied into one piece of memory, and about how long it
    /// is; none if the first is compressed.
    fn together(&self, at: usize) -> (usize, usize) {
        let (mut n_items, mut n_bytes) = (0, 0);
        for item in &self.items[at..] {
            let length = item.n_bytes() as usize;
            let fits = n_items == 0 || n_bytes + length <= TOGETHER_BYTES_MAX;
            if !item.segment.is_plain() || !fits {
                break;
            }
            n_items += 1;
            n_bytes += length;
        }
        (n_items, n_bytes)
    }

    fn visit(&self, visit: &mut VisitItem<'_>) -> Result<ReadProgress> {
        let mut at = 0;
        while at < self.items.len() {
            let n_seen = match (self.together(at), self.items[at].segment) {
                ((0, _), Segment::Compressed(segment)) => match self.unpack(at, segment)? {
                    None => return Ok(ReadProgress::NotAtHand),
                    Some(item) => match visit(item) {
                        ControlFlow::Break(()) => return Ok(ReadProgress::Enough),
                        ControlFlow::Continue(()) => 1,
                    },
                },
                ((n_items, n_bytes), _) => {
                    match self.visit_together(at..at + n_items, n_bytes, visit)? {
                        ReadProgress::All => n_items,
                        other => return Ok(other),
                    }
                }
            };
            at += n_seen;
        }
        Ok(ReadProgress::All)
    }

    /// Hands items of plain segments, of about `n_bytes` bytes, to `visit`.
    fn visit_together(
        &self,
        range: Range<usize>,
        n_bytes: usize,
        visit: &mut VisitItem<'_>,
    ) -> Result<ReadProgress> {
        let mut bytes = Vec::with_capacity(n_bytes.min(TOGETHER_BYTES_MAX));
        let mut ends = Vec::with_capacity(range.len());
        for at in range.clone() {
            let Segment::Plain(segment) = self.items[at].segment else {
                break;
            };
            let Some(label) = self.copy(at, segment, &mut bytes)? else {
                return Ok(ReadProgress::NotAtHand);
            };
            ends.push((label, bytes.len()));
        }
        let bytes = Bytes::from(bytes);
        let mut start = 0;
        for (found, (label, end)) in self.items[range].iter().zip(ends) {
            let item = StoredItem {
                position: found.position,
                label,
                bytes: bytes.slice(start..end),
            };
            if visit(item).is_break() {
                return Ok(ReadProgress::Enough);
            }
            start = end;
        }
        Ok(ReadProgress::All)
    }
}

/// Where in their file items are that follow each other and are read in one piece.
fn piece_of(items: &[FoundItem<'_>]) -> Option<Range<u64>> {
    let first = items.first()?;
    let file = first.segment.file();
    let (mut start, mut end, mut n_bytes) = (u64::MAX, 0, 0);
    for item in items {
        if !are_in_one_file(item, first) {
            return None;
        }
        start = start.min(item.place.start as u64);
        end = end.max(item.place.end as u64);
        n_bytes += item.n_bytes();
    }
    let end = end.min(file.end());
    let length = end.checked_sub(start)?;
    let is_one = items.len() > 1 && length >= PIECE_BYTES_MIN && length <= 2 * n_bytes;
    is_one.then_some(start..end)
}

/// Says that what follows a piece will be read: behind it, or before it if items are read backwards.
fn expect_more(file: &LogFile, items: &[FoundItem<'_>], piece: &Range<u64>) {
    let is_forwards =
        items.first().map(|item| item.position) < items.last().map(|item| item.position);
    file.read_on(match is_forwards {
        true => piece.end..piece.end + EXPECTED_BYTES,
        false => piece.start.saturating_sub(EXPECTED_BYTES)..piece.start,
    });
}

/// Hands items to `visit`.
pub(super) fn read(
    items: &[FoundItem<'_>],
    patience: ReadPatience,
    visit: &mut VisitItem<'_>,
) -> Result<ReadProgress> {
    match ItemBatch::read(items, ItemPart::Items, patience)? {
        Some(batch) => batch.visit(visit),
        None => Ok(ReadProgress::NotAtHand),
    }
}

/// Hands the labels of items to `visit`.
pub(super) fn read_labels(items: &[FoundItem<'_>], visit: &mut VisitLabel<'_>) -> Result<()> {
    let Some(batch) = ItemBatch::read(items, ItemPart::Labels, ReadPatience::Waits)? else {
        return Ok(());
    };
    for (at, found) in items.iter().enumerate() {
        let FoundItem {
            position, place, ..
        } = *found;
        let label = match found.segment {
            Segment::Plain(segment) => batch.header(at, segment)?.label,
            Segment::Compressed(segment) => {
                let bytes = batch.bytes_of(at, CompressedSegment::label_place(place));
                segment.label(position, place, bytes.as_deref())?
            }
        };
        visit(position, label);
    }
    Ok(())
}
