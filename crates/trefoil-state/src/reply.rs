//! What a command replies, in neither version of the protocol.

use std::borrow::Cow;

use bytes::Bytes;

/// What a command replies.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A short word, such as `OK`.
    Simple(&'static str),
    /// An error with its code, such as `ERR syntax error`.
    Error(Cow<'static, str>),
    /// An integer.
    Integer(i64),
    /// Bytes.
    Bulk(Bytes),
    /// A floating-point number; bytes in RESP2.
    Double(f64),
    /// Nothing.
    Nil,
    /// Nothing where a list was possible, which RESP2 tells from the other nothing.
    NilArray,
    /// A list.
    Array(Vec<Reply>),
    /// A set; a list in RESP2.
    Set(Vec<Reply>),
    /// Keys and values; a flat list in RESP2.
    Map(Vec<(Reply, Reply)>),
    /// A list of pairs; a flat list in RESP2.
    Pairs(Vec<(Reply, Reply)>),
    /// Text for people; bytes in RESP2.
    Text(String),
}

/// What a reply holds, for those who know what to expect.
impl Reply {
    /// Returns the integer, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the number, if it is one.
    pub fn as_double(&self) -> Option<f64> {
        match self {
            Self::Double(number) => Some(*number),
            Self::Integer(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// Returns the bytes of a value, a word or a text.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bulk(bytes) => Some(bytes),
            Self::Simple(word) => Some(word.as_bytes()),
            Self::Text(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// Returns the same as [`Self::as_bytes`], if it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        self.as_bytes()
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// Returns the elements of a list or a set.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) | Self::Set(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the keys and values of a map, or the pairs of a list of pairs.
    pub fn as_pairs(&self) -> Option<&[(Self, Self)]> {
        match self {
            Self::Map(pairs) | Self::Pairs(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// Returns the text of an error, with its code.
    pub fn as_error(&self) -> Option<&str> {
        match self {
            Self::Error(text) => Some(text),
            _ => None,
        }
    }

    /// Returns whether there is nothing.
    pub fn is_nil(&self) -> bool {
        matches!(self, Self::Nil | Self::NilArray)
    }
}

impl Reply {
    /// The usual reply of what succeeded.
    pub const OK: Self = Self::Simple("OK");

    /// Returns about how many bytes of memory it takes.
    pub fn size(&self) -> usize {
        let pairs = |pairs: &[(Self, Self)]| {
            let sizes = pairs
                .iter()
                .map(|(first, second)| first.size() + second.size());
            sizes.sum::<usize>()
        };
        let inside = match self {
            Self::Bulk(bytes) => bytes.len(),
            Self::Text(text) => text.len(),
            Self::Error(text) => text.len(),
            Self::Array(items) | Self::Set(items) => items.iter().map(Self::size).sum(),
            Self::Map(all) | Self::Pairs(all) => pairs(all),
            Self::Simple(_) | Self::Integer(_) | Self::Double(_) | Self::Nil | Self::NilArray => 0,
        };
        size_of::<Self>() + inside
    }

    /// 1 or 0.
    pub fn flag(is_set: bool) -> Self {
        Self::Integer(i64::from(is_set))
    }

    /// Returns a number of things.
    pub fn count(n: usize) -> Self {
        Self::Integer(i64::try_from(n).unwrap_or(i64::MAX))
    }

    /// Returns bytes, or nothing.
    pub fn bulk_or_nil(value: Option<Bytes>) -> Self {
        value.map_or(Self::Nil, Self::Bulk)
    }

    /// Returns bytes.
    pub fn bulk(value: impl Into<Bytes>) -> Self {
        Self::Bulk(value.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_as_what_it_is_and_as_nothing_else() {
        assert_eq!(Reply::Integer(3).as_int(), Some(3));
        assert_eq!(Reply::Integer(3).as_double(), Some(3.0));
        assert_eq!(Reply::Integer(3).as_bytes(), None);
        assert_eq!(Reply::OK.as_str(), Some("OK"));
        assert_eq!(Reply::bulk("a").as_bytes(), Some(&b"a"[..]));
        assert_eq!(Reply::bulk(vec![0xff]).as_str(), None);
        assert_eq!(Reply::bulk("3").as_int(), None);
        let all = Reply::Set(vec![Reply::Nil]);
        assert_eq!(all.as_array().map(<[Reply]>::len), Some(1));
        assert!(all.as_array().is_some_and(|all| all[0].is_nil()) && !all.is_nil());
        let map = Reply::Map(vec![(Reply::bulk("a"), Reply::Integer(1))]);
        assert_eq!(map.as_pairs().map(<[_]>::len), Some(1));
        assert_eq!(Reply::Error("ERR no".into()).as_error(), Some("ERR no"));
        assert_eq!(Reply::Error("ERR no".into()).as_str(), None);
    }
}
