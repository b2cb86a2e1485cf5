//! What is remembered of a key: its type, when it expires, where its elements are.

use bytes::{Buf, BufMut, Bytes};
use trefoil_core::{put_varint, take_varint};

use crate::blocks::BlockTree;
use crate::layout;
use crate::pack::Pack;

/// The types of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Bytes.
    String,
    /// Values under fields.
    Hash,
    /// Values in a row.
    List,
    /// Members.
    Set,
    /// Members with scores.
    SortedSet,
}

impl ValueKind {
    /// Returns the name that `TYPE` replies.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Hash => "hash",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "zset",
        }
    }
}

/// What is remembered of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    /// When the key expires, in milliseconds since 1970.
    pub(crate) expires: Option<u64>,
    pub(crate) value: StoredValue,
}

/// A value, or where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredValue {
    /// A short string.
    String(Bytes),
    /// A long string, whose chunks are the elements of a collection.
    LongString { id: u64, len: u64 },
    /// The fields of a small hash.
    SmallHash(Pack),
    /// Elements of a collection.
    Collection(Collection),
}

/// Elements under an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collection {
    pub(crate) kind: ValueKind,
    pub(crate) id: u64,
    /// How many elements there are. It is never 0: a collection without elements is no key.
    pub(crate) len: u64,
    /// What else the type needs to remember: for a list, the number of the first element that has an
    /// entry of its own; for a hash, how many fields expire.
    pub(crate) extra: i64,
    /// How many elements of a list or members of a sorted set are not in blocks: they come last, each
    /// in an entry of its own, as version 0.1.0 wrote them at first.
    pub(crate) n_single: u64,
    /// The highest number that a block of a list or a sorted set has had.
    pub(crate) last_block: u64,
}

impl Collection {
    /// Returns a collection without elements.
    pub(crate) fn new(kind: ValueKind, id: u64) -> Self {
        Self {
            kind,
            id,
            len: 0,
            extra: 0,
            n_single: 0,
            last_block: 0,
        }
    }

    /// Returns the elements that are in blocks.
    pub(crate) fn tree(&self) -> BlockTree {
        BlockTree {
            id: self.id,
            is_ordered: self.kind == ValueKind::SortedSet,
            len: self.len.saturating_sub(self.n_single),
            last_number: self.last_block,
        }
    }

    /// Remembers the elements that are in blocks now.
    pub(crate) fn keep(&mut self, tree: &BlockTree) {
        self.len = tree.len + self.n_single;
        self.last_block = tree.last_number;
    }

    /// Appends what a list or a sorted set remembers besides its id.
    fn encode_blocks(&self, out: &mut Vec<u8>) {
        put_varint(out, self.len);
        put_varint(out, self.last_block);
        put_varint(out, self.n_single);
        if self.n_single > 0 {
            out.put_i64(self.extra);
        }
    }

    fn decode_blocks(kind: ValueKind, mut rest: &[u8]) -> Option<Self> {
        let mut collection = Self::new(kind, take_varint(&mut rest)?);
        collection.len = take_varint(&mut rest)?;
        collection.last_block = take_varint(&mut rest)?;
        collection.n_single = take_varint(&mut rest)?;
        if collection.n_single > 0 {
            collection.extra = rest.try_get_i64().ok()?;
        }
        Some(collection)
    }
}

const SHORT_STRING: u8 = 0;
const LONG_STRING: u8 = 1;
const HASH: u8 = 2;
/// A list, or a sorted set, that has no blocks: these are only read.
const SINGLE_LIST: u8 = 3;
const SINGLE_SORTED_SET: u8 = 5;
const SET: u8 = 4;
const SMALL_HASH: u8 = 6;
const LIST: u8 = 7;
const SORTED_SET: u8 = 8;

/// Set in the first byte if the key expires.
const EXPIRES: u8 = 0x80;

impl Meta {
    pub(crate) fn kind(&self) -> ValueKind {
        match &self.value {
            StoredValue::String(_) | StoredValue::LongString { .. } => ValueKind::String,
            StoredValue::SmallHash(_) => ValueKind::Hash,
            StoredValue::Collection(collection) => collection.kind,
        }
    }

    /// Returns the collection that holds the elements or chunks.
    pub(crate) fn id(&self) -> Option<u64> {
        match &self.value {
            StoredValue::String(_) | StoredValue::SmallHash(_) => None,
            StoredValue::LongString { id, .. } => Some(*id),
            StoredValue::Collection(collection) => Some(collection.id),
        }
    }

