//! The bytes of a plain segment: its header, and the headers of records and items.
//!
//! Every checksum is seeded with the segment's salt and with where the bytes belong (the offset of
//! a record, the position of an item). So no data of a user can pass for a record, and bytes that
//! are read from the wrong place are noticed. `docs/format.md` has the tables.

use std::path::Path;

use trefoil_core::{Damage, Error, Result};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{Label, Record};

/// The version of every file format here. Another one is refused.
pub(crate) const FORMAT_VERSION: u32 = 2;

/// The length of a segment's header.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 64;
/// The length of a record's header.
pub(crate) const RECORD_HEADER_BYTES: usize = 64;
/// The length of an item's header.
pub(crate) const ITEM_HEADER_BYTES: usize = 21;
/// Records begin at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;

const SEGMENT_MAGIC: [u8; 8] = *b"TREFSEG\0";
const RECORD_MAGIC: [u8; 4] = *b"TRec";
/// Another record of the same group follows.
const GROUP_CONTINUES: u32 = 1;

/// The bytes of an array at `offset`, which the caller knows to be inside.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[offset..offset + N]);
    array
}

/// The number at `offset`.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, offset))
}

/// The number at `offset`.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, offset))
}

/// A 64-bit checksum.
pub(crate) fn checksum(bytes: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// A 32-bit checksum, for what is many and small.
pub(crate) fn short_checksum(bytes: &[u8], seed: u64) -> u32 {
    checksum(bytes, seed) as u32
}

/// The error for bytes that are not what was written.
pub(crate) fn damaged(file: &Path, offset: u64, position: u64, what: impl Into<String>) -> Error {
    Error::Damaged(Box::new(Damage {
        file: file.to_owned(),
        offset,
        position,
        what: what.into(),
        help: "run `trefoil verify <dir>` to see all damage, then restore from a backup".to_owned(),
    }))
}

/// Refuses a format that this program does not read.
pub(crate) fn check_version(file: &Path, version: u32) -> Result<()> {
    if version == FORMAT_VERSION {
        return Ok(());
    }
    let file = file.display();
    Err(Error::invalid(format!(
        "{file} has format version {version}, this program reads version {FORMAT_VERSION}"
    )))
}

/// What stands at the beginning of a segment. It is written and synced before the segment is used
/// and never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Which segment this is, from 1.
    pub(crate) number: u64,
    /// A random number that seeds all checksums of the segment.
    pub(crate) salt: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut out = [0; SEGMENT_HEADER_BYTES];
        out[..8].copy_from_slice(&SEGMENT_MAGIC);
        out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&self.number.to_le_bytes());
        out[24..32].copy_from_slice(&self.salt.to_le_bytes());
        let check = checksum(&out[..56], 0);
        out[56..].copy_from_slice(&check.to_le_bytes());
        out
    }

    pub(crate) fn decode(file: &Path, bytes: &[u8]) -> Result<Self> {
        let is_header = bytes.len() >= SEGMENT_HEADER_BYTES && bytes[..8] == SEGMENT_MAGIC;
        if !is_header || u64_at(bytes, 56) != checksum(&bytes[..56], 0) {
            return Err(damaged(file, 0, 0, "the segment's header is not valid"));
        }
        check_version(file, u32_at(bytes, 8))?;
        Ok(Self {
            number: u64_at(bytes, 16),
            salt: u64_at(bytes, 24),
        })
    }
}

/// What stands before a record's items, commits and changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    /// Whether another record of the same group follows.
    pub(crate) continues: bool,
    /// The bytes of items, commits, changes and padding.
    pub(crate) body_bytes: u32,
    /// The bytes of the changes alone.
    pub(crate) change_bytes: u32,
    pub(crate) n_commits: u32,
    pub(crate) n_items: u32,
    pub(crate) first_commit: u64,
    pub(crate) first_position: u64,
    /// The bytes of the commits alone.
    pub(crate) commit_bytes: u32,
    /// The offset of the group's first record.
    pub(crate) group_start: u64,
    pub(crate) body_check: u64,
}

