//! The lines of a body that arrives in pieces.

use bytes::{Bytes, BytesMut};

use crate::body::BodyReader;
use crate::error::{Failure, Result};
use crate::limits::IMPORT_LINE_BYTES_MAX;

/// Splits a body into lines. Blank ones are counted but not returned.
pub(super) struct BodyLines {
    reader: BodyReader,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    number: u64,
    is_at_end: bool,
}

impl BodyLines {
    pub(super) fn new(reader: BodyReader) -> Self {
        Self {
            reader,
            buffer: BytesMut::new(),
            searched: 0,
            number: 0,
            is_at_end: false,
        }
    }

    /// The number of the line that was returned last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line that is not blank; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let Some(line) = self.next_of_any_kind().await? else {
                return Ok(None);
            };
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// Throws away what is left of the body.
    pub(super) async fn discard(&mut self) {
        if !self.is_at_end {
            self.reader.discard().await;
        }
    }

    async fn next_of_any_kind(&mut self) -> Result<Option<Bytes>> {
        loop {
            let found = self.buffer[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n');
            let length = found.map_or(self.buffer.len(), |index| self.searched + index);
            if length > IMPORT_LINE_BYTES_MAX {
                self.number += 1;
                let number = self.number;
                return Err(Failure::invalid(format!(
                    "line {number} is too long, the limit is {IMPORT_LINE_BYTES_MAX} bytes"
                )));
            }
            if found.is_some() {
                self.searched = 0;
                let mut line = self.buffer.split_to(length + 1).freeze();
                line.truncate(length);
                return Ok(Some(line));
            }
            self.searched = length;
            if self.is_at_end {
                self.searched = 0;
                let rest = self.buffer.split().freeze();
                return Ok((!rest.is_empty()).then_some(rest));
            }
            match self.reader.chunk().await? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => self.is_at_end = true,
            }
        }
    }
}
