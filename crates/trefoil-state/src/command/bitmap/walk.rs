//! Counting and finding bits. Only the chunks that are there are read.

use std::ops::Range;

use bytes::Bytes;

use super::range::{between, bytes_of, is_bits, mask};
use crate::command::arguments::integer;
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;
use crate::string::StoredString;

/// `BITCOUNT key [start end [BYTE | BIT]]`
pub(super) fn bitcount(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let Some(text) = keyspace.string(&arguments[1])? else {
        return Ok(Reply::Integer(0));
    };
    let bits = match &arguments[2..] {
        [] => Some(0..text.len() * 8),
        [start, end, unit @ ..] if unit.len() <= 1 => {
            let (start, end) = (integer(start)?, integer(end)?);
            if start < 0 && end < 0 && start > end {
                return Ok(Reply::Integer(0));
            }
            between(start, end, is_bits(unit.first())?, text.len())
        }
        _ => return Err(SYNTAX),
    };
    let n = bits.map(|bits| count(keyspace, &text, &bits)).transpose()?;
    Ok(Reply::Integer(n.unwrap_or_default() as i64))
}

fn count(keyspace: &Keyspace<'_>, text: &StoredString, bits: &Range<u64>) -> Result<u64> {
    let range = bytes_of(bits);
    let mut n = 0;
    for chunk in keyspace.chunks(text, range.clone()) {
        let (at, bytes) = chunk?;
        let (words, rest) = bytes.as_chunks::<8>();
        let in_words = words
            .iter()
            .map(|word| u64::from_ne_bytes(*word).count_ones());
        let in_rest = rest.iter().map(|byte| byte.count_ones());
        n += u64::from(in_words.sum::<u32>() + in_rest.sum::<u32>());
        // The first and the last byte may have bits that are not among those to count.
        let last = range.end - 1;
        let ends = [Some(range.start), (last > range.start).then_some(last)];
        for end in ends.into_iter().flatten() {
            let byte = end
                .checked_sub(at)
                .and_then(|index| bytes.get(index as usize));
            let extra = byte.map_or(0, |byte| byte & !mask(bits, end));
            n -= u64::from(extra.count_ones());
        }
    }
    Ok(n)
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`
pub(super) fn bitpos(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let bit = match integer(&arguments[2])? {
        0 => false,
        1 => true,
        _ => {
            return Err(CommandError::refused(
                "ERR The bit argument must be 1 or 0.",
            ));
        }
    };
    let Some(text) = keyspace.string(&arguments[1])? else {
        return Ok(Reply::Integer(if bit { -1 } else { 0 }));
    };
    let (start, end, unit) = match &arguments[3..] {
        [] => (0, None, None),
        [start] => (integer(start)?, None, None),
        [start, end] => (integer(start)?, Some(end), None),
        [start, end, unit] => (integer(start)?, Some(end), Some(unit)),
        _ => return Err(SYNTAX),
    };
    let is_bits = is_bits(unit)?;
    let last = end.map(|end| integer(end)).transpose()?;
    let Some(bits) = between(start, last.unwrap_or(-1), is_bits, text.len()) else {
        return Ok(Reply::Integer(-1));
    };
    let found = match find(keyspace, &text, &bits, bit)? {
        // Behind the end, where no other end was given, there are zeros.
        None if !bit && end.is_none() => Some(bits.end),
        found => found,
    };
    Ok(Reply::Integer(found.map_or(-1, |at| at as i64)))
}

/// Returns where the first bit of this value is.
fn find(
    keyspace: &Keyspace<'_>,
    text: &StoredString,
    bits: &Range<u64>,
    bit: bool,
) -> Result<Option<u64>> {
    let range = bytes_of(bits);
    let mut reached = range.start;
    for chunk in keyspace.chunks(text, range.clone()) {
        let (at, bytes) = chunk?;
        if !bit && at > reached {
            break;
        }
        if let Some(found) = find_in(&bytes, at, bits, bit) {
            return Ok(Some(found));
        }
        reached = at + bytes.len() as u64;
    }
    let has_gap = !bit && reached < range.end;
    Ok(has_gap.then(|| bits.start.max(reached * 8)))
}

/// Returns where the first bit of this value is in bytes that lie at `at`.
fn find_in(bytes: &[u8], at: u64, bits: &Range<u64>, bit: bool) -> Option<u64> {
    let other = if bit { 0 } else { u8::MAX };
    let mut from = 0;
    loop {
        let ahead = bytes[from..].iter().position(|byte| *byte != other)?;
        let index = from + ahead;
        let byte = at + index as u64;
        let candidates = (bytes[index] ^ other) & mask(bits, byte);
        if candidates != 0 {
            return Some(byte * 8 + u64::from(candidates.leading_zeros()));
        }
        from = index + 1;
    }
}
