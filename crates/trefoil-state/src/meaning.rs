//! What an entry is, told from its name and its value, for people who look at what a commit changed.
//!
//! Nothing is looked up. An element says the number of its collection, and not whose that is, which
//! only the entry of the key says.

use bytes::Bytes;

use crate::blocks::BLOCKS;
use crate::command::hash::HashField;
use crate::command::zset::read_score;
use crate::layout::{self, FIELDS_EXPIRE, KEY_EXPIRES, NameParts};
use crate::meta::{Meta, Root, StoredValue, ValueKind};
use crate::named;

/// What an entry is, as far as its name and its value say. The value is not always known: the entry
/// may be gone, or only a part of it be known.
#[derive(Debug, Clone, PartialEq)]
pub enum EntryMeaning {
    /// The state as a whole: how many keys there are.
    Root(Option<u64>),
    /// A key, and what is under it.
    Key(Bytes, Option<KeyFacts>),
    /// A field of a hash.
    Field {
        /// The hash.
        collection: u64,
        /// The field.
        name: Bytes,
        /// Its value.
        value: Option<Bytes>,
        /// When it expires, in milliseconds since 1970.
        expires: Option<u64>,
    },
    /// A member of a set or a sorted set, or a field: nothing says of which type the collection is.
    Member {
        /// The collection.
        collection: u64,
        /// The member.
        name: Bytes,
        /// Its score in a sorted set.
        score: Option<f64>,
    },
    /// A chunk of a long string.
    Chunk {
        /// The string.
        collection: u64,
        /// Its number, from 0.
        number: u32,
    },
    /// A block of the elements of a list, or of the members of a sorted set in their order; or what
    /// else a value keeps.
    Block(u64),
    /// This key expires at this time, in milliseconds since 1970.
    Expiry(Bytes, u64),
    /// Fields of the hash under this key expire at this time, in milliseconds since 1970.
    FieldExpiry(Bytes, u64),
    /// A timer of an application under this key is due at this time, in milliseconds since 1970.
    Timer(Bytes, u64),
    /// What is left of a collection is to be removed; of all collections if there is no number.
    Garbage(Option<u64>),
}

/// What is under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFacts {
    /// The type.
    pub kind: ValueKind,
    /// When the key expires, in milliseconds since 1970.
    pub expires: Option<u64>,
    /// The bytes of a string, or the number of elements.
    pub len: u64,
    /// A short string.
    pub value: Option<Bytes>,
    /// The fields of a small hash.
    pub fields: Vec<(Bytes, Bytes)>,
    /// The collection that has the chunks or the elements, if they have entries of their own.
    pub collection: Option<u64>,
}

impl EntryMeaning {
    /// Returns what the entry of this name is; `None` if it is none of the keys' entries. `kind_of`
    /// says which type of value a collection has, as far as that is known.
    pub fn of(
        name: &[u8],
        value: Option<&Bytes>,
        kind_of: impl Fn(u64) -> Option<ValueKind>,
    ) -> Option<Self> {
        let own = Bytes::copy_from_slice;
        Some(match layout::read(name)? {
            NameParts::Root => {
                let root = value.and_then(|value| Root::decode(value));
                Self::Root(root.map(|root| root.keys))
            }
            NameParts::Key(key) => {
                let meta = value.and_then(|value| Meta::decode(value.clone()));
                Self::Key(own(key), meta.map(KeyFacts::new))
            }
            NameParts::Element(id, place) => Self::of_element(id, place, value, kind_of(id)),
            NameParts::Expiry(time, KEY_EXPIRES, key) => Self::Expiry(own(key), time),
            NameParts::Expiry(time, FIELDS_EXPIRE, key) => Self::FieldExpiry(own(key), time),
            NameParts::Expiry(time, _, key) => Self::Timer(own(key), time),
            NameParts::Garbage(prefix) => Self::Garbage(layout::collection_of(prefix)),
        })
    }

    fn of_element(
        collection: u64,
        place: &[u8],
        value: Option<&Bytes>,
        kind: Option<ValueKind>,
    ) -> Self {
        if let Ok(number) = place.try_into().map(u32::from_be_bytes)
            && !place.starts_with(BLOCKS)
        {
            return Self::Chunk { collection, number };
        }
        let Some(name) = named::read_place(place).map(Bytes::copy_from_slice) else {
            return Self::Block(collection);
        };
        if kind == Some(ValueKind::Hash) {
            let field = value.and_then(|value| HashField::decode(value.clone()).ok());
            return Self::Field {
                collection,
                name,
                expires: field.as_ref().and_then(|field| field.expires),
                value: field.map(|field| field.value),
            };
        }
        let is_scored = kind == Some(ValueKind::SortedSet);
        let score = value
            .filter(|_| is_scored)
            .and_then(|value| read_score(value).ok());
        Self::Member {
            collection,
            name,
            score,
        }
    }
}

