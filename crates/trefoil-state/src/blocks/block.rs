//! One block in bytes: elements, or the blocks below it.
//!
//! ```text
//! 0, then for each element: length, bytes
//! level, then for each block below: number, how many elements are in it, length of its bound, bound
//! ```
//!
//! The level is a byte, lengths are varints. What a block knows of one below it has 6 bytes for each of
//! the two numbers, the low ones first: these are read more often than all else. No element of a block is before its bound, and
//! no element of the block before it is at or after it. The bound of a first block does not count.
//! Blocks whose elements have no order have empty bounds.

use std::ops::Range;

use trefoil_core::{put_bytes, take_bytes};

use crate::error::Result;
use crate::keyspace::damaged;

/// How many bytes a block of elements has at most, unless it has but one.
pub(super) const LEAF_BYTES_MAX: usize = 2048;

/// How many bytes a block that has blocks below it has at most.
const INNER_BYTES_MAX: usize = 2048;

/// The bytes of the number of a block, and of the number of elements in it.
const NUMBER_BYTES: usize = 6;

/// Where the entries of a block begin.
pub(super) const HEAD_BYTES: usize = 1;

/// The level of a block of elements.
pub(super) const LEAF: u8 = 0;

/// An element, and where it lies in its block.
#[derive(Debug)]
pub(super) struct BlockElement<'b> {
    pub(super) place: Range<usize>,
    pub(super) bytes: &'b [u8],
}

/// What a block knows of one that is below it, and where that lies.
#[derive(Debug)]
pub(super) struct BlockBelow<'b> {
    pub(super) place: Range<usize>,
    pub(super) number: u64,
    /// How many elements are in it.
    pub(super) len: u64,
    pub(super) bound: &'b [u8],
}

/// Where a block has grown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grown {
    Begin,
    Middle,
    End,
}

impl Grown {
    /// Returns where a block of this many bytes grows if this part of it does.
    pub(super) fn at(place: &Range<usize>, n_bytes: usize) -> Self {
        match (place.start, place.end) {
            (_, end) if end == n_bytes => Self::End,
            (HEAD_BYTES, _) => Self::Begin,
            _ => Self::Middle,
        }
    }
}

/// Returns the level of a block.
pub(super) fn level(block: &[u8]) -> Result<u8> {
    Ok(*block.first().ok_or_else(unreadable)?)
}

/// Returns whether a block is too large and can be cut.
pub(super) fn is_too_large(block: &[u8]) -> Result<bool> {
    let level = level(block)?;
    if block.len() <= bytes_max(level) {
        return Ok(false);
    }
    Ok(match level {
        LEAF => elements(block).nth(1).is_some(),
        _ => below(block).nth(1).is_some(),
    })
}

/// Returns how many bytes a block of this level has at most.
pub(super) fn bytes_max(level: u8) -> usize {
    match level {
        LEAF => LEAF_BYTES_MAX,
        _ => INNER_BYTES_MAX,
    }
}

/// Returns the elements of a block.
pub(super) fn elements(block: &[u8]) -> impl Iterator<Item = Result<BlockElement<'_>>> {
    entries(block, take_bytes).map(|entry| {
        let (place, bytes) = entry?;
        Ok(BlockElement { place, bytes })
    })
}

/// Returns the blocks below a block.
pub(super) fn below(block: &[u8]) -> impl Iterator<Item = Result<BlockBelow<'_>>> {
    entries(block, take_below).map(|entry| {
        let (place, (number, len, bound)) = entry?;
        Ok(BlockBelow {
            place,
            number,
            len,
            bound,
        })
    })
}

#[inline]
fn take_below<'b>(rest: &mut &'b [u8]) -> Option<(u64, u64, &'b [u8])> {
    let numbers: &[u8; 2 * NUMBER_BYTES] = rest.first_chunk()?;
    *rest = &rest[2 * NUMBER_BYTES..];
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *numbers;
    let number = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
    let len = u64::from_le_bytes([g, h, i, j, k, l, 0, 0]);
    Some((number, len, take_bytes(rest)?))
}

