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
pub fn take_varint(input: &mut &[u8]) -> Option<u64> {
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
                let mut input = out.as_slice();
                assert_eq!(take_varint(&mut input), Some(value));
                assert!(input.is_empty());
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
