//! Changes of entries as the log keeps them: small, and enough to rebuild every entry.

use bytes::Bytes;
use trefoil_core::{put_bytes, put_varint, take_bytes, take_varint};

/// The entry is new.
const INSERT: u64 = 0;
/// The entry gets another value.
const REPLACE: u64 = 1;
/// The entry is gone.
const DELETE: u64 = 2;
/// A part of the entry's value is overwritten: its place and the new bytes. The value grows if they
/// reach beyond its end.
const PATCH: u64 = 3;

/// A value of which only a part changes is kept as that part if this saves this many bytes.
const PATCH_SAVES_MIN: usize = 16;

/// Encoded changes, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) bytes: Vec<u8>,
}

/// One change, read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryChange<'a> {
    Insert(&'a [u8]),
    Replace(&'a [u8]),
    Delete,
    Patch(usize, &'a [u8]),
}

impl Changes {
    /// Adds the change of an entry from one value to another.
    pub(crate) fn put(&mut self, key: &[u8], before: Option<&Bytes>, after: Option<&Bytes>) {
        let kind = match (before, after) {
            (None, None) => return,
            (Some(_), None) => DELETE,
            (None, Some(_)) => INSERT,
            (Some(before), Some(after)) => match patch(before, after) {
                Some((place, part)) => {
                    self.begin(PATCH, key);
                    put_varint(&mut self.bytes, place as u64);
                    put_bytes(&mut self.bytes, part);
                    return;
                }
                None => REPLACE,
            },
        };
        self.begin(kind, key);
        if let Some(after) = after {
            put_bytes(&mut self.bytes, after);
        }
    }

    fn begin(&mut self, kind: u64, key: &[u8]) {
        put_varint(&mut self.bytes, (key.len() as u64) << 2 | kind);
        self.bytes.extend_from_slice(key);
    }

    /// Reads changes back; `None` if the bytes are none.
    pub(crate) fn read<'a>(
        mut bytes: &'a [u8],
        visit: &mut dyn FnMut(&'a [u8], EntryChange<'a>) -> Option<()>,
    ) -> Option<()> {
        while !bytes.is_empty() {
            let head = take_varint(&mut bytes)?;
            let (key, rest) = bytes.split_at_checked(usize::try_from(head >> 2).ok()?)?;
            bytes = rest;
            let change = match head & 3 {
                INSERT => EntryChange::Insert(take_bytes(&mut bytes)?),
                REPLACE => EntryChange::Replace(take_bytes(&mut bytes)?),
                DELETE => EntryChange::Delete,
                _ => {
                    let place = usize::try_from(take_varint(&mut bytes)?).ok()?;
                    EntryChange::Patch(place, take_bytes(&mut bytes)?)
                }
            };
            visit(key, change)?;
        }
        Some(())
    }
}

/// Returns the part in which a value differs from the one before, which is not longer, if that is
/// worth telling apart.
fn patch<'a>(before: &[u8], after: &'a [u8]) -> Option<(usize, &'a [u8])> {
    if after.len() < before.len() || after.len() < PATCH_SAVES_MIN {
        return None;
    }
    let (same, grown) = after.split_at(before.len());
    let first = common_prefix(before, same);
    let part = match grown {
        [] if first == after.len() => return Some((0, &[])),
        [] => first..after.len() - common_suffix(before, same),
        _ => first..after.len(),
    };
    (part.len() + PATCH_SAVES_MIN <= after.len()).then(|| (part.start, &after[part]))
}

/// How many bytes are compared at a time: so many compare many times faster than one after the other.
const COMPARED_BYTES: usize = 64;

type ComparedBytes = [u8; COMPARED_BYTES];

/// Returns how many of the first pairs are the same.
fn n_equal<'b>(pairs: impl Iterator<Item = (&'b ComparedBytes, &'b ComparedBytes)>) -> usize {
    pairs.take_while(|(one, other)| one == other).count()
}

/// Returns how many bytes at the beginning of two values of one length are the same.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let (chunks, others) = (one.as_chunks(), other.as_chunks());
    let start = COMPARED_BYTES * n_equal(chunks.0.iter().zip(others.0));
    let rest = one[start..].iter().zip(&other[start..]);
    start + rest.take_while(|(one, other)| one == other).count()
}

