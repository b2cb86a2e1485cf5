//! The records of a compressed segment, without their items: blocks of varints, commits and changes,
//! each block compressed as a whole. They are only read in order.
//!
//! Records of which nothing is left but the numbers of their commits are written as one, so that a
//! million changes of a counter take a few bytes once they are dropped.

use trefoil_core::{Result, put_bytes, put_varint, take_bytes, take_varint};

use crate::Record;

use super::codec::{ZstdEncoder, decompress};
use super::compressed::CompressedSegment;
use super::layout::{checksum, u32_at, u64_at};

const BLOCK_HEADER_BYTES: usize = 48;
/// A block is closed when it holds this much.
const BLOCK_BYTES: usize = 256 * 1024;
/// Instead of the length of changes, plus one: they were dropped.
const DROPPED: u64 = 0;

/// What stands before a block.
#[derive(Debug, Clone, Copy)]
struct BlockHeader {
    plain_bytes: u32,
    stored_bytes: u32,
    n_records: u32,
    n_items: u32,
    first_commit: u64,
    last_commit: u64,
    first_position: u64,
}

impl BlockHeader {
    fn encode(&self, stored: &[u8], seed: u64) -> [u8; BLOCK_HEADER_BYTES] {
        let mut out = [0; BLOCK_HEADER_BYTES];
        out[..4].copy_from_slice(&self.plain_bytes.to_le_bytes());
        out[4..8].copy_from_slice(&self.stored_bytes.to_le_bytes());
        out[8..12].copy_from_slice(&self.n_records.to_le_bytes());
        out[12..16].copy_from_slice(&self.n_items.to_le_bytes());
        out[16..24].copy_from_slice(&self.first_commit.to_le_bytes());
        out[24..32].copy_from_slice(&self.last_commit.to_le_bytes());
        out[32..40].copy_from_slice(&self.first_position.to_le_bytes());
        let check = block_check(&out[..40], stored, seed);
        out[40..].copy_from_slice(&check.to_le_bytes());
        out
    }

    /// How many bytes follow the header in these bytes.
    fn stored_bytes(head: &[u8]) -> u64 {
        u32_at(head, 4).into()
    }

    /// The header and the stored content of the block in these bytes, if they are valid.
    fn take(bytes: &[u8], seed: u64) -> Option<(Self, &[u8])> {
        let (head, stored) = bytes.split_at_checked(BLOCK_HEADER_BYTES)?;
        let header = Self {
            plain_bytes: u32_at(head, 0),
            stored_bytes: u32_at(head, 4),
            n_records: u32_at(head, 8),
            n_items: u32_at(head, 12),
            first_commit: u64_at(head, 16),
            last_commit: u64_at(head, 24),
            first_position: u64_at(head, 32),
        };
        (block_check(&head[..40], stored, seed) == u64_at(head, 40)).then_some((header, stored))
    }
}

fn block_check(head: &[u8], stored: &[u8], seed: u64) -> u64 {
    checksum(stored, checksum(head, seed))
}

/// Writes blocks.
pub(crate) struct BlockWriter<'a> {
    encoder: ZstdEncoder<'a>,
    salt: u64,
    out: Vec<u8>,
    block: Vec<u8>,
    open: Option<BlockHeader>,
    next_position: u64,
    /// The last record, which may absorb the next one, without its items.
    last: Option<(Record, u32)>,
    n_records: u32,
}

impl BlockWriter<'_> {
    pub(crate) fn new(level: i32, salt: u64) -> Result<Self> {
        Ok(Self {
            encoder: ZstdEncoder::new(level, None)?,
            salt,
            out: Vec::new(),
            block: Vec::new(),
            open: None,
            next_position: 0,
            last: None,
            n_records: 0,
        })
    }

    /// Adds a record of `n_items` items, which it comes without.
    pub(crate) fn push(&mut self, record: Record, n_items: u32) -> Result<()> {
        if let Some((last, 0)) = &mut self.last
            && n_items == 0
            && last.commits.len() < BLOCK_BYTES
            && last.absorb(&record)
        {
            return Ok(());
        }
        match self.last.replace((record, n_items)) {
            Some((record, n_items)) => self.write(&record, n_items),
            None => Ok(()),
        }
    }

    fn write(&mut self, record: &Record, n_items: u32) -> Result<()> {
        let block = self.open.get_or_insert_with(|| {
            self.next_position = record.first_position;
            BlockHeader {
                plain_bytes: 0,
                stored_bytes: 0,
                n_records: 0,
                n_items: 0,
                first_commit: record.first_commit,
                last_commit: 0,
                first_position: record.first_position,
            }
        });
        self.n_records += 1;
        block.n_records += 1;
        block.n_items += n_items;
        block.last_commit = record.last_commit();
        put_varint(&mut self.block, u64::from(record.n_commits));
        put_varint(&mut self.block, u64::from(n_items));
        put_varint(&mut self.block, record.first_position - self.next_position);
        put_bytes(&mut self.block, &record.commits);
        if record.changes_dropped {
            put_varint(&mut self.block, DROPPED);
        } else {
            put_varint(&mut self.block, record.changes.len() as u64 + 1);
            self.block.extend_from_slice(&record.changes);
        }
        self.next_position = record.first_position + u64::from(n_items);
        if self.block.len() >= BLOCK_BYTES {
            self.close()
        } else {
            Ok(())
        }
    }

    fn close(&mut self) -> Result<()> {
        let Some(mut header) = self.open.take() else {
            return Ok(());
        };
        let stored = self.encoder.compress(&self.block)?.unwrap_or(&self.block);
        header.plain_bytes = self.block.len() as u32;
        header.stored_bytes = stored.len() as u32;
        let seed = self.salt.wrapping_add(self.out.len() as u64);
        self.out.extend_from_slice(&header.encode(stored, seed));
        self.out.extend_from_slice(stored);
        self.block.clear();
        Ok(())
    }

    /// All blocks, and how many records they hold.
    pub(crate) fn finish(mut self) -> Result<(Vec<u8>, u32)> {
        if let Some((record, n_items)) = self.last.take() {
            self.write(&record, n_items)?;
        }
        self.close()?;
        Ok((self.out, self.n_records))
    }
}

