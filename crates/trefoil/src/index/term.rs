//! Terms: what events are found by, and how a term is written as a key.
//!
//! In a map, a term is its kind, its name with zero bytes escaped, and a terminator, so that keys
//! sort by kind and then by name, and no term's key is the beginning of another's.

/// What sort of thing a term names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum TermKind {
    /// Every event; there is one such term, with an empty name.
    All = 0,
    /// The category of an event's stream.
    Category = 1,
    /// The category of the stream that an event is correlated with.
    Correlation = 2,
    /// An event's stream.
    Stream = 3,
    /// One of an event's tags.
    Tag = 4,
    /// An event's type.
    Type = 5,
}

impl TermKind {
    /// Returns what the kind is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Category => "category",
            Self::Correlation => "correlation",
            Self::Stream => "stream",
            Self::Tag => "tag",
            Self::Type => "type",
        }
    }

    /// All kinds, in the order of their keys.
    pub(crate) const EVERY: [Self; 6] = [
        Self::All,
        Self::Category,
        Self::Correlation,
        Self::Stream,
        Self::Tag,
        Self::Type,
    ];
}

const ESCAPE: u8 = 0xff;
const TERMINATOR: u8 = 0x01;

/// Appends the key of a term to `key`.
pub(crate) fn put_term(key: &mut Vec<u8>, kind: TermKind, name: &str) {
    put_name_prefix(key, kind, name);
    key.extend_from_slice(&[0, TERMINATOR]);
}

/// Appends what the keys of all terms of this kind whose names begin with `prefix` begin with.
pub(crate) fn put_name_prefix(key: &mut Vec<u8>, kind: TermKind, prefix: &str) {
    key.push(kind as u8);
    for &byte in prefix.as_bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(ESCAPE);
        }
    }
}

/// Reads the name back from a key that [`put_term`] wrote, without what stands before the kind.
pub(crate) fn take_name(key: &[u8]) -> Option<String> {
    let escaped = key.get(1..)?.strip_suffix(&[0, TERMINATOR])?;
    let mut name = Vec::with_capacity(escaped.len());
    let mut bytes = escaped.iter();
    while let Some(&byte) = bytes.next() {
        name.push(byte);
        if byte == 0 && bytes.next() != Some(&ESCAPE) {
            return None;
        }
    }
    String::from_utf8(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Vec<u8> {
        let mut key = Vec::new();
        put_term(&mut key, TermKind::Stream, name);
        key
    }

    #[test]
    fn keys_sort_as_names_do_and_none_begins_another() {
        let names = [
            "", "\0", "\0\0", "\0a", "a", "a\0", "a\0b", "a-1", "aa", "é",
        ];
        for (index, name) in names.iter().enumerate() {
            assert_eq!(take_name(&key(name)).as_deref(), Some(*name));
            for other in &names[index + 1..] {
                assert!(key(name) < key(other), "{name:?} {other:?}");
                assert!(!key(other).starts_with(&key(name)));
            }
        }
    }
}