/// Returns how many bytes at the end of two values of one length are the same.
fn common_suffix(one: &[u8], other: &[u8]) -> usize {
    let (chunks, others) = (one.as_rchunks(), other.as_rchunks());
    let pairs = chunks.1.iter().zip(others.1);
    let end = one.len() - COMPARED_BYTES * n_equal(pairs.rev());
    let rest = one[..end].iter().rev().zip(other[..end].iter().rev());
    one.len() - end + rest.take_while(|(one, other)| one == other).count()
}

impl EntryChange<'_> {
    /// Returns the value that the change leads to; `None` if it does not fit the one before.
    pub(crate) fn apply(&self, before: impl FnOnce() -> Option<Bytes>) -> Option<Option<Bytes>> {
        match *self {
            Self::Insert(value) | Self::Replace(value) => Some(Some(Bytes::copy_from_slice(value))),
            Self::Delete => Some(None),
            Self::Patch(place, part) => {
                let mut value = Vec::from(before()?);
                let end = place.checked_add(part.len())?;
                if place > value.len() {
                    return None;
                }
                value.resize(value.len().max(end), 0);
                value.get_mut(place..end)?.copy_from_slice(part);
                Some(Some(value.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(before: Option<&[u8]>, after: Option<&[u8]>) -> usize {
        let own = |value: &[u8]| Bytes::copy_from_slice(value);
        let (before, after) = (before.map(own), after.map(own));
        let mut changes = Changes::default();
        changes.put(b"key", before.as_ref(), after.as_ref());
        let mut n = 0;
        Changes::read(&changes.bytes, &mut |key, change| {
            assert_eq!(key, b"key");
            assert_eq!(change.apply(|| before.clone()), Some(after.clone()));
            n += 1;
            Some(())
        })
        .unwrap();
        assert_eq!(n, usize::from(before.is_some() || after.is_some()));
        changes.bytes.len()
    }

    #[test]
    fn a_change_leads_from_one_value_to_the_other() {
        let long = vec![7; 4096];
        let mut bit = long.clone();
        bit[2000] ^= 1;
        let (longer, shorter) = ([&bit[..], b"more"].concat(), &long[..4000]);
        let values = [None, Some(&b""[..]), Some(b"a"), Some(&long), Some(&bit)];
        let values = [&values[..], &[Some(&longer), Some(shorter)]].concat();
        let values = values.as_slice();
        for before in values {
            for after in values {
                round_trip(*before, *after);
            }
        }
        assert!(round_trip(Some(&long), Some(&bit)) < 16);
        assert!(round_trip(Some(&bit), Some(&longer)) < 20);
        assert!(round_trip(Some(shorter), Some(&long)) < 120);
    }

    #[test]
    fn values_are_compared_to_the_byte() {
        for length in [0, 1, 63, 64, 65, 200] {
            let one = vec![7; length];
            assert_eq!(common_prefix(&one, &one), length);
            assert_eq!(common_suffix(&one, &one), length);
            for at in 0..length {
                let mut other = one.clone();
                other[at] = 8;
                assert_eq!(common_prefix(&one, &other), at);
                assert_eq!(common_suffix(&one, &other), length - at - 1);
            }
        }
    }

    #[test]
    fn a_part_that_begins_beyond_the_value_does_not_fit() {
        let before = || Some(Bytes::from_static(b"0123"));
        assert_eq!(EntryChange::Patch(5, b"x").apply(before), None);
        let grown = Some(Some(Bytes::from_static(b"0123x")));
        assert_eq!(EntryChange::Patch(4, b"x").apply(before), grown);
    }

    #[test]
    fn cut_changes_are_none() {
        let mut changes = Changes::default();
        changes.put(b"key", None, Some(&Bytes::from_static(b"value")));
        for end in 1..changes.bytes.len() {
            let read = Changes::read(&changes.bytes[..end], &mut |_, _| Some(()));
            assert_eq!(read, None, "{end}");
        }
    }
}
