//! Unsigned LEB128 integers and length-prefixed bytes, the two shapes most stored values are made
//! of. Reading takes from the front of a slice and answers `None` when the bytes do not fit.

/// Appends `value` in groups of seven bits, least significant first.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes one integer from the front of `input`.
#[inline]
pub fn take_varint(input: &mut &[u8]) -> Option<u64> {
    // Most integers are lengths, which take one byte.
    match input.split_first() {
        Some((&byte, rest)) if byte < 0x80 => {
            *input = rest;
            Some(u64::from(byte))
        }
        _ => take_long_varint(input),
    }
}

/// The last byte of an integer is the first one without its highest bit.
const CONTINUES: u64 = 0x8080_8080_8080_8080;

fn take_long_varint(input: &mut &[u8]) -> Option<u64> {
    let word = u64::from_le_bytes(input.first_chunk().copied().unwrap_or([0xff; 8]));
    let ends = !word & CONTINUES;
    if ends == 0 {
        return take_any_varint(input);
    }
    // Eight bytes at once: what comes after the last byte is cut off, then the groups of seven bits
    // are moved together, two by two.
    let mut bits = word & !CONTINUES & (ends ^ (ends - 1));
    bits = (bits & 0x7f00_7f00_7f00_7f00) >> 1 | (bits & 0x007f_007f_007f_007f);
    bits = (bits & 0x3fff_0000_3fff_0000) >> 2 | (bits & 0x0000_3fff_0000_3fff);
    bits = (bits & 0x0fff_ffff_0000_0000) >> 4 | (bits & 0x0000_0000_0fff_ffff);
    *input = &input[ends.trailing_zeros() as usize / 8 + 1..];
    Some(bits)
}

/// Takes an integer that is near the end of its input, or very large.
fn take_any_varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (index, &byte) in input.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if index == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte < 0x80 {
            *input = input.get(index + 1..)?;
            return Some(value);
        }
    }
    None
}

/// Appends the length of `bytes` and then `bytes`.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes what [`put_bytes`] wrote from the front of `input`.
#[inline]
pub fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_varint(input)?).ok()?;
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                put_varint(&mut out, value);
                assert_eq!(take_varint(&mut out.as_slice()), Some(value));
                // With something behind it, whatever that is.
                for rest in [[0; 9], [0xff; 9]] {
                    let followed = [&out[..], &rest].concat();
                    let mut input = followed.as_slice();
                    assert_eq!(take_varint(&mut input), Some(value));
                    assert_eq!(input, rest);
                }
            }
        }
    }

    #[test]
    fn cut_or_overlong_integers_are_refused() {
        assert_eq!(take_varint(&mut &[0x80u8][..]), None);
        assert_eq!(take_varint(&mut &[0xffu8; 11][..]), None);
        assert_eq!(take_bytes(&mut &[5u8, 1, 2][..]), None);
    }
}
