//! Replies into bytes, in either version of the protocol.

use bytes::{BufMut as _, BytesMut};
use trefoil::{Reply, redis::format_double};

/// The version of the protocol that a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RespVersion {
    /// RESP2.
    #[default]
    Two,
    /// RESP3, which tells more kinds of replies apart.
    Three,
}

impl RespVersion {
    /// Its number.
    pub(super) fn number(self) -> i64 {
        match self {
            Self::Two => 2,
            Self::Three => 3,
        }
    }
}

/// A reply that is being written, piece by piece.
#[derive(Debug)]
pub(super) struct Encoding<'r> {
    protocol: RespVersion,
    /// What is still to be written, the next part last.
    rest: Vec<EncodingPart<'r>>,
}

#[derive(Debug)]
enum EncodingPart<'r> {
    One(&'r Reply),
    Items(std::slice::Iter<'r, Reply>),
    Pairs {
        pairs: std::slice::Iter<'r, (Reply, Reply)>,
        /// Whether each pair is a list of its own.
        are_lists: bool,
    },
    /// What is left of a long string.
    Bytes(&'r [u8]),
}

impl<'r> Encoding<'r> {
    pub(super) fn new(reply: &'r Reply, protocol: RespVersion) -> Self {
        Self {
            protocol,
            rest: vec![EncodingPart::One(reply)],
        }
    }

    /// Appends to `out` until it is about full. Returns whether there is more to come.
    pub(super) fn fill(&mut self, out: &mut BytesMut, bytes_max: usize) -> bool {
        while let Some(part) = self.rest.pop() {
            match part {
                EncodingPart::One(reply) => self.begin(reply, out),
                EncodingPart::Items(mut items) => {
                    if let Some(item) = items.next() {
                        self.rest.push(EncodingPart::Items(items));
                        self.begin(item, out);
                    }
                }
                EncodingPart::Pairs {
                    mut pairs,
                    are_lists,
                } => {
                    if let Some((first, second)) = pairs.next() {
                        if are_lists {
                            put_length(out, b'*', 2);
                        }
                        self.rest.push(EncodingPart::Pairs { pairs, are_lists });
                        self.rest.push(EncodingPart::One(second));
                        self.begin(first, out);
                    }
                }
                EncodingPart::Bytes(bytes) => {
                    let room = bytes_max.saturating_sub(out.len()).max(1);
                    let (now, later) = bytes.split_at(bytes.len().min(room));
                    out.put_slice(now);
                    match later.is_empty() {
                        true => out.put_slice(b"\r\n"),
                        false => self.rest.push(EncodingPart::Bytes(later)),
                    }
                }
            }
            if out.len() >= bytes_max && !self.rest.is_empty() {
                return true;
            }
        }
        false
    }

    /// Writes a reply, or the beginning of it if it is long.
    fn begin(&mut self, reply: &'r Reply, out: &mut BytesMut) {
        let is_three = self.protocol == RespVersion::Three;
        let (marker, length, rest) = match reply {
            Reply::Bulk(bytes) if bytes.len() > LONG_BYTES => {
                (b'$', bytes.len(), EncodingPart::Bytes(bytes))
            }
            Reply::Array(items) => (b'*', items.len(), EncodingPart::Items(items.iter())),
            Reply::Set(items) => {
                let marker = if is_three { b'~' } else { b'*' };
                (marker, items.len(), EncodingPart::Items(items.iter()))
            }
            Reply::Map(all) | Reply::Pairs(all) => {
                let are_lists = is_three && matches!(reply, Reply::Pairs(_));
                let (marker, length) = match reply {
                    Reply::Map(_) if is_three => (b'%', all.len()),
                    _ if is_three => (b'*', all.len()),
                    _ => (b'*', all.len() * 2),
                };
                let pairs = all.iter();
                (marker, length, EncodingPart::Pairs { pairs, are_lists })
            }
            leaf => return put_leaf(leaf, self.protocol, out),
        };
        put_length(out, marker, length);
        self.rest.push(rest);
    }
}

/// Strings that are longer than this are written in pieces.
const LONG_BYTES: usize = 64 * 1024;

/// Appends a reply to `out` if it is neither long nor made of others.
pub(super) fn encode_short(reply: &Reply, protocol: RespVersion, out: &mut BytesMut) -> bool {
    let is_short = match reply {
        Reply::Array(_) | Reply::Set(_) | Reply::Map(_) | Reply::Pairs(_) => false,
        Reply::Bulk(bytes) => bytes.len() <= LONG_BYTES,
        _ => true,
    };
    if is_short {
        put_leaf(reply, protocol, out);
    }
    is_short
}

/// How many bytes a reply takes at most besides those of its text.
const AROUND_BYTES: usize = 40;

/// Returns whether a reply is shorter than so many bytes, and counts them down.
pub(super) fn is_shorter(reply: &Reply, bytes: &mut usize) -> bool {
    let text = match reply {
        Reply::Bulk(bytes) => bytes.len(),
        Reply::Simple(text) => text.len(),
        Reply::Error(text) => text.len(),
        Reply::Text(text) => text.len(),
        _ => 0,
    };
    *bytes = bytes.saturating_sub(text + AROUND_BYTES);
    *bytes > 0
        && match reply {
            Reply::Array(items) | Reply::Set(items) => {
                items.iter().all(|item| is_shorter(item, bytes))
            }
            Reply::Map(pairs) | Reply::Pairs(pairs) => { pairs.iter() }
                .all(|(first, second)| is_shorter(first, bytes) && is_shorter(second, bytes)),
            _ => true,
        }
}

fn put_leaf(reply: &Reply, protocol: RespVersion, out: &mut BytesMut) {
    let is_three = protocol == RespVersion::Three;
    match reply {
        Reply::Simple(text) => put_line(out, b'+', text),
        Reply::Error(text) => put_error(out, text),
        Reply::Integer(n) => put_number(out, b':', *n),
        Reply::Bulk(bytes) => put_bulk(out, bytes),
        Reply::Double(value) if is_three => put_line(out, b',', &format_double(*value)),
        Reply::Double(value) => put_bulk(out, format_double(*value).as_bytes()),
        Reply::Nil | Reply::NilArray if is_three => out.put_slice(b"_\r\n"),
        Reply::Nil => out.put_slice(b"$-1\r\n"),
        Reply::NilArray => out.put_slice(b"*-1\r\n"),
        Reply::Text(text) if is_three => {
            put_length(out, b'=', text.len() + 4);
            out.put_slice(b"txt:");
            out.put_slice(text.as_bytes());
            out.put_slice(b"\r\n");
        }
        Reply::Text(text) => put_bulk(out, text.as_bytes()),
        // These are never leaves.
        Reply::Array(_) | Reply::Set(_) | Reply::Map(_) | Reply::Pairs(_) => {}
    }
}

fn put_bulk(out: &mut BytesMut, bytes: &[u8]) {
    out.reserve(bytes.len() + 32);
    put_length(out, b'$', bytes.len());
    out.put_slice(bytes);
    out.put_slice(b"\r\n");
}

fn put_line(out: &mut BytesMut, marker: u8, text: &str) {
    out.put_u8(marker);
    out.put_slice(text.as_bytes());
    out.put_slice(b"\r\n");
}

/// An error is one line, whatever of a client's words it repeats.
fn put_error(out: &mut BytesMut, text: &str) {
    out.put_u8(b'-');
    for byte in text.bytes() {
        out.put_u8(if matches!(byte, b'\r' | b'\n') {
            b' '
        } else {
            byte
        });
    }
    out.put_slice(b"\r\n");
}

/// The beginning of what has a length.
pub(super) fn put_length(out: &mut BytesMut, marker: u8, length: usize) {
    put_number(out, marker, i64::try_from(length).unwrap_or(i64::MAX));
}

fn put_number(out: &mut BytesMut, marker: u8, number: i64) {
    out.put_u8(marker);
    out.put_slice(itoa::Buffer::new().format(number).as_bytes());
    out.put_slice(b"\r\n");
}

#[cfg(test)]
#[path = "../../tests/it/resp/value.rs"]
mod value;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::value::{Value, decode};
    use super::*;

    fn encode(reply: &Reply, protocol: RespVersion, out: &mut BytesMut) {
        assert!(!Encoding::new(reply, protocol).fill(out, usize::MAX));
    }

    #[test]
    fn every_kind_of_reply_in_both_versions() {
        let bulk = |text: &'static str| Reply::bulk(text);
        let pair = || vec![(bulk("k"), Reply::Double(1.5))];
        let cases = [
            (Reply::OK, "+OK\r\n", "+OK\r\n"),
            (
                Reply::Error("ERR a\r\nb".into()),
                "-ERR a  b\r\n",
                "-ERR a  b\r\n",
            ),
            (
                Reply::Integer(i64::MIN),
                ":-9223372036854775808\r\n",
                ":-9223372036854775808\r\n",
            ),
            (bulk(""), "$0\r\n\r\n", "$0\r\n\r\n"),
            (
                Reply::Double(f64::NEG_INFINITY),
                "$4\r\n-inf\r\n",
                ",-inf\r\n",
            ),
            (Reply::Nil, "$-1\r\n", "_\r\n"),
            (Reply::NilArray, "*-1\r\n", "_\r\n"),
            (
                Reply::Array(vec![Reply::Nil]),
                "*1\r\n$-1\r\n",
                "*1\r\n_\r\n",
            ),
            (
                Reply::Set(vec![bulk("a")]),
                "*1\r\n$1\r\na\r\n",
                "~1\r\n$1\r\na\r\n",
            ),
            (
                Reply::Map(pair()),
                "*2\r\n$1\r\nk\r\n$3\r\n1.5\r\n",
                "%1\r\n$1\r\nk\r\n,1.5\r\n",
            ),
            (
                Reply::Pairs(pair()),
                "*2\r\n$1\r\nk\r\n$3\r\n1.5\r\n",
                "*1\r\n*2\r\n$1\r\nk\r\n,1.5\r\n",
            ),
            (
                Reply::Text("hi".to_owned()),
                "$2\r\nhi\r\n",
                "=6\r\ntxt:hi\r\n",
            ),
        ];
        for (reply, two, three) in cases {
            for (protocol, expected) in [(RespVersion::Two, two), (RespVersion::Three, three)] {
                let mut out = BytesMut::new();
                encode(&reply, protocol, &mut out);
                assert_eq!(out, expected.as_bytes(), "{reply:?} {protocol:?}");
            }
        }
    }

    #[test]
    fn a_long_string_is_written_in_pieces() {
        let reply = Reply::Array(vec![Reply::bulk(vec![b'x'; 3 * LONG_BYTES]), Reply::OK]);
        let mut encoding = Encoding::new(&reply, RespVersion::Two);
        let (mut whole, mut n_pieces) = (BytesMut::new(), 0);
        loop {
            let mut piece = BytesMut::new();
            let has_more = encoding.fill(&mut piece, 1000);
            assert!(piece.len() < 1100, "{}", piece.len());
            whole.extend_from_slice(&piece);
            n_pieces += 1;
            if !has_more {
                break;
            }
        }
        assert!(n_pieces > 3 * LONG_BYTES / 1100);
        let mut expected = BytesMut::new();
        encode(&reply, RespVersion::Two, &mut expected);
        assert_eq!(whole, expected);
    }

    /// What a client is to read.
    fn expected(reply: &Reply, protocol: RespVersion) -> Value {
        let is_three = protocol == RespVersion::Three;
        let each = |items: &[Reply]| items.iter().map(|item| expected(item, protocol)).collect();
        let pair = |(first, second): &(Reply, Reply)| {
            [expected(first, protocol), expected(second, protocol)]
        };
        let nil = |two| Value::Nil(if is_three { "_" } else { two });
        match reply {
            Reply::Simple(text) => Value::Simple((*text).to_owned()),
            Reply::Error(text) => Value::Error(text.replace(['\r', '\n'], " ")),
            Reply::Integer(n) => Value::Integer(*n),
            Reply::Bulk(bytes) => Value::Bulk(bytes.to_vec()),
            Reply::Double(value) if is_three => Value::Double(format_double(*value)),
            Reply::Double(value) => Value::Bulk(format_double(*value).into_bytes()),
            Reply::Nil => nil("$-1"),
            Reply::NilArray => nil("*-1"),
            Reply::Set(items) if is_three => Value::Set(each(items)),
            Reply::Array(items) | Reply::Set(items) => Value::Array(each(items)),
            Reply::Map(pairs) if is_three => {
                Value::Map(pairs.iter().map(pair).map(Into::into).collect())
            }
            Reply::Pairs(pairs) if is_three => {
                let pairs = pairs.iter().map(pair);
                Value::Array(pairs.map(|pair| Value::Array(pair.into())).collect())
            }
            Reply::Map(pairs) | Reply::Pairs(pairs) => {
                Value::Array(pairs.iter().flat_map(pair).collect())
            }
            Reply::Text(text) if is_three => Value::Verbatim(format!("txt:{text}").into_bytes()),
            Reply::Text(text) => Value::Bulk(text.clone().into_bytes()),
        }
    }

    fn replies() -> impl Strategy<Value = Reply> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..40);
        let leaf = prop_oneof![
            Just(Reply::OK),
            "[a-z\\r\\n]{0,20}".prop_map(|text| Reply::Error(text.into())),
            any::<i64>().prop_map(Reply::Integer),
            bytes.prop_map(Reply::bulk),
            (-1e30..1e30).prop_map(Reply::Double),
            Just(Reply::Nil),
            Just(Reply::NilArray),
            "[a-z\\r\\n]{0,20}".prop_map(Reply::Text),
        ];
        leaf.prop_recursive(4, 64, 6, |inner| {
            let items = proptest::collection::vec(inner.clone(), 0..6);
            let pairs = proptest::collection::vec((inner.clone(), inner), 0..4);
            prop_oneof![
                items.clone().prop_map(Reply::Array),
                items.prop_map(Reply::Set),
                pairs.clone().prop_map(Reply::Map),
                pairs.prop_map(Reply::Pairs),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_back(reply in replies()) {
            for protocol in [RespVersion::Two, RespVersion::Three] {
                let mut out = BytesMut::new();
                encode(&reply, protocol, &mut out);
                let read = decode(&out);
                prop_assert_eq!(read, Some((expected(&reply, protocol), out.len())));
                let (mut encoding, mut pieces) = (Encoding::new(&reply, protocol), BytesMut::new());
                loop {
                    let mut piece = BytesMut::new();
                    let has_more = encoding.fill(&mut piece, 7);
                    pieces.extend_from_slice(&piece);
                    if !has_more {
                        break;
                    }
                }
                prop_assert_eq!(&pieces, &out);
                prop_assert!(is_shorter(&reply, &mut 1_000_000));
                let mut bytes = out.len();
                prop_assert!(!is_shorter(&reply, &mut bytes));
            }
        }
    }
}
