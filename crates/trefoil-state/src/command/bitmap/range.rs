//! Which bits of a string a command is about.

use std::ops::Range;

use bytes::Bytes;

use crate::command::arguments::is_word;
use crate::error::{Result, SYNTAX};

/// Returns whether a range is one of bits rather than bytes, as `BYTE` or `BIT` says.
pub(super) fn is_bits(word: Option<&Bytes>) -> Result<bool> {
    match word {
        None => Ok(false),
        Some(word) if is_word(word, "BYTE") => Ok(false),
        Some(word) if is_word(word, "BIT") => Ok(true),
        Some(_) => Err(SYNTAX),
    }
}

/// Returns the bits between two indexes of bits or bytes, of a string of `len` bytes. Indexes count
/// from the end if they are negative. `None` if there are no bits between them.
pub(super) fn between(start: i64, end: i64, is_bits: bool, len: u64) -> Option<Range<u64>> {
    let unit = if is_bits { 1 } else { 8 };
    let total = (len * 8 / unit) as i64;
    let from_end = |index: i64| match index < 0 {
        true => (total + index).max(0),
        false => index,
    };
    let start = from_end(start);
    let end = from_end(end).min(total - 1);
    (start <= end).then(|| start as u64 * unit..(end as u64 + 1) * unit)
}

/// Returns the bytes that have these bits.
pub(super) fn bytes_of(bits: &Range<u64>) -> Range<u64> {
    bits.start / 8..bits.end.div_ceil(8)
}

/// Returns which bits of a byte are among these.
pub(super) fn mask(bits: &Range<u64>, byte: u64) -> u8 {
    let before = bits.start.saturating_sub(byte * 8).min(8) as u32;
    let after = ((byte + 1) * 8).saturating_sub(bits.end).min(8) as u32;
    let keep = |mask: Option<u8>| mask.unwrap_or_default();
    keep(u8::MAX.checked_shr(before)) & keep(u8::MAX.checked_shl(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_count_from_either_end() {
        for (start, end, is_bits, len, expected) in [
            (0, -1, false, 3, Some(0..24)),
            (1, 1, false, 3, Some(8..16)),
            (-2, 100, false, 3, Some(8..24)),
            (-100, -100, false, 3, Some(0..8)),
            (2, 1, false, 3, None),
            (3, 3, false, 3, None),
            (0, 0, false, 0, None),
            (5, -2, true, 3, Some(5..23)),
            (i64::MIN, i64::MAX, true, 3, Some(0..24)),
        ] {
            assert_eq!(between(start, end, is_bits, len), expected);
        }
    }

    #[test]
    fn a_mask_has_the_bits_of_the_range() {
        let masks = |bits: Range<u64>| [0, 1, 2].map(|byte| mask(&bits, byte));
        assert_eq!(masks(3..21), [0x1f, 0xff, 0xf8]);
        assert_eq!(masks(8..16), [0, 0xff, 0]);
        assert_eq!(masks(10..12), [0, 0x30, 0]);
    }
}
