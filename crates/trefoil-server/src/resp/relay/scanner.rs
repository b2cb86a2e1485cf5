//! Finds where a reply ends, in bytes that come in pieces, without holding it.

/// A reply of which the beginning has been seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyScanner {
    /// How many values are still to begin.
    values: u64,
    /// How many bytes of a string are still to come, with the end of its line.
    string_bytes: u64,
    /// What kind of value the line is of that has begun.
    marker: Option<u8>,
    number: u64,
    is_negative: bool,
}

/// Bytes that are no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoReply;

impl ReplyScanner {
    pub(super) fn new() -> Self {
        Self {
            values: 1,
            string_bytes: 0,
            marker: None,
            number: 0,
            is_negative: false,
        }
    }

    /// Returns whether the whole reply has been seen.
    pub(super) fn is_done(&self) -> bool {
        self.values == 0 && self.string_bytes == 0
    }

    /// Looks at more bytes. Returns how many of them belong to the reply.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<usize, NoReply> {
        let mut seen = 0;
        while seen < bytes.len() && !self.is_done() {
            let rest = &bytes[seen..];
            seen += match self.marker {
                _ if self.string_bytes > 0 => self.skip_string(rest.len()),
                None => self.begin_line(rest[0])?,
                Some(marker) => self.read_line(marker, rest)?,
            };
        }
        Ok(seen)
    }

    fn skip_string(&mut self, room: usize) -> usize {
        let skipped = self.string_bytes.min(room as u64);
        self.string_bytes -= skipped;
        skipped as usize
    }

    fn begin_line(&mut self, marker: u8) -> Result<usize, NoReply> {
        if !b"+-:,(#_$!=*~>%".contains(&marker) {
            return Err(NoReply);
        }
        self.marker = Some(marker);
        self.number = 0;
        self.is_negative = false;
        Ok(1)
    }

    fn read_line(&mut self, marker: u8, rest: &[u8]) -> Result<usize, NoReply> {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let line = &rest[..end.unwrap_or(rest.len())];
        if b"$!=*~>%".contains(&marker) {
            for byte in line {
                self.read_digit(*byte)?;
            }
        }
        let Some(end) = end else {
            return Ok(rest.len());
        };
        self.end_line(marker)?;
        Ok(end + 1)
    }

    fn read_digit(&mut self, byte: u8) -> Result<(), NoReply> {
        match byte {
            b'0'..=b'9' => {
                let number = self.number.checked_mul(10);
                let number = number.and_then(|number| number.checked_add(u64::from(byte - b'0')));
                self.number = number.ok_or(NoReply)?;
            }
            b'-' => self.is_negative = true,
            b'\r' => {}
            _ => return Err(NoReply),
        }
        Ok(())
    }

    fn end_line(&mut self, marker: u8) -> Result<(), NoReply> {
        self.marker = None;
        self.values -= 1;
        if self.is_negative {
            return Ok(());
        }
        let more = match marker {
            b'*' | b'~' | b'>' => Some(self.number),
            b'%' => self.number.checked_mul(2),
            b'$' | b'!' | b'=' => {
                self.string_bytes = self.number.checked_add(2).ok_or(NoReply)?;
                Some(0)
            }
            _ => Some(0),
        };
        let values = more.and_then(|more| self.values.checked_add(more));
        self.values = values.ok_or(NoReply)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at replies in pieces of this size; returns their lengths.
    fn lengths(bytes: &[u8], piece: usize) -> Result<Vec<usize>, NoReply> {
        let (mut lengths, mut length, mut scanner) = (Vec::new(), 0, ReplyScanner::new());
        for mut piece in bytes.chunks(piece) {
            while !piece.is_empty() {
                let seen = scanner.advance(piece)?;
                length += seen;
                piece = &piece[seen..];
                if scanner.is_done() {
                    lengths.push(std::mem::take(&mut length));
                    scanner = ReplyScanner::new();
                }
            }
        }
        assert_eq!(length, 0, "the last reply has no end");
        Ok(lengths)
    }

    #[test]
    fn replies_end_where_they_end_however_they_are_cut() {
        let replies: [&[u8]; 12] = [
            b"+OK\r\n",
            b"-ERR $5\r\n",
            b":-7\r\n",
            b"$-1\r\n",
            b"$0\r\n\r\n",
            b"$5\r\n*1\r\n$\r\n",
            b"*-1\r\n",
            b"*0\r\n",
            b"*2\r\n*1\r\n:1\r\n$1\r\nx\r\n",
            b"%2\r\n+a\r\n~1\r\n#t\r\n+b\r\n_\r\n",
            b">1\r\n=7\r\ntxt:abc\r\n",
            b",1.5\r\n",
        ];
        let all = replies.concat();
        let expected: Vec<usize> = replies.iter().map(|reply| reply.len()).collect();
        for piece in 1..=all.len() {
            assert_eq!(lengths(&all, piece).unwrap(), expected, "{piece}");
        }
    }

    #[test]
    fn what_is_no_reply_is_noticed() {
        for bytes in [
            &b"HTTP/1.1\r\n"[..],
            b"$x\r\n",
            b"*99999999999999999999\r\n",
        ] {
            assert_eq!(lengths(bytes, 4), Err(NoReply));
        }
    }
}
