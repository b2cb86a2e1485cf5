//! The mark: what the active segment held at a moment, so that opening the log reads it only from
//! there on.
//!
//! It is written now and then, and tells of all groups but the last one that was durable then. So
//! after a mark there is a whole group, which opening reads again: whatever holds for the last group
//! of a log holds with a mark as it does without. A mark that is missing, of another segment, not
//! valid, or not followed by a whole group is passed over, and all of the segment is read.

use std::path::Path;
use std::sync::Arc;

use trefoil_core::Result;

use crate::local::files;

use super::Log;
use super::index::{GrowingIndex, OFFSET_BYTES, RANGE_BYTES, WAYPOINT_BYTES};
use super::layout::{FORMAT_VERSION, SegmentHeader, checksum, u32_at, u64_at};
use super::names;
use super::scan::{ExpectedRecord, ScanStart};
use super::summary::{SUMMARY_BYTES, Summary};

const MAGIC: [u8; 8] = *b"TREFMRK\0";
const HEADER_BYTES: usize = 32 + SUMMARY_BYTES + 24;

/// The bytes of the mark that tells of the groups in `summary`, which are the first ones of `index`.
fn encode(header: SegmentHeader, summary: &Summary, index: &GrowingIndex) -> Vec<u8> {
    let (mut table, n_ranges) = index.encode_first(summary.n_items as usize);
    let waypoints = index.encode_waypoints(summary.used_bytes);
    table.extend_from_slice(&waypoints);
    let mut out = Vec::with_capacity(HEADER_BYTES + table.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&n_ranges.to_le_bytes());
    out.extend_from_slice(&header.number.to_le_bytes());
    out.extend_from_slice(&header.salt.to_le_bytes());
    out.extend_from_slice(&summary.encode());
    let n_waypoints = (waypoints.len() / WAYPOINT_BYTES) as u64;
    out.extend_from_slice(&n_waypoints.to_le_bytes());
    out.extend_from_slice(&checksum(&table, header.salt).to_le_bytes());
    out.extend_from_slice(&checksum(&out, header.salt).to_le_bytes());
    out.extend_from_slice(&table);
    out
}

/// Reads a mark of the segment with this header; `None` if it is of another one or not valid.
fn decode(bytes: &[u8], segment: SegmentHeader) -> Option<ScanStart> {
    let header = bytes.get(..HEADER_BYTES)?;
    let is_mark = header[..8] == MAGIC && u32_at(header, 8) == FORMAT_VERSION;
    let is_of = (u64_at(header, 16), u64_at(header, 24)) == (segment.number, segment.salt);
    let check = checksum(&header[..HEADER_BYTES - 8], segment.salt);
    if !is_mark || !is_of || u64_at(header, HEADER_BYTES - 8) != check {
        return None;
    }
    let summary = Summary::decode(&header[32..]);
    let table = &bytes[HEADER_BYTES..];
    let n_ranges = u32_at(header, 12) as usize;
    let n_waypoints = usize::try_from(u64_at(header, 96)).ok()?;
    let index_bytes = n_ranges * RANGE_BYTES + summary.n_items as usize * OFFSET_BYTES;
    let is_whole = n_waypoints.checked_mul(WAYPOINT_BYTES)? + index_bytes == table.len();
    if !is_whole || u64_at(header, 104) != checksum(table, segment.salt) {
        return None;
    }
    let (index, waypoints) = table.split_at(index_bytes);
    Some(ScanStart {
        index: GrowingIndex::decode(index, n_ranges, waypoints),
        expected: ExpectedRecord {
            commit: summary.last_commit + 1,
            position: summary.next_position,
        },
        summary,
    })
}

/// Reads the mark of the log in `dir`, if it has one of the segment with this header.
pub(super) fn find(dir: &Path, segment: SegmentHeader) -> Option<ScanStart> {
    decode(&std::fs::read(names::mark_path(dir)).ok()?, segment)
}

impl Log {
    /// Writes a mark. See [`Storage::mark`](crate::Storage::mark).
    pub(crate) fn mark(&self) -> Result<()> {
        let (active, summary) = {
            let writer = self.writer.lock();
            (Arc::clone(&writer.active), writer.before_last)
        };
        let Some(index) = active.growing_index().filter(|_| summary.n_records > 0) else {
            return Ok(());
        };
        let bytes = encode(active.header, &summary, index);
        files::replace(&*self.options.disk, &names::mark_path(&self.dir), &bytes)
    }
}
