//! Making a compressed segment from a plain one, or a smaller one from a compressed one: changes that
//! the snapshot has are dropped on the way.

use trefoil_core::Result;
use zstd::zstd_safe::CDict;

use crate::local::reading::FileAccess;

use super::blocks::BlockWriter;
use super::codec::ZstdEncoder;
use super::compressed::{
    COMPRESSED_HEADER_BYTES, CompressedHeader, CompressedSegment, put_item, table_check,
};
use super::index::RANGE_BYTES;
use super::layout::{ITEM_HEADER_BYTES, RecordHeader, items_of, parts_of};
use super::plain::PlainSegment;
use super::summary::{self, Summary};
use crate::Record;

/// The largest dictionary.
const DICTIONARY_BYTES_MAX: usize = 64 * 1024;
/// A dictionary takes at most one part in this many of the segment it is for.
const DICTIONARY_SHARE: usize = 32;
/// Below this a dictionary is not worth its room.
const DICTIONARY_BYTES_MIN: usize = 1024;
/// How many bytes of items a dictionary is trained on.
const SAMPLE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many bytes of one item count: one large item must not be the whole sample.
const SAMPLE_ITEM_BYTES_MAX: usize = 16 * 1024;

/// After so many bytes of records it is asked whether to go on: that takes a millisecond or two.
const BYTES_PER_STEP: usize = 256 * 1024;

/// The bytes of the compressed form of a full segment, without the changes up to the commit of the
/// snapshot; `None` if it should not go on with that.
pub(crate) fn compress(
    segment: &PlainSegment,
    access: &FileAccess,
    level: i32,
    snapshot: u64,
    goes_on: &dyn Fn() -> bool,
) -> Result<Option<Vec<u8>>> {
    let dictionary = train(segment)?;
    let prepared = CDict::try_create(&dictionary, level).filter(|_| !dictionary.is_empty());
    let dictionary = if prepared.is_some() {
        dictionary
    } else {
        Vec::new()
    };
    let mut encoder = ZstdEncoder::new(level, prepared.as_ref())?;
    let salt = segment.header.salt;
    let mut blocks = BlockWriter::new(level, salt)?;
    let (mut items, mut offsets) = (Vec::new(), Vec::new());
    let (mut summary, mut n_bytes) = (segment.summary(), 0);
    let mut records = segment.records()?;
    while let Some((offset, header)) = records.next_header()? {
        let body = records.body(offset, &header)?;
        n_bytes += body.len();
        if n_bytes >= BYTES_PER_STEP {
            n_bytes = 0;
            if !goes_on() {
                return Ok(None);
            }
        }
        let mut end = 0;
        let items_here = items_of(&header, body, salt);
        for (position, (at, item, bytes)) in (header.first_position..).zip(items_here) {
            offsets.extend_from_slice(&(items.len() as u32).to_le_bytes());
            let stored = encoder.compress(bytes)?.unwrap_or(bytes);
            put_item(
                &mut items,
                salt.wrapping_add(position),
                item.label,
                bytes.len(),
                stored,
            );
            end = at + ITEM_HEADER_BYTES + bytes.len();
        }
        let mut record = without_items(&header, body, end);
        record.drop_changes(snapshot);
        if record.changes_dropped {
            summary.droppable_bytes -= summary::droppable(&header, offset, header.end(offset));
        }
        blocks.push(record, header.n_items)?;
    }
    offsets.extend_from_slice(&(items.len() as u32).to_le_bytes());
    let (blocks, n_records) = blocks.finish()?;
    summary.n_records = n_records;
    let (table, n_ranges) = segment.index(access)?.encode()?;
    let mut index = table[..n_ranges as usize * RANGE_BYTES].to_vec();
    index.extend_from_slice(&offsets);
    let header = CompressedHeader {
        number: segment.header.number,
        salt,
        summary,
        dropped_commit: dropped_commit(&summary, snapshot),
        n_ranges,
        dictionary_bytes: dictionary.len() as u64,
        items_bytes: items.len() as u64,
        blocks_bytes: blocks.len() as u64,
        table_check: table_check(&dictionary, &index, salt),
    };
    Ok(Some(
        [header.encode(), dictionary, items, blocks, index].concat(),
    ))
}

