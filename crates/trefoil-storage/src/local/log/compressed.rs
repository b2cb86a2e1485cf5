//! A compressed segment: every item on its own, so that any of them is read without the others.
//!
//! The file is a header, the dictionary, the items, the records in blocks, and the index. Items
//! stand in the order of their ordinals; the index has one offset more than there are items, so
//! that each item's end is known. An item that ends where it begins was dropped.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use trefoil_core::{Result, put_varint, take_varint};
use xxhash_rust::xxh3::Xxh3;
use zstd::zstd_safe::DDict;

use crate::local::reading::FileAccess;
use crate::local::reading::file::LogFile;
use crate::local::reading::walk::FileWalk;
use crate::{Label, StoredItem};

use super::codec::decompress;
use super::index::{ItemPlace, OFFSET_BYTES, RANGE_BYTES, StoredIndex};
use super::layout::{
    FORMAT_VERSION, check_version, checksum, damaged, short_checksum, u32_at, u64_at,
};
use super::summary::{SUMMARY_BYTES, Summary};

const MAGIC: [u8; 8] = *b"TREFCMP\0";
/// The length of the header, which the dictionary follows.
pub(crate) const COMPRESSED_HEADER_BYTES: usize = 144;
const _: () = assert!(32 + SUMMARY_BYTES + 6 * 8 == COMPRESSED_HEADER_BYTES);
/// Two checksums, the flags and the word; the length follows as a varint.
const ITEM_FIXED_BYTES: usize = 17;
/// The longest header of an item.
const ITEM_HEADER_BYTES_MAX: usize = ITEM_FIXED_BYTES + 10;
/// In the length of an item: whether its bytes are compressed.
const IS_COMPRESSED: u64 = 1;

/// What a compressed segment's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompressedHeader {
    pub(crate) number: u64,
    pub(crate) salt: u64,
    pub(crate) summary: Summary,
    /// The changes of records up to this commit were dropped; 0 if none were.
    pub(crate) dropped_commit: u64,
    pub(crate) n_ranges: u32,
    pub(crate) dictionary_bytes: u64,
    pub(crate) items_bytes: u64,
    pub(crate) blocks_bytes: u64,
    /// The checksum of the dictionary and the index.
    pub(crate) table_check: u64,
}

impl CompressedHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(COMPRESSED_HEADER_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&self.n_ranges.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.salt.to_le_bytes());
        out.extend_from_slice(&self.summary.encode());
        out.extend_from_slice(&self.dropped_commit.to_le_bytes());
        out.extend_from_slice(&self.dictionary_bytes.to_le_bytes());
        out.extend_from_slice(&self.items_bytes.to_le_bytes());
        out.extend_from_slice(&self.blocks_bytes.to_le_bytes());
        out.extend_from_slice(&self.table_check.to_le_bytes());
        out.extend_from_slice(&checksum(&out, 0).to_le_bytes());
        out
    }

    fn decode(path: &Path, bytes: &[u8], file_bytes: u64) -> Result<Self> {
        let length = COMPRESSED_HEADER_BYTES;
        let is_header = bytes.len() >= length && bytes[..8] == MAGIC;
        if !is_header || u64_at(bytes, length - 8) != checksum(&bytes[..length - 8], 0) {
            return Err(damaged(
                path,
                0,
                0,
                "the compressed segment's header is not valid",
            ));
        }
        check_version(path, u32_at(bytes, 8))?;
        let header = Self {
            n_ranges: u32_at(bytes, 12),
            number: u64_at(bytes, 16),
            salt: u64_at(bytes, 24),
            summary: Summary::decode(&bytes[32..]),
            dropped_commit: u64_at(bytes, 96),
            dictionary_bytes: u64_at(bytes, 104),
            items_bytes: u64_at(bytes, 112),
            blocks_bytes: u64_at(bytes, 120),
            table_check: u64_at(bytes, 128),
        };
        let index = header.n_ranges as usize * RANGE_BYTES
            + (header.summary.n_items as usize + 1) * OFFSET_BYTES;
        if (header.index_start() + index) as u64 != file_bytes {
            return Err(damaged(
                path,
                0,
                0,
                "the file's length is not what its header says",
            ));
        }
        Ok(header)
    }

    pub(crate) fn items_start(&self) -> usize {
        COMPRESSED_HEADER_BYTES + self.dictionary_bytes as usize
    }

    pub(crate) fn blocks_start(&self) -> usize {
        self.items_start() + self.items_bytes as usize
    }

    pub(crate) fn index_start(&self) -> usize {
        self.blocks_start() + self.blocks_bytes as usize
    }
}

