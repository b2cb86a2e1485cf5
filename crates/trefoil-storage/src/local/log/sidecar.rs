//! The sidecar of a full plain segment: what it holds and where its items are. It can always be
//! rebuilt by reading the segment.

use std::path::Path;

use trefoil_core::Result;

use crate::local::mapping::Mapping;

use super::index::{IndexPlace, OFFSET_BYTES, RANGE_BYTES, SegmentIndex};
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
    mapping: Mapping,
    n_ranges: usize,
    table_check: u64,
    salt: u64,
}

/// The bytes of the sidecar of a segment.
pub(crate) fn encode(header: SegmentHeader, summary: &Summary, index: &SegmentIndex) -> Vec<u8> {
    let (table, n_ranges) = index.encode();
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
    out
}

/// Opens the sidecar of the segment with this header.
pub(crate) fn open(path: &Path, segment: SegmentHeader) -> Result<Sidecar> {
    let mapping = Mapping::open(path)?;
    let bytes: &[u8] = &mapping;
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
    if bytes.len() != HEADER_BYTES + table {
        return Err(wrong("the sidecar's length is not what its header says"));
    }
    let table_check = u64_at(bytes, HEADER_BYTES - 16);
    Ok(Sidecar {
        summary,
        mapping,
        n_ranges,
        table_check,
        salt: segment.salt,
    })
}

impl Sidecar {
    /// The stored ranges and offsets, if they are valid.
    pub(crate) fn table(&self) -> Option<&[u8]> {
        let table = &self.mapping[HEADER_BYTES..];
        (checksum(table, self.salt) == self.table_check).then_some(table)
    }

    /// The index, if it is valid.
    pub(crate) fn into_index(self) -> Option<SegmentIndex> {
        self.table()?;
        let place = IndexPlace {
            start: HEADER_BYTES,
            n_ranges: self.n_ranges,
            n_items: self.summary.n_items as usize,
        };
        Some(SegmentIndex::Mapped(self.mapping, place))
    }
}