/// A record of a plain segment without its items, which end at `end` of its body.
fn without_items(header: &RecordHeader, body: &[u8], end: usize) -> Record {
    let (commits, changes) = parts_of(header, body, end).unwrap_or_default();
    Record {
        first_commit: header.first_commit,
        n_commits: header.n_commits,
        first_position: header.first_position,
        commits: commits.to_vec(),
        changes: changes.to_vec(),
        ..Record::default()
    }
}

/// Up to which commit a segment's changes are dropped, given the commit of the snapshot.
fn dropped_commit(summary: &Summary, snapshot: u64) -> u64 {
    match snapshot < summary.first_commit {
        true => 0,
        false => snapshot.min(summary.last_commit),
    }
}

/// The bytes of a compressed segment without its changes, all of which the snapshot has.
pub(crate) fn shrink(segment: &CompressedSegment, level: i32) -> Result<Vec<u8>> {
    let before = &segment.header;
    let mut blocks = BlockWriter::new(level, before.salt)?;
    segment.walk(0, &mut |place| {
        let mut record = Record::default();
        place.fill(&mut record);
        record.drop_changes(before.summary.last_commit);
        blocks.push(record, place.n_items as u32)
    })?;
    let (blocks, n_records) = blocks.finish()?;
    let header = CompressedHeader {
        summary: Summary {
            n_records,
            droppable_bytes: 0,
            ..before.summary
        },
        dropped_commit: before.summary.last_commit,
        blocks_bytes: blocks.len() as u64,
        ..*before
    };
    let read = |start: usize, end: u64| segment.file.read(start as u64..end);
    let dictionary_and_items = read(COMPRESSED_HEADER_BYTES, before.blocks_start() as u64)?;
    let index = read(before.index_start(), segment.file.length())?;
    Ok([header.encode(), dictionary_and_items, blocks, index].concat())
}

/// A dictionary for the segment's items; empty if they are too few or have nothing in common.
fn train(segment: &PlainSegment) -> Result<Vec<u8>> {
    let mut sampler = Sampler::new(&segment.summary());
    let mut records = segment.records()?;
    while let Some((offset, header)) = records.next_header()? {
        let body = records.body(offset, &header)?;
        items_of(&header, body, segment.header.salt).for_each(|(_, _, bytes)| sampler.add(bytes));
    }
    Ok(sampler.train())
}

/// Some of the items of a segment, to train a dictionary on.
pub(super) struct Sampler {
    dictionary_bytes: usize,
    /// One item in this many is taken.
    stride: usize,
    n_items: usize,
    samples: Vec<u8>,
    sizes: Vec<usize>,
}

impl Sampler {
    pub(super) fn new(summary: &Summary) -> Self {
        let bytes = summary.used_bytes as usize;
        Self {
            dictionary_bytes: (bytes / DICTIONARY_SHARE).min(DICTIONARY_BYTES_MAX),
            stride: (bytes / SAMPLE_BYTES_MAX).max(1),
            n_items: 0,
            samples: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// Takes the next item, or passes it over.
    pub(super) fn add(&mut self, item: &[u8]) {
        self.n_items += 1;
        if self.n_items.is_multiple_of(self.stride) && self.samples.len() < SAMPLE_BYTES_MAX {
            let sample = &item[..item.len().min(SAMPLE_ITEM_BYTES_MAX)];
            self.samples.extend_from_slice(sample);
            self.sizes.push(sample.len());
        }
    }

    /// The dictionary; empty if the items are too few or have nothing in common.
    pub(super) fn train(self) -> Vec<u8> {
        match self.dictionary_bytes < DICTIONARY_BYTES_MIN {
            true => Vec::new(),
            false => {
                let (samples, sizes) = (&self.samples, &self.sizes);
                zstd::dict::from_continuous(samples, sizes, self.dictionary_bytes)
                    .unwrap_or_default()
            }
        }
    }
}
