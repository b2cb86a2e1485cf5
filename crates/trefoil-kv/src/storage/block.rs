//! Items of the log with positions that follow each other, stored under the first of them.
//!
//! A block says how many positions were skipped before it. So a block that is missing is told from
//! positions that never had an item.

use std::ops::Range;

use bytes::Bytes;
use trefoil_core::{put_varint, take_varint};
use trefoil_storage::{Items, Label, Record, StoredItem};

/// A block is closed when it holds this much.
pub(super) const BLOCK_BYTES: usize = 64 * 1024;
/// What an item takes in memory besides its bytes.
const ITEM_OVERHEAD_BYTES: usize = 40;

/// Stands for the length of an item that was dropped; that of any other is one more than it is.
const DROPPED: u64 = 0;

/// A block of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ItemBlock {
    pub(super) first: u64,
    /// How many positions before it have no item and never had one.
    pub(super) gap: u64,
    /// The label and the place of each item; `None` for one that was dropped.
    items: Vec<Option<(Label, Range<usize>)>>,
    bytes: Bytes,
}

impl ItemBlock {
    /// Returns a block without items.
    fn new(first: u64, gap: u64, bytes: Bytes) -> Self {
        let items = Vec::new();
        Self {
            first,
            gap,
            items,
            bytes,
        }
    }

    /// Returns the position after its last one.
    pub(super) fn end(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    pub(super) fn contains(&self, position: u64) -> bool {
        (self.first..self.end()).contains(&position)
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    fn place(&self, position: u64) -> Option<&(Label, Range<usize>)> {
        let index = usize::try_from(position.checked_sub(self.first)?).ok()?;
        self.items.get(index)?.as_ref()
    }

    /// Returns the label of the item at a position, if there is one.
    pub(super) fn label(&self, position: u64) -> Option<Label> {
        self.place(position).map(|(label, _)| *label)
    }

    /// Returns the item at a position, if there is one.
    pub(super) fn item(&self, position: u64) -> Option<StoredItem> {
        let (label, place) = self.place(position)?;
        let bytes = match self.items.len() {
            1 => self.bytes.slice(place.clone()),
            // Whoever keeps one item does not keep the block with it.
            _ => Bytes::copy_from_slice(&self.bytes[place.clone()]),
        };
        Some(StoredItem {
            position,
            label: *label,
            bytes,
        })
    }

    /// Adds the items at these positions to others.
    pub(super) fn copy(&self, positions: Range<u64>, items: &mut Items) {
        for position in positions {
            match self.place(position) {
                Some((label, place)) => items.push(*label, &self.bytes[place.clone()]),
                None => items.push_dropped(),
            }
        }
    }

    /// Returns about how many bytes of memory it takes.
    pub(super) fn memory(&self) -> usize {
        self.bytes.len() + self.items.len() * ITEM_OVERHEAD_BYTES
    }

    /// Returns the items as those of a record.
    pub(super) fn to_record(&self) -> Record {
        let mut record = Record {
            first_position: self.first,
            ..Record::default()
        };
        self.copy(self.first..self.end(), &mut record.items);
        record
    }

    /// Returns one block of all these items.
    pub(super) fn of(first: u64, gap: u64, items: &Items) -> Self {
        let mut blocks = Builder::new(first, gap);
        items.iter().for_each(|item| blocks.push(item));
        blocks.close()
    }

    /// Cuts the items of a record into blocks. This many positions were skipped before it.
    pub(super) fn cut(record: &Record, gap: u64) -> Vec<Self> {
        let mut blocks = Vec::new();
        let mut open = Builder::new(record.first_position, gap);
        for item in record.items.iter() {
            let n_bytes = item.map_or(0, |(_, bytes)| bytes.len());
            if !open.items.is_empty() && open.bytes.len() + n_bytes > BLOCK_BYTES {
                let next = Builder::new(open.first + open.items.len() as u64, 0);
                blocks.push(std::mem::replace(&mut open, next).close());
            }
            open.push(item);
        }
        if !open.items.is_empty() {
            blocks.push(open.close());
        }
        blocks
    }

    /// Returns what is stored of it.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len() + 16 * self.items.len() + 16);
        put_varint(&mut out, self.gap);
        put_varint(&mut out, self.items.len() as u64);
        for item in &self.items {
            let length = item.as_ref().map(|(_, place)| place.len() as u64 + 1);
            put_varint(&mut out, length.unwrap_or(DROPPED));
        }
        let labels = || self.items.iter().flatten().map(|(label, _)| label);
        out.extend(labels().map(|label| label.flags));
        labels().for_each(|label| out.extend_from_slice(&label.word.to_le_bytes()));
        for (_, place) in self.items.iter().flatten() {
            out.extend_from_slice(&self.bytes[place.clone()]);
        }
        out
    }

    /// Returns the block that is stored at `first`; `None` if it is not one.
    pub(super) fn decode(first: u64, content: &Bytes) -> Option<Self> {
        let mut input = &content[..];
        let (gap, n_items) = (take_varint(&mut input)?, take_varint(&mut input)?);
        let n_items = usize::try_from(n_items).ok()?;
        first.checked_add(n_items as u64)?;
        let mut lengths = Vec::with_capacity(n_items.min(input.len()));
        for _ in 0..n_items {
            lengths.push(take_varint(&mut input)?);
        }
        let n_kept = lengths.iter().filter(|length| **length != DROPPED).count();
        let (flags, rest) = input.split_at_checked(n_kept)?;
        let (words, rest) = rest.split_at_checked(n_kept.checked_mul(8)?)?;
        let bytes = content.slice(content.len() - rest.len()..);
        let words = words.as_chunks::<8>().0.iter();
        let mut labels = flags.iter().zip(words).map(|(flags, word)| Label {
            flags: *flags,
            word: u64::from_le_bytes(*word),
        });
        let mut block = Self::new(first, gap, bytes);
        let mut start = 0_usize;
        for length in lengths {
            let Some(length) = length.checked_sub(1) else {
                block.items.push(None);
                continue;
            };
            let end = start.checked_add(usize::try_from(length).ok()?)?;
            block.items.push(Some((labels.next()?, start..end)));
            start = end;
        }
        (start == block.bytes.len()).then_some(block)
    }
}

/// A block that is being filled.
struct Builder {
    first: u64,
    gap: u64,
    items: Vec<Option<(Label, Range<usize>)>>,
    bytes: Vec<u8>,
}

impl Builder {
    fn new(first: u64, gap: u64) -> Self {
        Self {
            first,
            gap,
            items: Vec::new(),
            bytes: Vec::new(),
        }
    }