/// The checksum of the dictionary and the index.
pub(crate) fn table_check(dictionary: &[u8], index: &[u8], salt: u64) -> u64 {
    let mut hash = Xxh3::with_seed(salt);
    hash.update(dictionary);
    hash.update(index);
    hash.digest()
}

/// Appends a stored item: its header and `stored`, which are the item's bytes or their compressed
/// form.
pub(crate) fn put_item(
    out: &mut Vec<u8>,
    seed: u64,
    label: Label,
    plain_bytes: usize,
    stored: &[u8],
) {
    let flag = if stored.len() < plain_bytes {
        IS_COMPRESSED
    } else {
        0
    };
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&short_checksum(stored, seed).to_le_bytes());
    out.push(label.flags);
    out.extend_from_slice(&label.word.to_le_bytes());
    put_varint(out, (plain_bytes as u64) << 1 | flag);
    let check = short_checksum(&out[start + 4..], seed);
    out[start..start + 4].copy_from_slice(&check.to_le_bytes());
    out.extend_from_slice(stored);
}

/// A stored item, taken apart.
struct Item<'a> {
    label: Label,
    plain_bytes: usize,
    is_compressed: bool,
    check: u32,
    stored: &'a [u8],
}

fn take_item(bytes: &[u8], seed: u64) -> Option<Item<'_>> {
    let mut rest = bytes.get(ITEM_FIXED_BYTES..)?;
    let length = take_varint(&mut rest)?;
    let header = bytes.get(4..bytes.len() - rest.len())?;
    (u32_at(bytes, 0) == short_checksum(header, seed)).then(|| Item {
        label: Label {
            flags: bytes[8],
            word: u64_at(bytes, 9),
        },
        plain_bytes: (length >> 1) as usize,
        is_compressed: length & IS_COMPRESSED != 0,
        check: u32_at(bytes, 4),
        stored: rest,
    })
}

/// What is needed to read items, made on first use.
#[derive(Debug)]
pub(crate) struct ItemReader {
    pub(crate) index: StoredIndex,
    dictionary: Option<Dictionary>,
}

struct Dictionary(DDict<'static>);

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Dictionary")
    }
}

/// A compressed segment.
#[derive(Debug)]
pub(crate) struct CompressedSegment {
    pub(crate) path: PathBuf,
    pub(crate) header: CompressedHeader,
    pub(crate) file: Arc<LogFile>,
    reader: OnceLock<ItemReader>,
}

impl CompressedSegment {
    /// Opens the file at `path`; only its header is read.
    pub(crate) fn open(path: &Path, number: u64, access: &FileAccess) -> Result<Self> {
        let file = LogFile::open(path, access)?;
        let length = file.length().min(COMPRESSED_HEADER_BYTES as u64);
        let header = CompressedHeader::decode(path, &file.read(0..length)?, file.length())?;
        if header.number != number {
            let what = format!("the file says that it is segment {}", header.number);
            return Err(damaged(path, 0, 0, what));
        }
        Ok(Self {
            path: path.to_owned(),
            header,
            file: Arc::new(file),
            reader: OnceLock::new(),
        })
    }

    pub(crate) fn damage(&self, offset: usize, position: u64, what: &str) -> trefoil_core::Error {
        damaged(&self.path, offset as u64, position, what)
    }

    /// What is needed to read items, if it has been needed before.
    pub(crate) fn reader_at_hand(&self) -> Option<&ItemReader> {
        self.reader.get()
    }

    /// What is needed to read items.
    pub(crate) fn reader(&self) -> Result<&ItemReader> {
        if let Some(reader) = self.reader.get() {
            return Ok(reader);
        }
        let start = self.header.index_start();
        let position = self.header.summary.first_position;
        let dictionary = COMPRESSED_HEADER_BYTES as u64..self.header.items_start() as u64;
        let dictionary = self.file.read(dictionary)?;
        let mut check = Xxh3::with_seed(self.header.salt);
        check.update(&dictionary);
        let n_items = self.header.summary.n_items as usize;
        let lengths = (self.header.n_ranges as usize, n_items, n_items + 1);
        let index = StoredIndex::read(&self.file, start as u64, lengths, &mut check)?;
        if check.digest() != self.header.table_check {
            return Err(self.damage(start, position, "the dictionary or the index is not valid"));
        }
        let dictionary = match dictionary.as_slice() {
            [] => None,
            bytes => Some(Dictionary(DDict::try_create(bytes).ok_or_else(|| {
                self.damage(
                    COMPRESSED_HEADER_BYTES,
                    position,
                    "the dictionary cannot be used",
                )
            })?)),
        };
        Ok(self.reader.get_or_init(|| ItemReader { index, dictionary }))
    }

