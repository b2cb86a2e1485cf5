//! The little of protobuf that is needed to read and write messages without building them.

use trefoil_core::{put_bytes, put_varint, take_bytes, take_varint};

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
    /// A kind of value that no message of ours has.
    Other,
}

/// The fields of a message, one by one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn take(&mut self) -> Option<(u64, Value<'a>)> {
        let key = take_varint(&mut self.rest)?;
        let value = match key & 7 {
            VARINT => Value::Number(take_varint(&mut self.rest)?),
            BYTES => Value::Bytes(take_bytes(&mut self.rest)?),
            FIXED_64 => self.skip(8)?,
            FIXED_32 => self.skip(4)?,
            _ => return None,
        };
        Some((key >> 3, value))
    }

    fn skip(&mut self, bytes: usize) -> Option<Value<'a>> {
        self.rest = self.rest.get(bytes..)?;
        Some(Value::Other)
    }
}

/// Bytes that are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

impl<'a> Iterator for Fields<'a> {
    /// The number of the field and its value.
    type Item = Result<(u64, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.take().ok_or(Malformed);
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// How many bytes a number takes.
pub(super) fn number_length(number: u64) -> usize {
    let bits = 64 - (number | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// How many bytes a field of so many bytes takes; for field numbers below 16.
pub(super) fn bytes_field_length(bytes: usize) -> usize {
    1 + number_length(bytes as u64) + bytes
}

/// Appends a number; for field numbers below 16.
pub(super) fn put_number_field(out: &mut Vec<u8>, field: u8, number: u64) {
    out.push(field << 3 | VARINT as u8);
    put_varint(out, number);
}

/// Appends text, bytes or a message; for field numbers below 16.
pub(super) fn put_bytes_field(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | BYTES as u8);
    put_bytes(out, bytes);
}

/// Appends what comes before a message of this length; for field numbers below 16.
pub(super) fn put_message_head(out: &mut Vec<u8>, field: u8, length: usize) {
    out.push(field << 3 | BYTES as u8);
    put_varint(out, length as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_what_is_written() {
        for shift in 0..64 {
            for number in [1 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                put_varint(&mut out, number);
                assert_eq!(number_length(number), out.len(), "{number}");
            }
        }
        for length in [0, 1, 127, 128, 20_000] {
            let mut out = Vec::new();
            put_bytes_field(&mut out, 2, &vec![0; length]);
            assert_eq!(bytes_field_length(length), out.len());
        }
    }

    #[test]
    fn fields_come_back_and_unknown_kinds_are_skipped() {
        let mut out = Vec::new();
        put_number_field(&mut out, 1, 300);
        out.extend([3 << 3 | 1, 0, 0, 0, 0, 0, 0, 0, 0, 4 << 3 | 5, 0, 0, 0, 0]);
        put_bytes_field(&mut out, 2, b"ab");
        let fields: Result<Vec<_>, _> = Fields::of(&out).collect();
        let expected = [
            (1, Value::Number(300)),
            (3, Value::Other),
            (4, Value::Other),
            (2, Value::Bytes(b"ab")),
        ];
        assert_eq!(fields.unwrap(), expected);
    }

    #[test]
    fn what_is_cut_short_is_malformed() {
        let mut out = Vec::new();
        put_bytes_field(&mut out, 2, b"abc");
        for end in 1..out.len() {
            let fields: Result<Vec<_>, _> = Fields::of(&out[..end]).collect();
            assert_eq!(fields, Err(Malformed), "{end}");
        }
        let group = [1 << 3 | 3];
        assert_eq!(Fields::of(&group).next(), Some(Err(Malformed)));
    }
}