impl RecordHeader {
    fn encode(&self, seed: u64) -> [u8; RECORD_HEADER_BYTES] {
        let mut out = [0; RECORD_HEADER_BYTES];
        let flags = if self.continues { GROUP_CONTINUES } else { 0 };
        let group_start = (self.group_start / ALIGNMENT as u64) as u32;
        out[..4].copy_from_slice(&RECORD_MAGIC);
        out[4..8].copy_from_slice(&flags.to_le_bytes());
        out[8..12].copy_from_slice(&self.body_bytes.to_le_bytes());
        out[12..16].copy_from_slice(&self.change_bytes.to_le_bytes());
        out[16..20].copy_from_slice(&self.n_commits.to_le_bytes());
        out[20..24].copy_from_slice(&self.n_items.to_le_bytes());
        out[24..32].copy_from_slice(&self.first_commit.to_le_bytes());
        out[32..40].copy_from_slice(&self.first_position.to_le_bytes());
        out[40..44].copy_from_slice(&self.commit_bytes.to_le_bytes());
        out[44..48].copy_from_slice(&group_start.to_le_bytes());
        out[48..56].copy_from_slice(&self.body_check.to_le_bytes());
        let check = checksum(&out[..56], seed);
        out[56..].copy_from_slice(&check.to_le_bytes());
        out
    }

    /// The header in these bytes, which are at `offset` of a segment, if it is valid and its record
    /// ends before `segment_end`.
    pub(crate) fn decode(
        bytes: &[u8],
        offset: usize,
        salt: u64,
        segment_end: usize,
    ) -> Option<Self> {
        if bytes.len() != RECORD_HEADER_BYTES || bytes[..4] != RECORD_MAGIC {
            return None;
        }
        if u64_at(bytes, 56) != checksum(&bytes[..56], salt.wrapping_add(offset as u64)) {
            return None;
        }
        let header = Self {
            continues: u32_at(bytes, 4) & GROUP_CONTINUES != 0,
            body_bytes: u32_at(bytes, 8),
            change_bytes: u32_at(bytes, 12),
            n_commits: u32_at(bytes, 16),
            n_items: u32_at(bytes, 20),
            first_commit: u64_at(bytes, 24),
            first_position: u64_at(bytes, 32),
            commit_bytes: u32_at(bytes, 40),
            group_start: u64::from(u32_at(bytes, 44)) * ALIGNMENT as u64,
            body_check: u64_at(bytes, 48),
        };
        (header.end(offset) <= segment_end).then_some(header)
    }

    /// Whether this is the body of the record at `offset`.
    pub(crate) fn has_body(&self, body: &[u8], offset: usize, salt: u64) -> bool {
        checksum(body, salt.wrapping_add(offset as u64)) == self.body_check
    }

    /// The offset after the record at `offset`.
    pub(crate) fn end(&self, offset: usize) -> usize {
        offset + RECORD_HEADER_BYTES + self.body_bytes as usize
    }

    /// The bytes of what stands behind the items, without padding.
    pub(crate) fn end_bytes(&self) -> usize {
        self.commit_bytes as usize + self.change_bytes as usize
    }

    pub(crate) fn last_commit(&self) -> u64 {
        self.first_commit + u64::from(self.n_commits) - 1
    }

    pub(crate) fn end_position(&self) -> u64 {
        self.first_position + u64::from(self.n_items)
    }
}

/// What stands before an item's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemHeader {
    pub(crate) length: u32,
    pub(crate) label: Label,
    /// The checksum of the item's bytes.
    pub(crate) check: u32,
}

impl ItemHeader {
    pub(crate) fn encode(&self, seed: u64) -> [u8; ITEM_HEADER_BYTES] {
        let mut out = [0; ITEM_HEADER_BYTES];
        out[..4].copy_from_slice(&self.length.to_le_bytes());
        out[4] = self.label.flags;
        out[5..13].copy_from_slice(&self.label.word.to_le_bytes());
        out[13..17].copy_from_slice(&self.check.to_le_bytes());
        let check = short_checksum(&out[..17], seed);
        out[17..].copy_from_slice(&check.to_le_bytes());
        out
    }

    /// The header at `offset`, if its checksum is right.
    pub(crate) fn at(bytes: &[u8], offset: usize, seed: u64) -> Option<Self> {
        let bytes = bytes.get(offset..offset.checked_add(ITEM_HEADER_BYTES)?)?;
        if u32_at(bytes, 17) != short_checksum(&bytes[..17], seed) {
            return None;
        }
        Some(Self {
            length: u32_at(bytes, 0),
            label: Label {
                flags: bytes[4],
                word: u64_at(bytes, 5),
            },
            check: u32_at(bytes, 13),
        })
    }
}