impl KeyFacts {
    fn new(meta: Meta) -> Self {
        let mut facts = Self {
            kind: meta.kind(),
            expires: meta.expires,
            len: 0,
            value: None,
            fields: Vec::new(),
            collection: meta.id(),
        };
        match meta.value {
            StoredValue::String(value) => {
                facts.len = value.len() as u64;
                facts.value = Some(value);
            }
            StoredValue::LongString { len, .. } => facts.len = len,
            StoredValue::SmallHash(pack) => {
                facts.len = pack.len();
                facts.fields = pack.all().map_while(|field| field.ok()).collect();
            }
            StoredValue::Collection(collection) => facts.len = collection.len,
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    /// What all entries are after some commands.
    fn meanings(lines: &[&str]) -> Vec<EntryMeaning> {
        let mut world = World::default();
        for line in lines {
            world.run(line);
        }
        let kinds: Vec<(u64, ValueKind)> = { world.entries.iter() }
            .filter_map(|(name, value)| EntryMeaning::of(name, Some(value), |_| None))
            .filter_map(|meaning| match meaning {
                EntryMeaning::Key(_, Some(facts)) => Some((facts.collection?, facts.kind)),
                _ => None,
            })
            .collect();
        let kind_of = |id| {
            kinds
                .iter()
                .find(|(of, _)| *of == id)
                .map(|(_, kind)| *kind)
        };
        { world.entries.iter() }
            .map(|(name, value)| EntryMeaning::of(name, Some(value), kind_of).unwrap())
            .collect()
    }

    fn has(meanings: &[EntryMeaning], wanted: &EntryMeaning) {
        assert!(meanings.contains(wanted), "{wanted:?} in {meanings:?}");
    }

    #[test]
    fn small_values_are_told_with_their_keys() {
        let found = meanings(&["SET a 12 PX 5000", "HSET h f 1"]);
        let key = |name: &'static str, facts| EntryMeaning::Key(name.into(), Some(facts));
        let facts = |kind, len| KeyFacts {
            kind,
            expires: None,
            len,
            value: None,
            fields: Vec::new(),
            collection: None,
        };
        let string = KeyFacts {
            expires: Some(5000),
            value: Some("12".into()),
            ..facts(ValueKind::String, 2)
        };
        let hash = KeyFacts {
            fields: vec![("f".into(), "1".into())],
            ..facts(ValueKind::Hash, 1)
        };
        has(&found, &key("a", string));
        has(&found, &key("h", hash));
        has(&found, &EntryMeaning::Expiry("a".into(), 5000));
        has(&found, &EntryMeaning::Root(Some(2)));
    }

    #[test]
    fn elements_are_told_by_the_type_of_their_collection() {
        let long = "x".repeat(600);
        let (hash, string) = (format!("HSET h f {long}"), "SETRANGE s 100000 x");
        let found = meanings(&[&hash, string, "SADD set m", "ZADD z 1.5 n", "RPUSH l e"]);
        let field = found.iter().find_map(|meaning| match meaning {
            EntryMeaning::Field { name, value, .. } => Some((name.clone(), value.clone())),
            _ => None,
        });
        assert_eq!(field, Some(("f".into(), Some(long.into()))));
        let members: Vec<(Bytes, Option<f64>)> = { found.iter() }
            .filter_map(|meaning| match meaning {
                EntryMeaning::Member { name, score, .. } => Some((name.clone(), *score)),
                _ => None,
            })
            .collect();
        assert_eq!(members, [("m".into(), None), ("n".into(), Some(1.5))]);
        let is_chunk = |meaning: &EntryMeaning| matches!(meaning, EntryMeaning::Chunk { .. });
        let is_block = |meaning: &EntryMeaning| matches!(meaning, EntryMeaning::Block(_));
        assert!(found.iter().any(is_chunk), "{found:?}");
        assert_eq!(found.iter().filter(|meaning| is_block(meaning)).count(), 2);
    }

    #[test]
    fn what_is_removed_is_garbage_and_strange_names_mean_nothing() {
        let found = meanings(&["SADD set m", "DEL set"]);
        has(&found, &EntryMeaning::Garbage(Some(1)));
        for name in [&b""[..], b"x", b"s", b"s\x01", b"s\x00e123", b"s\x00k1"] {
            assert_eq!(EntryMeaning::of(name, None, |_| None), None, "{name:?}");
        }
    }
}
