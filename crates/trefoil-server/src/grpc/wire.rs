//! The little of protobuf that is needed to read and write messages without building them.

use prost::encoding::{
    WireType, decode_key, decode_varint, encode_key, encode_varint, encoded_len_varint,
};

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireValue<'a> {
    Number(u64),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
    /// A kind of value that no message of ours has.
    Other,
}

/// The fields of a message, one by one.
#[derive(Debug, Clone, Copy)]
pub(super) struct WireFields<'a> {
    rest: &'a [u8],
}

impl<'a> WireFields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn take(&mut self) -> Option<(u32, WireValue<'a>)> {
        let (number, wire_type) = decode_key(&mut self.rest).ok()?;
        let value = match wire_type {
            WireType::Varint => WireValue::Number(decode_varint(&mut self.rest).ok()?),
            WireType::LengthDelimited => {
                let length = decode_varint(&mut self.rest).ok()?;
                WireValue::Bytes(self.cut(usize::try_from(length).ok()?)?)
            }
            WireType::SixtyFourBit => self.cut(8).map(|_| WireValue::Other)?,
            WireType::ThirtyTwoBit => self.cut(4).map(|_| WireValue::Other)?,
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        Some((number, value))
    }

    fn cut(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }
}

/// Bytes that are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

impl<'a> Iterator for WireFields<'a> {
    /// The number of the field and its value.
    type Item = Result<(u32, WireValue<'a>), Malformed>;

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

/// Returns how many bytes a field with bytes takes; for field numbers below 16.
pub(super) fn bytes_field_length(bytes: usize) -> usize {
    1 + encoded_len_varint(bytes as u64) + bytes
}

/// Appends a number.
pub(super) fn put_number_field(out: &mut Vec<u8>, field: u32, number: u64) {
    encode_key(field, WireType::Varint, out);
    encode_varint(number, out);
}

/// Appends text, bytes or a message.
pub(super) fn put_bytes_field(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_message_head(out, field, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends what comes before a message of this length.
pub(super) fn put_message_head(out: &mut Vec<u8>, field: u32, length: usize) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint(length as u64, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_what_is_written() {
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
        let fields: Result<Vec<_>, _> = WireFields::of(&out).collect();
        let expected = [
            (1, WireValue::Number(300)),
            (3, WireValue::Other),
            (4, WireValue::Other),
            (2, WireValue::Bytes(b"ab")),
        ];
        assert_eq!(fields.unwrap(), expected);
    }

    #[test]
    fn what_is_cut_short_is_malformed() {
        let mut out = Vec::new();
        put_bytes_field(&mut out, 2, b"abc");
        for end in 1..out.len() {
            let fields: Result<Vec<_>, _> = WireFields::of(&out[..end]).collect();
            assert_eq!(fields, Err(Malformed), "{end}");
        }
        let group = [1 << 3 | 3];
        assert_eq!(WireFields::of(&group).next(), Some(Err(Malformed)));
    }
}
