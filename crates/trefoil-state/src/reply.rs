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
