//! The keys of a generation: its number, a letter that says what it is, and a number or a name.
//!
//! Capital letters are the small facts, which opening reads together. Numbers are big-endian, so that
//! keys sort by them.

use bytes::{BufMut as _, Bytes, BytesMut};

/// What a key begins with before what is its own: the generation, and a letter.
pub(super) const HEAD_BYTES: usize = 9;

/// What a key is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    /// Where the log ends.
    End = b'E',
    /// Something that does not count, by number.
    Garbage = b'G',
    /// Up to which commit records were merged.
    Merged = b'H',
    /// A map, by name.
    Map = b'M',
    /// Up to which position blocks of items were packed.
    Packed = b'P',
    /// The snapshot.
    Snapshot = b'S',
    /// How much room is taken.
    Usage = b'U',
    /// Changes of maps that are being made.
    Redo = b'W',
    /// That the generation is being erased.
    Erased = b'X',
    /// The changes of a record, by its last commit.
    Changes = b'd',
    /// A block of items, by its first position.
    Items = b'i',
    /// A part of a long value, by number and part.
    Rest = b'j',
    /// An entry of a map, by the map's number and the key.
    Entry = b'm',
    /// A record, by its first commit.
    Record = b'r',
    /// A block of the snapshot, by the snapshot's number and the block's.
    SnapshotBlock = b's',
    /// A part of changes of maps, by number and part.
    RedoPart = b'w',
}

/// Makes the keys of one generation.
#[derive(Debug, Clone, Copy)]
pub(super) struct GenerationKeys {
    generation: u64,
}

impl GenerationKeys {
    pub(super) fn of(generation: u64) -> Self {
        Self { generation }
    }

    /// Returns a key with nothing of its own.
    pub(super) fn only(&self, tag: Tag) -> Bytes {
        self.named(tag, &[])
    }

    /// Returns the key of something with a name.
    pub(super) fn named(&self, tag: Tag, name: &[u8]) -> Bytes {
        let mut key = BytesMut::with_capacity(HEAD_BYTES + name.len());
        key.put_u64(self.generation);
        key.put_u8(tag as u8);
        key.put_slice(name);
        key.freeze()
    }

    /// Returns the key of something with a number.
    pub(super) fn numbered(&self, tag: Tag, number: u64) -> Bytes {
        self.named(tag, &number.to_be_bytes())
    }

    /// Returns the key of a part of something with a number.
    pub(super) fn part(&self, tag: Tag, number: u64, part: u64) -> Bytes {
        self.within(tag, number, &part.to_be_bytes())
    }

    /// Returns the key of something that is called `name` within something with a number.
    pub(super) fn within(&self, tag: Tag, number: u64, name: &[u8]) -> Bytes {
        let mut key = BytesMut::with_capacity(HEAD_BYTES + 8 + name.len());
        key.put_u64(self.generation);
        key.put_u8(tag as u8);
        key.put_u64(number);
        key.put_slice(name);
        key.freeze()
    }

    /// Returns the first key after all of something with a number.
    pub(super) fn after(&self, tag: Tag, number: u64) -> Bytes {
        match number.checked_add(1) {
            Some(next) => self.numbered(tag, next),
            None => self.named_after(tag),
        }
    }

    fn named_after(&self, tag: Tag) -> Bytes {
        let mut key = BytesMut::with_capacity(HEAD_BYTES);
        key.put_u64(self.generation);
        key.put_u8(tag as u8 + 1);
        key.freeze()
    }

    /// Returns where the small facts begin and end.
    pub(super) fn facts(&self) -> (Bytes, Bytes) {
        let at = |letter: u8| {
            let mut key = BytesMut::with_capacity(HEAD_BYTES);
            key.put_u64(self.generation);
            key.put_u8(letter);
            key.freeze()
        };
        (at(b'A'), at(b'Z' + 1))
    }

    /// Returns where all keys begin and end.
    pub(super) fn all(&self) -> (Bytes, Bytes) {
        let at = |number: u64| Bytes::copy_from_slice(&number.to_be_bytes());
        let end = match self.generation.checked_add(1) {
            Some(next) => at(next),
            None => Bytes::from_static(&[0xff; HEAD_BYTES + 1]),
        };
        (at(self.generation), end)
    }
}

/// Returns the generation of a key, if it has one.
pub(super) fn generation_of(key: &[u8]) -> Option<u64> {
    key.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// Returns the letter of a key.
pub(super) fn letter_of(key: &[u8]) -> u8 {
    key.get(HEAD_BYTES - 1).copied().unwrap_or_default()
}

/// Returns what a key has of its own.
pub(super) fn own_part(key: &[u8]) -> &[u8] {
    key.get(HEAD_BYTES..).unwrap_or_default()
}

/// Returns the number that a key has.
pub(super) fn number_of(key: &[u8]) -> u64 {
    let bytes = own_part(key).first_chunk().copied().unwrap_or_default();
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_by_generation_kind_and_number() {
        let (one, two) = (GenerationKeys::of(1), GenerationKeys::of(2));
        let sorted = [
            one.only(Tag::End),
            one.numbered(Tag::Garbage, 300),
            one.numbered(Tag::Items, 2),
            one.numbered(Tag::Items, 255),
            one.numbered(Tag::Items, 256),
            one.within(Tag::Entry, 7, b"a"),
            one.within(Tag::Entry, 7, b"b"),
            one.within(Tag::Entry, 8, b""),
            two.only(Tag::End),
        ];
        assert!(sorted.is_sorted());
        assert_eq!(number_of(&sorted[4]), 256);
        assert_eq!(own_part(&sorted[6])[8..], *b"b");
        let (from, to) = one.facts();
        let facts = sorted.iter().filter(|key| (&from..&to).contains(key));
        assert_eq!(facts.count(), 2);
        assert!(one.after(Tag::Items, u64::MAX) > one.numbered(Tag::Items, u64::MAX));
        assert_eq!(generation_of(&sorted[8]), Some(2));
    }
}
