//! Changes of entries as the log keeps them: small, and enough to rebuild every entry.

use bytes::Bytes;
use trefoil_core::{put_bytes, put_varint, take_bytes, take_varint};

use super::edit::{follow, steps_between};

/// The entry gets a value.
const PUT: u64 = 0;
/// The value of the entry is edited: how long it is before, and the steps.
const EDIT: u64 = 1;
/// The entry is gone.
const DELETE: u64 = 2;
/// The entry gets the edited value of another one: that one's key, how long its value is, and the
/// steps.
const EDIT_OF: u64 = 3;

/// What an older version wrote for an entry that had a value before and gets another.
const PUT_AGAIN: u64 = 1;
/// What it wrote for a part of a value that is overwritten: its place and the new bytes. The value
/// grows if they reach beyond its end.
const PATCH: u64 = 3;

/// A change begins with the length of its key, behind which these bits say what it is.
const KIND_BITS: u32 = 2;

/// Encoded changes, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) bytes: Vec<u8>,
}

/// How changes are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeCoding {
    /// With patches, as older versions wrote them.
    Patches,
    /// With edits.
    Edits,
}

/// One change, read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryChange<'a> {
    Put(&'a [u8]),
    Delete,
    /// The entry whose value is edited, how long that is, and the steps.
    Edit(&'a [u8], usize, &'a [u8]),
    /// The place and the new bytes.
    Patch(usize, &'a [u8]),
}

impl Changes {
    /// Adds the change of an entry from one value to another.
    pub(crate) fn put(&mut self, key: &[u8], before: Option<&Bytes>, after: Option<&Bytes>) {
        let Some(after) = after else {
            if before.is_some() {
                self.begin(DELETE, key);
            }
            return;
        };
        let before = before.map_or(&[][..], Bytes::as_ref);
        match steps_between(before, after) {
            Some(steps) => {
                self.begin(EDIT, key);
                self.put_steps(before, &steps);
            }
            None => self.put_value(key, after),
        }
    }

    /// Adds the change of an entry that gets a value much like that of another one.
    pub(crate) fn put_like(&mut self, key: &[u8], (like, value): (&[u8], &[u8]), after: &[u8]) {
        match steps_between(value, after) {
            Some(steps) if steps.len() + like.len() < after.len() => {
                self.begin(EDIT_OF, key);
                put_bytes(&mut self.bytes, like);
                self.put_steps(value, &steps);
            }
            _ => self.put_value(key, after),
        }
    }

    fn put_value(&mut self, key: &[u8], value: &[u8]) {
        self.begin(PUT, key);
        put_bytes(&mut self.bytes, value);
    }

    fn put_steps(&mut self, before: &[u8], steps: &[u8]) {
        put_varint(&mut self.bytes, before.len() as u64);
        put_bytes(&mut self.bytes, steps);
    }

    fn begin(&mut self, kind: u64, key: &[u8]) {
        put_varint(&mut self.bytes, (key.len() as u64) << KIND_BITS | kind);
        self.bytes.extend_from_slice(key);
    }

    /// Reads changes back; `None` if the bytes are none.
    pub(crate) fn read<'a>(
        coding: ChangeCoding,
        mut bytes: &'a [u8],
        visit: &mut dyn FnMut(&'a [u8], EntryChange<'a>) -> Option<()>,
    ) -> Option<()> {
        use ChangeCoding::{Edits, Patches};
        while !bytes.is_empty() {
            let head = take_varint(&mut bytes)?;
            let key = bytes.split_off(..usize::try_from(head >> KIND_BITS).ok()?)?;
            let change = match (coding, head & ((1 << KIND_BITS) - 1)) {
                (_, PUT) | (Patches, PUT_AGAIN) => EntryChange::Put(take_bytes(&mut bytes)?),
                (_, DELETE) => EntryChange::Delete,
                (Edits, kind @ (EDIT | EDIT_OF)) => {
                    let edited = match kind {
                        EDIT => key,
                        _ => take_bytes(&mut bytes)?,
                    };
                    let length = usize::try_from(take_varint(&mut bytes)?).ok()?;
                    EntryChange::Edit(edited, length, take_bytes(&mut bytes)?)
                }
                (Patches, PATCH) => {
                    let place = usize::try_from(take_varint(&mut bytes)?).ok()?;
                    EntryChange::Patch(place, take_bytes(&mut bytes)?)
                }
                _ => return None,
            };
            visit(key, change)?;
        }
        Some(())
    }
}