    pub(crate) fn is_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    pub(crate) fn encode(&self) -> Bytes {
        let room = match &self.value {
            StoredValue::String(bytes) => bytes.len(),
            StoredValue::SmallHash(pack) => pack.bytes_max(),
            _ => 24,
        };
        let mut out = Vec::with_capacity(room + self.expires.map_or(1, |_| 10));
        let code = match &self.value {
            StoredValue::String(_) => SHORT_STRING,
            StoredValue::LongString { .. } => LONG_STRING,
            StoredValue::SmallHash(_) => SMALL_HASH,
            StoredValue::Collection(collection) => match collection.kind {
                ValueKind::Hash => HASH,
                ValueKind::List => LIST,
                ValueKind::Set => SET,
                // A string is not a collection.
                ValueKind::SortedSet | ValueKind::String => SORTED_SET,
            },
        };
        match self.expires {
            Some(expires) => {
                out.push(code | EXPIRES);
                put_varint(&mut out, expires);
            }
            None => out.push(code),
        }
        match &self.value {
            StoredValue::String(bytes) => out.extend_from_slice(bytes),
            StoredValue::LongString { id, len } => {
                put_varint(&mut out, *id);
                put_varint(&mut out, *len);
            }
            StoredValue::SmallHash(pack) => pack.encode(&mut out),
            StoredValue::Collection(collection) => {
                put_varint(&mut out, collection.id);
                match collection.kind {
                    ValueKind::List | ValueKind::SortedSet => collection.encode_blocks(&mut out),
                    _ => {
                        put_varint(&mut out, collection.len);
                        out.put_i64(collection.extra);
                    }
                }
            }
        }
        out.into()
    }

    /// Reads it back; `None` if the bytes are none.
    pub(crate) fn decode(mut bytes: Bytes) -> Option<Self> {
        let mut rest = bytes.as_ref();
        let first = rest.split_off_first()?;
        let expires = match first & EXPIRES {
            0 => None,
            _ => Some(take_varint(&mut rest)?),
        };
        let kind = match first & !EXPIRES {
            SHORT_STRING => {
                let start = bytes.len() - rest.len();
                bytes.advance(start);
                let value = StoredValue::String(bytes);
                return Some(Self { expires, value });
            }
            LONG_STRING => {
                let id = take_varint(&mut rest)?;
                let len = take_varint(&mut rest)?;
                let value = StoredValue::LongString { id, len };
                return Some(Self { expires, value });
            }
            SMALL_HASH => {
                let value = StoredValue::SmallHash(Pack::decode(&bytes, rest)?);
                return Some(Self { expires, value });
            }
            code @ (LIST | SORTED_SET) => {
                let kind = match code {
                    LIST => ValueKind::List,
                    _ => ValueKind::SortedSet,
                };
                let collection = Collection::decode_blocks(kind, rest)?;
                let value = StoredValue::Collection(collection);
                return Some(Self { expires, value });
            }
            HASH => ValueKind::Hash,
            SINGLE_LIST => ValueKind::List,
            SET => ValueKind::Set,
            SINGLE_SORTED_SET => ValueKind::SortedSet,
            _ => return None,
        };
        let mut collection = Collection::new(kind, take_varint(&mut rest)?);
        collection.len = take_varint(&mut rest)?;
        collection.extra = rest.try_get_i64().ok()?;
        if matches!(kind, ValueKind::List | ValueKind::SortedSet) {
            collection.n_single = collection.len;
        }
        let value = StoredValue::Collection(collection);
        Some(Self { expires, value })
    }
}

/// What is remembered of the state as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Root {
    /// How often everything was removed.
    pub(crate) epoch: u64,
    /// How many keys there are, expired ones that are still to be cleaned included.
    pub(crate) keys: u64,
    /// The id of the last collection.
    pub(crate) last_id: u64,
    /// Before this time, in milliseconds since 1970, no timer of an application is due; `None`:
    /// there are no timers.
    pub(crate) next_timer: Option<u64>,
}

impl Root {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(16);
        put_varint(&mut out, self.epoch);
        put_varint(&mut out, self.keys);
        put_varint(&mut out, self.last_id);
        put_varint(&mut out, self.next_timer.unwrap_or_default());
        out.into()
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        Some(Self {
            epoch: take_varint(&mut bytes)?,
            keys: take_varint(&mut bytes)?,
            last_id: take_varint(&mut bytes)?,
            next_timer: Some(take_varint(&mut bytes)?).filter(|time| *time > 0),
        })
    }
}

/// Returns whether the entry of this name is an element of a collection that is younger than the
/// state whose root this is: then it is not there, and nobody need look for it.
pub fn is_younger(name: &[u8], root: &[u8]) -> bool {
    let last_id = Root::decode(root).map(|root| root.last_id);
    let id = layout::collection_of(name);
    id.zip(last_id).is_some_and(|(id, last_id)| id > last_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_later_collections_are_younger_and_nothing_else_is() {
        for epoch in [0, 1, 300] {
            let root = |last_id| {
                Root {
                    epoch,
                    last_id,
                    ..Root::default()
                }
                .encode()
            };
            for id in [1, 255, 256, u64::MAX] {
                let name = layout::element(epoch, id, b"place");
                assert!(is_younger(&name, &root(id - 1)), "{epoch} {id}");
                assert!(!is_younger(&name, &root(id)), "{epoch} {id}");
            }
            for other in [
                layout::key(epoch, b"key"),
                layout::expiry(epoch, 9, 0, b"key"),
            ] {
                assert!(!is_younger(&other, &root(0)));
            }
            assert!(!is_younger(&layout::collection(epoch, 7)[..2], &root(0)));
        }
        assert!(!is_younger(layout::ROOT, &Root::default().encode()));
        assert!(!is_younger(&layout::element(0, 7, b"place"), b""));
    }
}