/// A record without its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordPlace<'a> {
    pub(crate) first_commit: u64,
    pub(crate) n_commits: u32,
    pub(crate) first_position: u64,
    /// The ordinal of the first item.
    pub(crate) ordinal: usize,
    pub(crate) n_items: usize,
    pub(crate) commits: &'a [u8],
    /// The changes; `None` if they were dropped.
    pub(crate) changes: Option<&'a [u8]>,
}

impl RecordPlace<'_> {
    /// Makes `record` this one, without items.
    pub(crate) fn fill(&self, record: &mut Record) {
        record.first_commit = self.first_commit;
        record.n_commits = self.n_commits;
        record.first_position = self.first_position;
        record.items.clear();
        record.commits.clear();
        record.commits.extend_from_slice(self.commits);
        record.changes.clear();
        record
            .changes
            .extend_from_slice(self.changes.unwrap_or_default());
        record.changes_dropped = self.changes.is_none();
    }
}

/// Gets each record's place.
type VisitPlace<'a> = &'a mut dyn FnMut(RecordPlace<'_>) -> Result<()>;

impl CompressedSegment {
    /// Hands every record with a commit after `after_commit` to `visit`.
    pub(crate) fn replay(
        &self,
        after_commit: u64,
        visit: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        let mut record = Record::default();
        let mut items = self.items()?;
        self.walk(after_commit, &mut |place| {
            place.fill(&mut record);
            for at in 0..place.n_items {
                let position = place.first_position + at as u64;
                match items.item(place.ordinal + at, position)? {
                    Some(item) => record.items.push(item.label, &item.bytes),
                    None => record.items.push_dropped(),
                }
            }
            visit(&record)
        })
    }

    /// Hands the place of every record with a commit after `after_commit` to `visit`; items are not
    /// read.
    pub(crate) fn walk(&self, after_commit: u64, visit: VisitPlace<'_>) -> Result<()> {
        let start = self.header.blocks_start() as u64;
        let mut walk = self.file.walk()?.until(self.header.index_start() as u64);
        let (mut at, mut ordinal) = (start, 0);
        let mut position = self.header.summary.first_position;
        while at < walk.end() {
            let known = position;
            let wrong = || self.damage(at as usize, known, "a block of records is not valid");
            let head = walk.bytes(at..at + BLOCK_HEADER_BYTES as u64)?;
            let stored_bytes = BlockHeader::stored_bytes(head.ok_or_else(wrong)?);
            let end = at + BLOCK_HEADER_BYTES as u64 + stored_bytes;
            let bytes = walk.bytes(at..end)?.ok_or_else(wrong)?;
            let seed = self.header.salt.wrapping_add(at - start);
            let (block, stored) = BlockHeader::take(bytes, seed).ok_or_else(wrong)?;
            position = block.first_position;
            if block.last_commit > after_commit {
                let plain;
                let content = if block.stored_bytes < block.plain_bytes {
                    plain =
                        decompress(stored, block.plain_bytes as usize, None).ok_or_else(wrong)?;
                    &plain
                } else {
                    stored
                };
                walk_block(&block, content, ordinal, after_commit, visit)?.ok_or_else(wrong)?;
            }
            ordinal += block.n_items as usize;
            at = end;
        }
        Ok(())
    }
}

/// Walks one block; `None` if it does not hold what its header says.
fn walk_block(
    block: &BlockHeader,
    mut content: &[u8],
    mut ordinal: usize,
    after_commit: u64,
    visit: VisitPlace<'_>,
) -> Result<Option<()>> {
    let (mut first_commit, mut first_position) = (block.first_commit, block.first_position);
    for _ in 0..block.n_records {
        let start = (first_commit, first_position, ordinal);
        let Some(place) = take_record(&mut content, start) else {
            return Ok(None);
        };
        first_commit += u64::from(place.n_commits);
        first_position = place.first_position + place.n_items as u64;
        ordinal += place.n_items;
        if first_commit - 1 > after_commit {
            visit(place)?;
        }
    }
    Ok(Some(()))
}

/// The record at the beginning of `content`; the one before it ended at this commit, position and
/// ordinal.
fn take_record<'a>(
    content: &mut &'a [u8],
    (first_commit, position, ordinal): (u64, u64, usize),
) -> Option<RecordPlace<'a>> {
    let n_commits = u32::try_from(take_varint(content)?).ok()?;
    let n_items = usize::try_from(take_varint(content)?).ok()?;
    let first_position = position.checked_add(take_varint(content)?)?;
    let commits = take_bytes(content)?;
    let changes = match take_varint(content)? {
        DROPPED => None,
        length => {
            let length = usize::try_from(length - 1).ok()?;
            let (changes, rest) = content.split_at_checked(length)?;
            *content = rest;
            Some(changes)
        }
    };
    Some(RecordPlace {
        first_commit,
        n_commits,
        first_position,
        ordinal,
        n_items,
        commits,
        changes,
    })
}