    fn push(&mut self, item: Option<(Label, &[u8])>) {
        let start = self.bytes.len();
        self.items.push(item.map(|(label, bytes)| {
            self.bytes.extend_from_slice(bytes);
            (label, start..self.bytes.len())
        }));
    }

    fn close(self) -> ItemBlock {
        ItemBlock {
            first: self.first,
            gap: self.gap,
            items: self.items,
            bytes: self.bytes.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let mut record = Record {
            first_position: 10,
            ..Record::default()
        };
        for number in 0..100_u8 {
            let label = Label {
                flags: number,
                word: u64::from(number) << 40,
            };
            let item = vec![number; usize::from(number) * 50];
            record.items.push(label, &item);
        }
        record.items.push(Label::default(), &vec![7; 200_000]);
        record.items.push_dropped();
        record
    }

    #[test]
    fn blocks_come_back() {
        let record = record();
        let blocks = ItemBlock::cut(&record, 9);
        assert!(blocks.len() > 3);
        assert_eq!((blocks[0].gap, blocks[1].gap), (9, 0));
        let mut items = Items::default();
        let mut next = 10;
        for block in &blocks {
            assert_eq!(block.first, next);
            let decoded = ItemBlock::decode(next, &block.encode().into()).unwrap();
            assert_eq!(decoded.to_record(), block.to_record());
            assert_eq!(decoded.gap, block.gap);
            next = block.end();
            decoded.copy(decoded.first..next, &mut items);
        }
        assert_eq!(items, record.items);
        let item = blocks[0].item(12).unwrap();
        assert_eq!((item.label.flags, item.bytes.len()), (2, 100));
        assert_eq!(blocks[0].label(12), Some(item.label));
        let last = blocks.last().unwrap();
        assert_eq!(last.item(last.end() - 1), None, "it was dropped");
    }

    #[test]
    fn what_is_no_block_is_refused() {
        let blocks = ItemBlock::cut(&record(), 0);
        let content = Bytes::from(blocks[0].encode());
        for length in 0..content.len() {
            assert_eq!(ItemBlock::decode(1, &content.slice(..length)), None);
        }
        assert!(ItemBlock::decode(u64::MAX, &content).is_none());
    }
}