    /// Where in the file the header of an item at this place is.
    pub(crate) fn label_place(place: ItemPlace) -> std::ops::Range<u64> {
        let end = place.end.min(place.start + ITEM_HEADER_BYTES_MAX);
        place.start as u64..end as u64
    }

    fn taken<'a>(
        &self,
        position: u64,
        place: ItemPlace,
        bytes: Option<&'a [u8]>,
    ) -> Result<Item<'a>> {
        let seed = self.header.salt.wrapping_add(position);
        let item = bytes.and_then(|bytes| take_item(bytes, seed));
        item.ok_or_else(|| self.damage(place.start, position, "an item's header is not valid"))
    }

    /// The label of the item at `position`, which is at this place: `bytes` are those there, at least
    /// its header.
    pub(crate) fn label(
        &self,
        position: u64,
        place: ItemPlace,
        bytes: Option<&[u8]>,
    ) -> Result<Label> {
        Ok(self.taken(position, place, bytes)?.label)
    }

    /// The item at `position`, which is at this place: `bytes` are those there.
    pub(crate) fn item(
        &self,
        position: u64,
        place: ItemPlace,
        bytes: Option<&[u8]>,
    ) -> Result<StoredItem> {
        let reader = self.reader()?;
        let item = self.taken(position, place, bytes)?;
        let wrong = || self.damage(place.start, position, "an item's bytes are not valid");
        if short_checksum(item.stored, self.header.salt.wrapping_add(position)) != item.check {
            return Err(wrong());
        }
        let bytes = if item.is_compressed {
            let dictionary = reader.dictionary.as_ref().map(|dictionary| &dictionary.0);
            decompress(item.stored, item.plain_bytes, dictionary)
                .ok_or_else(wrong)?
                .into()
        } else {
            Bytes::copy_from_slice(item.stored)
        };
        Ok(StoredItem {
            position,
            label: item.label,
            bytes,
        })
    }

    /// Reads every item and hands what is wrong to `find`; returns how many items are sound.
    pub(crate) fn check_items(&self, find: &mut dyn FnMut(trefoil_core::Error)) -> Result<u64> {
        let index = &self.reader()?.index;
        let mut items = self.file.walk()?;
        let mut n_sound = 0;
        index.each(self.header.items_start(), &mut |_, position, place| {
            if place.is_dropped() {
                return Ok(());
            }
            let read = items.bytes(place.start as u64..place.end as u64);
            match read.and_then(|bytes| self.item(position, place, bytes)) {
                Ok(_) => n_sound += 1,
                Err(error) => find(error),
            }
            Ok(())
        })?;
        Ok(n_sound)
    }

    /// A walk over its items.
    pub(crate) fn items(&self) -> Result<ItemWalk<'_>> {
        Ok(ItemWalk {
            segment: self,
            index: &self.reader()?.index,
            ends: self.file.walk()?,
            items: self.file.walk()?,
        })
    }
}

/// A walk over the items of a compressed segment, in order.
#[derive(Debug)]
pub(crate) struct ItemWalk<'a> {
    segment: &'a CompressedSegment,
    index: &'a StoredIndex,
    ends: FileWalk<'a>,
    items: FileWalk<'a>,
}

impl ItemWalk<'_> {
    /// The item with this ordinal, which is at `position`, unless it was dropped.
    pub(crate) fn item(&mut self, ordinal: usize, position: u64) -> Result<Option<StoredItem>> {
        let segment = self.segment;
        let base = segment.header.items_start();
        let ends = self.ends.bytes(self.index.ends_place(ordinal))?;
        let place = ends
            .filter(|ends| ends.len() == 2 * OFFSET_BYTES)
            .map(|ends| self.index.place(ends, base))
            .ok_or_else(|| segment.damage(base, position, "an item is not in the index"))?;
        if place.is_dropped() {
            return Ok(None);
        }
        let bytes = self.items.bytes(place.start as u64..place.end as u64)?;
        segment.item(position, place, bytes).map(Some)
    }
}
