//! The sidecar of a full plain segment: what it holds and where its items are. It can always be
//! rebuilt by reading the segment.

use std::path::Path;
use std::sync::Arc;

use trefoil_core::Result;
use xxhash_rust::xxh3::Xxh3;

use crate::local::reading::FileAccess;
use crate::local::reading::file::LogFile;

use super::index::{OFFSET_BYTES, RANGE_BYTES, SegmentIndex, StoredIndex};
use super::layout::{
    FORMAT_VERSION, SegmentHeader, check_version, checksum, damaged, u32_at, u64_at,
};
use super::summary::{SUMMARY_BYTES, Summary};

const MAGIC: [u8; 8] = *b"TREFOFF\0";
const HEADER_BYTES: usize = 32 + SUMMARY_BYTES + 16;

/// A sidecar whose header is valid; whether its table is, shows when it is used.
#[derive(Debug)]
pub(crate) struct Sidecar {
    pub(crate) summary: Summary,
    file: Arc<LogFile>,
    n_ranges: usize,
    table_check: u64,
    salt: u64,
}

/// The bytes of the sidecar of a segment.
pub(crate) fn encode(
    header: SegmentHeader,
    summary: &Summary,
    index: &SegmentIndex,
) -> Result<Vec<u8>> {
    let (table, n_ranges) = index.encode()?;
    let mut out = Vec::with_capacity(HEADER_BYTES + table.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&n_ranges.to_le_bytes());
    out.extend_from_slice(&header.number.to_le_bytes());
    out.extend_from_slice(&header.salt.to_le_bytes());
    out.extend_from_slice(&summary.encode());
    out.extend_from_slice(&checksum(&table, header.salt).to_le_bytes());
    out.extend_from_slice(&checksum(&out, header.salt).to_le_bytes());
    out.extend_from_slice(&table);
    Ok(out)
}

/// Opens the sidecar of the segment with this header.
pub(crate) fn open(path: &Path, segment: SegmentHeader, access: &FileAccess) -> Result<Sidecar> {
    let file = LogFile::open(path, access)?;
    let bytes = file.read(0..file.length().min(HEADER_BYTES as u64))?;
    let bytes = bytes.as_slice();
    let wrong = |what| damaged(path, 0, 0, what);
    if bytes.len() < HEADER_BYTES || bytes[..8] != MAGIC {
        return Err(wrong("not a sidecar"));
    }
    check_version(path, u32_at(bytes, 8))?;
    let check = u64_at(bytes, HEADER_BYTES - 8);
    if check != checksum(&bytes[..HEADER_BYTES - 8], segment.salt) {
        return Err(wrong("the sidecar's header is not valid"));
    }
    if (u64_at(bytes, 16), u64_at(bytes, 24)) != (segment.number, segment.salt) {
        return Err(wrong("the sidecar belongs to another segment"));
    }
    let n_ranges = u32_at(bytes, 12) as usize;
    let summary = Summary::decode(&bytes[32..]);
    let table = n_ranges * RANGE_BYTES + summary.n_items as usize * OFFSET_BYTES;
    if file.length() != (HEADER_BYTES + table) as u64 {
        return Err(wrong("the sidecar's length is not what its header says"));
    }
    let table_check = u64_at(bytes, HEADER_BYTES - 16);
    Ok(Sidecar {
        summary,
        file: Arc::new(file),
        n_ranges,
        table_check,
        salt: segment.salt,
    })
}

impl Sidecar {
    /// The stored ranges and offsets, if they are valid.
    pub(crate) fn table(&self) -> Result<Option<Vec<u8>>> {
        let table = self.file.read(HEADER_BYTES as u64..self.file.length())?;
        Ok((checksum(&table, self.salt) == self.table_check).then_some(table))
    }

    /// The index, if it is valid.
    pub(crate) fn into_index(self) -> Result<Option<SegmentIndex>> {
        let n_items = self.summary.n_items as usize;
        let mut check = Xxh3::with_seed(self.salt);
        let lengths = (self.n_ranges, n_items, n_items);
        let index = StoredIndex::read(&self.file, HEADER_BYTES as u64, lengths, &mut check)?;
        Ok((check.digest() == self.table_check).then_some(SegmentIndex::Stored(index)))
    }
}
