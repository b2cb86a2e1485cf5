//! Reading a file in order: a large piece at a time, the next one asked for before it is needed.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use trefoil_core::Result;

use super::file::LogFile;

/// How much is read at first, and how much at most: pieces double, because who looks for one record does
/// not want many.
const PIECE_BYTES_MIN: u64 = 32 * 1024;
const PIECE_BYTES_MAX: u64 = 512 * 1024;

/// A place in a file that moves on.
#[derive(Debug)]
pub(in crate::local) struct FileWalk<'a> {
    log_file: &'a LogFile,
    /// Open until the walk ends, even if the file is removed meanwhile.
    file: Arc<File>,
    end: u64,
    /// Where the piece begins.
    start: u64,
    piece: Vec<u8>,
    /// How long the next piece is.
    piece_bytes: u64,
}

impl<'a> FileWalk<'a> {
    pub(super) fn new(log_file: &'a LogFile, end: u64) -> Result<Self> {
        Ok(Self {
            file: log_file.opened()?,
            log_file,
            end,
            start: 0,
            piece: Vec::new(),
            piece_bytes: PIECE_BYTES_MIN,
        })
    }

    /// Returns the same walk that reads nothing from `end` on.
    pub(in crate::local) fn until(mut self, end: u64) -> Self {
        self.end = end.min(self.end);
        self
    }

    /// Returns where it ends.
    pub(in crate::local) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the bytes in a range; `None` if it reaches beyond the end.
    pub(in crate::local) fn bytes(&mut self, range: Range<u64>) -> Result<Option<&[u8]>> {
        if range.start > range.end || range.end > self.end {
            return Ok(None);
        }
        let piece_end = self.start + self.piece.len() as u64;
        if range.start < self.start || range.end > piece_end {
            self.read(&range)?;
        }
        let at = (range.start - self.start) as usize;
        Ok(self.piece.get(at..at + (range.end - range.start) as usize))
    }

    /// Reads the piece that begins with a range.
    fn read(&mut self, range: &Range<u64>) -> Result<()> {
        let end = range.end.max(range.start + self.piece_bytes).min(self.end);
        if self.start > 0 || !self.piece.is_empty() {
            // It goes on, so that it will need what follows.
            let next = end..(end + PIECE_BYTES_MAX).min(self.end);
            self.log_file.expect(&self.file, next);
        }
        self.piece_bytes = (2 * self.piece_bytes).min(PIECE_BYTES_MAX);
        let length = (end - range.start) as usize;
        self.piece.clear();
        // A record that was large leaves no large piece behind.
        self.piece.shrink_to(length);
        self.piece.resize(length, 0);
        self.start = range.start;
        let read = self
            .log_file
            .read_exact(&self.file, &mut self.piece, range.start);
        if read.is_err() {
            self.piece.clear();
        }
        read
    }
}
