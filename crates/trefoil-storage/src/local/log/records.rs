//! A walk over the records of a plain segment, in order.

use trefoil_core::Result;

use crate::local::reading::file::LogFile;
use crate::local::reading::walk::FileWalk;

use super::layout::{ALIGNMENT, RECORD_HEADER_BYTES, RecordHeader};

/// How much is looked at together when zeros are looked for.
const BLANK_PIECE_BYTES: usize = 256 * 1024;

/// The walk.
#[derive(Debug)]
pub(crate) struct SegmentWalk<'a> {
    file: FileWalk<'a>,
    salt: u64,
}

impl<'a> SegmentWalk<'a> {
    /// A walk over the file of the segment with this salt.
    pub(crate) fn new(file: &'a LogFile, salt: u64) -> Result<Self> {
        let file = file.walk()?;
        Ok(Self { file, salt })
    }

    /// The same walk that reads nothing from `end` on.
    pub(crate) fn until(mut self, end: u64) -> Self {
        self.file = self.file.until(end);
        self
    }

    /// Where it ends.
    pub(crate) fn end(&self) -> usize {
        self.file.end() as usize
    }

    pub(crate) fn salt(&self) -> u64 {
        self.salt
    }

    /// The header at `offset`, if there is a valid one whose record ends before `end`.
    pub(crate) fn header(&mut self, offset: usize, end: usize) -> Result<Option<RecordHeader>> {
        let (start, salt) = (offset as u64, self.salt);
        let bytes = self.file.bytes(start..start + RECORD_HEADER_BYTES as u64)?;
        Ok(bytes.and_then(|bytes| RecordHeader::decode(bytes, offset, salt, end)))
    }

    /// The body of the record at `offset`, if its checksum is right.
    pub(crate) fn body(&mut self, offset: usize, header: &RecordHeader) -> Result<Option<&[u8]>> {
        let start = (offset + RECORD_HEADER_BYTES) as u64;
        let (end, salt) = (header.end(offset) as u64, self.salt);
        let body = self.file.bytes(start..end)?;
        Ok(body.filter(|body| header.has_body(body, offset, salt)))
    }

    /// The record at `offset`, if there is a valid one.
    pub(crate) fn record(&mut self, offset: usize) -> Result<Option<RecordHeader>> {
        let end = self.end();
        let Some(header) = self.header(offset, end)? else {
            return Ok(None);
        };
        Ok(self.body(offset, &header)?.map(|_| header))
    }

    /// The first valid header at any aligned offset in `start..end` that `is_wanted`.
    pub(crate) fn find(
        &mut self,
        start: usize,
        end: usize,
        is_wanted: impl Fn(&RecordHeader) -> bool,
    ) -> Result<Option<(usize, RecordHeader)>> {
        let segment_end = self.end();
        for offset in (start.next_multiple_of(ALIGNMENT)..end).step_by(ALIGNMENT) {
            if let Some(header) = self.header(offset, segment_end)?
                && is_wanted(&header)
            {
                return Ok(Some((offset, header)));
            }
        }
        Ok(None)
    }

    /// The offset behind the last byte in `start..end` that is not zero; `start` if there is none.
    pub(crate) fn end_of_data(&mut self, start: usize, end: usize) -> Result<usize> {
        let mut end = end.min(self.end());
        while end > start {
            let piece = end.saturating_sub(BLANK_PIECE_BYTES).max(start);
            let bytes = self.file.bytes(piece as u64..end as u64)?;
            match end_of_data(bytes.unwrap_or_default()) {
                0 => end = piece,
                length => return Ok(piece + length),
            }
        }
        Ok(start)
    }
}

/// The length of `bytes` without the zeros at its end.
fn end_of_data(bytes: &[u8]) -> usize {
    // Block by block: comparing with zeros is much faster than looking at single bytes.
    const BLOCK: usize = 4096;
    let zeros = [0; BLOCK];
    let mut end = bytes.len();
    while end > 0 {
        let start = (end - 1) / BLOCK * BLOCK;
        let block = &bytes[start..end];
        if block != &zeros[..block.len()] {
            let last = block.iter().rposition(|&byte| byte != 0);
            return start + last.map_or(0, |last| last + 1);
        }
        end = start;
    }
    0
}