/// Returns the block below, if there is but one.
pub(super) fn only_below(block: &[u8]) -> Result<Option<u64>> {
    if level(block)? == LEAF {
        return Ok(None);
    }
    let mut below = below(block);
    match (below.next(), below.next()) {
        (Some(first), None) => Ok(Some(first?.number)),
        _ => Ok(None),
    }
}

/// Appends what a block knows of one that is below it.
pub(super) fn put_below(out: &mut Vec<u8>, number: u64, len: u64, bound: &[u8]) {
    out.extend_from_slice(&number.to_le_bytes()[..NUMBER_BYTES]);
    out.extend_from_slice(&len.to_le_bytes()[..NUMBER_BYTES]);
    put_bytes(out, bound);
}

/// Reads entry after entry, and where each lies.
fn entries<'b, T>(
    block: &'b [u8],
    read: fn(&mut &'b [u8]) -> Option<T>,
) -> impl Iterator<Item = Result<(Range<usize>, T)>> {
    let mut rest = block.get(HEAD_BYTES..).unwrap_or_default();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let begin = block.len() - rest.len();
        let Some(entry) = read(&mut rest) else {
            rest = &[];
            return Some(Err(unreadable()));
        };
        Some(Ok((begin..block.len() - rest.len(), entry)))
    })
}

/// Returns how many elements are in a block and in those below it.
pub(super) fn count(block: &[u8]) -> Result<u64> {
    match level(block)? {
        LEAF => elements(block).try_fold(0, |n, element| element.map(|_| n + 1)),
        _ => below(block).try_fold(0, |n, below| Ok(n + below?.len)),
    }
}

/// Cuts a block that is too large into smaller ones. One that grew at an end is cut there, so that
/// blocks are full if elements come one after the other.
pub(super) fn split(block: &[u8], grown: Grown) -> Result<Vec<Vec<u8>>> {
    let level = level(block)?;
    let places: Vec<Range<usize>> = match level {
        LEAF => elements(block)
            .map(|element| Ok(element?.place))
            .collect::<Result<_>>()?,
        _ => below(block)
            .map(|below| Ok(below?.place))
            .collect::<Result<_>>()?,
    };
    let max = bytes_max(level) - HEAD_BYTES;
    let n_bytes = block.len() - HEAD_BYTES;
    let even = n_bytes.div_ceil(n_bytes.div_ceil(max).max(1));
    let mut cuts = Vec::new();
    match grown {
        Grown::Begin => {
            let mut end = block.len();
            for place in places.iter().rev() {
                if end - place.start > max && place.end < end {
                    cuts.push(place.end);
                    end = place.end;
                }
            }
            cuts.reverse();
        }
        Grown::Middle | Grown::End => {
            let target = if grown == Grown::End { max } else { even };
            let mut begin = HEAD_BYTES;
            for place in &places {
                let is_full = place.start - begin >= target || place.end - begin > max;
                if is_full && place.start > begin {
                    cuts.push(place.start);
                    begin = place.start;
                }
            }
        }
    }
    cuts.push(block.len());
    let mut begin = HEAD_BYTES;
    let part = |end: usize| {
        let entries = &block[begin..end];
        begin = end;
        [&[level], entries].concat()
    };
    Ok(cuts.into_iter().map(part).collect())
}

/// Returns the bound between two blocks that follow each other, as short as it can be.
pub(super) fn bound_between(one: &[u8], next: &[u8]) -> Result<Vec<u8>> {
    if level(next)? != LEAF {
        let first = below(next).next().ok_or_else(unreadable)??;
        return Ok(first.bound.to_vec());
    }
    let last = elements(one).last().ok_or_else(unreadable)??;
    let first = elements(next).next().ok_or_else(unreadable)??;
    let same = last.bytes.iter().zip(first.bytes);
    let n_same = same.take_while(|(one, next)| one == next).count();
    let bound = first.bytes.get(..=n_same).unwrap_or(first.bytes);
    Ok(bound.to_vec())
}

/// Returns what says that a block is not what it should be.
pub(super) fn unreadable() -> crate::error::CommandError {
    damaged("a block of elements").into()
}