/// How many bytes a record takes in a segment.
pub(crate) fn encoded_bytes(record: &Record) -> usize {
    let headers = record.items.len() * ITEM_HEADER_BYTES;
    let body = record.items.n_bytes() + headers + record.commits.len() + record.changes.len();
    RECORD_HEADER_BYTES + body.next_multiple_of(ALIGNMENT)
}

/// Where a record is being put.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    /// The salt of the segment.
    pub(crate) salt: u64,
    /// The offset of the group's first record, which is also that of the buffer's first byte.
    pub(crate) group_start: u64,
    /// Whether another record of the same group follows.
    pub(crate) continues: bool,
}

/// Appends a record to the buffer of its group, and the offsets of its items to `offsets`.
pub(crate) fn encode_record(
    record: &Record,
    placement: Placement,
    out: &mut Vec<u8>,
    offsets: &mut Vec<u64>,
) {
    let Placement {
        salt,
        group_start,
        continues,
    } = placement;
    let start = out.len();
    out.resize(start + RECORD_HEADER_BYTES, 0);
    for (position, label, item) in record.items() {
        let seed = salt.wrapping_add(position);
        offsets.push(group_start + out.len() as u64);
        let check = short_checksum(item, seed);
        let header = ItemHeader {
            length: item.len() as u32,
            label,
            check,
        };
        out.extend_from_slice(&header.encode(seed));
        out.extend_from_slice(item);
    }
    out.extend_from_slice(&record.commits);
    out.extend_from_slice(&record.changes);
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    let seed = salt.wrapping_add(group_start + start as u64);
    let body = &out[start + RECORD_HEADER_BYTES..];
    let header = RecordHeader {
        continues,
        body_bytes: body.len() as u32,
        change_bytes: record.changes.len() as u32,
        n_commits: record.n_commits,
        n_items: record.items.len() as u32,
        first_commit: record.first_commit,
        first_position: record.first_position,
        commit_bytes: record.commits.len() as u32,
        group_start,
        body_check: checksum(body, seed),
    };
    out[start..start + RECORD_HEADER_BYTES].copy_from_slice(&header.encode(seed));
}

/// Walks the items of a record's body: the offset of each in the body, its header and its bytes.
/// Ends early where the body does not hold what its record's header says.
pub(crate) fn items_of<'a>(
    header: &RecordHeader,
    body: &'a [u8],
    salt: u64,
) -> impl Iterator<Item = (usize, ItemHeader, &'a [u8])> {
    let mut offset = 0;
    (header.first_position..header.end_position()).map_while(move |position| {
        let item = ItemHeader::at(body, offset, salt.wrapping_add(position))?;
        let start = offset + ITEM_HEADER_BYTES;
        let bytes = body.get(start..start + item.length as usize)?;
        let at = offset;
        offset = start + bytes.len();
        Some((at, item, bytes))
    })
}

/// The commits and the changes in a record's body whose items end at `end`, if it has them.
pub(crate) fn parts_of<'a>(
    header: &RecordHeader,
    body: &'a [u8],
    end: usize,
) -> Option<(&'a [u8], &'a [u8])> {
    let (commits, rest) = body
        .get(end..)?
        .split_at_checked(header.commit_bytes as usize)?;
    Some((commits, rest.get(..header.change_bytes as usize)?))
}

/// Rebuilds a record from its header and body; `None` if they do not agree.
pub(crate) fn decode_record(
    header: &RecordHeader,
    body: &[u8],
    salt: u64,
    record: &mut Record,
) -> Option<()> {
    record.first_commit = header.first_commit;
    record.n_commits = header.n_commits;
    record.first_position = header.first_position;
    record.items.clear();
    record.commits.clear();
    record.changes.clear();
    record.changes_dropped = false;
    let mut end = 0;
    for (offset, item, bytes) in items_of(header, body, salt) {
        record.items.push(item.label, bytes);
        end = offset + ITEM_HEADER_BYTES + bytes.len();
    }
    let (commits, changes) = parts_of(header, body, end)?;
    record.commits.extend_from_slice(commits);
    record.changes.extend_from_slice(changes);
    (record.items.len() == header.n_items as usize).then_some(())
}