impl EntryChange<'_> {
    /// Returns the value that the change of an entry leads to; `None` if it does not fit those that
    /// entries have before.
    pub(crate) fn apply(
        &self,
        key: &[u8],
        before: impl FnOnce(&[u8]) -> Option<Bytes>,
    ) -> Option<Option<Bytes>> {
        let after = match *self {
            Self::Put(value) => Bytes::copy_from_slice(value),
            Self::Delete => return Some(None),
            Self::Edit(edited, length, steps) => {
                let before = before(edited).unwrap_or_default();
                if before.len() != length {
                    return None;
                }
                follow(&before, steps)?.into()
            }
            Self::Patch(place, part) => {
                let mut value = Vec::from(before(key)?);
                let end = place.checked_add(part.len())?;
                if place > value.len() {
                    return None;
                }
                value.resize(value.len().max(end), 0);
                value.get_mut(place..end)?.copy_from_slice(part);
                value.into()
            }
        };
        Some(Some(after))
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
        Changes::read(ChangeCoding::Edits, &changes.bytes, &mut |key, change| {
            assert_eq!(key, b"key");
            assert_eq!(change.apply(key, |_| before.clone()), Some(after.clone()));
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
        assert!(round_trip(Some(&long), Some(shorter)) < 16);
        assert!(round_trip(Some(shorter), Some(&long)) < 120);
    }

    #[test]
    fn a_value_is_made_of_that_of_another_entry() {
        let value = [&[0][..], &[7; 4096]].concat();
        for (after, most) in [(&value[1..], 24), (&value[2000..], 24), (&[8; 50], 60)] {
            let mut changes = Changes::default();
            changes.put_like(b"key", (b"other", &value), after);
            assert!(changes.bytes.len() < most, "{}", changes.bytes.len());
            Changes::read(ChangeCoding::Edits, &changes.bytes, &mut |key, change| {
                let before = |name: &[u8]| {
                    assert_eq!(name, b"other");
                    Some(Bytes::copy_from_slice(&value))
                };
                let applied = change.apply(key, before)?;
                assert_eq!(applied.as_deref(), Some(after));
                Some(())
            })
            .unwrap();
        }
    }

    /// Applies what an older version wrote.
    fn patched(bytes: &[u8], before: &'static [u8]) -> Option<Option<Bytes>> {
        let mut after = None;
        Changes::read(ChangeCoding::Patches, bytes, &mut |key, change| {
            assert_eq!(key, b"k");
            after = change.apply(key, |_| Some(Bytes::from_static(before)));
            Some(())
        })?;
        after
    }

    #[test]
    fn what_an_older_version_wrote_is_read() {
        let value = |bytes: &'static [u8]| Some(Some(Bytes::from_static(bytes)));
        assert_eq!(patched(b"\x04k\x02xy", b"0123"), value(b"xy"));
        assert_eq!(patched(b"\x05k\x02xy", b"0123"), value(b"xy"));
        assert_eq!(patched(b"\x06k", b"0123"), Some(None));
        assert_eq!(patched(b"\x07k\x01\x02xy", b"0123"), value(b"0xy3"));
        assert_eq!(patched(b"\x07k\x04\x01x", b"0123"), value(b"0123x"));
        assert_eq!(
            patched(b"\x07k\x05\x01x", b"0123"),
            None,
            "beyond the value"
        );
    }

    #[test]
    fn an_edit_of_another_value_does_not_fit() {
        let before = Bytes::from(vec![7; 100]);
        let after = Bytes::from([&before[..], b"x"].concat());
        let mut changes = Changes::default();
        changes.put(b"key", Some(&before), Some(&after));
        let apply = |other: Option<Bytes>| {
            Changes::read(ChangeCoding::Edits, &changes.bytes, &mut |key, change| {
                change.apply(key, |_| other.clone()).map(drop)
            })
        };
        assert_eq!(apply(Some(before)), Some(()));
        assert_eq!(apply(Some(after)), None);
        assert_eq!(apply(None), None);
    }

    #[test]
    fn cut_changes_are_none() {
        let mut changes = Changes::default();
        changes.put(b"key", None, Some(&Bytes::from_static(b"value")));
        for end in 1..changes.bytes.len() {
            let cut = &changes.bytes[..end];
            let read = Changes::read(ChangeCoding::Edits, cut, &mut |_, _| Some(()));
            assert_eq!(read, None, "{end}");
        }
    }
}
