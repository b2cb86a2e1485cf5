//! Replies as they are kept, to be sent again.

use std::borrow::Cow;

use bytes::{Buf, BufMut, Bytes};
use trefoil_core::{put_bytes, put_varint, take_bytes, take_varint};

use crate::reply::Reply;

/// The most replies within each other.
const DEPTH_MAX: usize = 16;

const OK: u8 = 0;
const SIMPLE: u8 = 1;
const ERROR: u8 = 2;
const INTEGER: u8 = 3;
const BULK: u8 = 4;
const DOUBLE: u8 = 5;
const NIL: u8 = 6;
const NIL_ARRAY: u8 = 7;
const ARRAY: u8 = 8;
const SET: u8 = 9;
const MAP: u8 = 10;
const PAIRS: u8 = 11;
const TEXT: u8 = 12;

/// The short words that commands on the state reply besides `OK`.
const WORDS: [&str; 6] = ["none", "string", "hash", "list", "set", "zset"];

impl Reply {
    /// Appends the reply in the form in which it is kept.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Simple(word) => match WORDS.iter().position(|other| other == word) {
                Some(index) => out.extend([SIMPLE, index as u8]),
                None => out.push(OK),
            },
            Self::Error(text) => put_tagged(out, ERROR, text.as_bytes()),
            Self::Integer(value) => {
                out.push(INTEGER);
                out.put_i64(*value);
            }
            Self::Bulk(bytes) => put_tagged(out, BULK, bytes),
            Self::Double(value) => {
                out.push(DOUBLE);
                out.put_f64(*value);
            }
            Self::Nil => out.push(NIL),
            Self::NilArray => out.push(NIL_ARRAY),
            Self::Array(replies) => put_list(out, ARRAY, replies),
            Self::Set(replies) => put_list(out, SET, replies),
            Self::Map(pairs) => put_pairs(out, MAP, pairs),
            Self::Pairs(pairs) => put_pairs(out, PAIRS, pairs),
            Self::Text(text) => put_tagged(out, TEXT, text.as_bytes()),
        }
    }

    /// Takes a reply from the front of `input`; `None` if there is none.
    pub fn decode(input: &mut &[u8]) -> Option<Self> {
        take(input, DEPTH_MAX)
    }
}

fn put_tagged(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    put_bytes(out, bytes);
}

fn put_list(out: &mut Vec<u8>, tag: u8, replies: &[Reply]) {
    out.push(tag);
    put_varint(out, replies.len() as u64);
    replies.iter().for_each(|reply| reply.encode(out));
}

fn put_pairs(out: &mut Vec<u8>, tag: u8, pairs: &[(Reply, Reply)]) {
    out.push(tag);
    put_varint(out, pairs.len() as u64);
    for (key, value) in pairs {
        key.encode(out);
        value.encode(out);
    }
}

fn take(input: &mut &[u8], depth: usize) -> Option<Reply> {
    let depth = depth.checked_sub(1)?;
    Some(match *input.split_off_first()? {
        OK => Reply::OK,
        SIMPLE => Reply::Simple(WORDS.get(usize::from(*input.split_off_first()?))?),
        ERROR => Reply::Error(Cow::Owned(take_text(input)?)),
        INTEGER => Reply::Integer(input.try_get_i64().ok()?),
        BULK => Reply::Bulk(Bytes::copy_from_slice(take_bytes(input)?)),
        DOUBLE => Reply::Double(input.try_get_f64().ok()?),
        NIL => Reply::Nil,
        NIL_ARRAY => Reply::NilArray,
        ARRAY => Reply::Array(take_list(input, depth)?),
        SET => Reply::Set(take_list(input, depth)?),
        MAP => Reply::Map(take_pairs(input, depth)?),
        PAIRS => Reply::Pairs(take_pairs(input, depth)?),
        TEXT => Reply::Text(take_text(input)?),
        _ => return None,
    })
}

fn take_text(input: &mut &[u8]) -> Option<String> {
    String::from_utf8(take_bytes(input)?.to_vec()).ok()
}

fn take_list(input: &mut &[u8], depth: usize) -> Option<Vec<Reply>> {
    let n = take_varint(input)?;
    (0..n).map(|_| take(input, depth)).collect()
}

fn take_pairs(input: &mut &[u8], depth: usize) -> Option<Vec<(Reply, Reply)>> {
    let n = take_varint(input)?;
    (0..n)
        .map(|_| Some((take(input, depth)?, take(input, depth)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_back_as_it_was() {
        let replies = Reply::Array(vec![
            Reply::OK,
            Reply::Simple("zset"),
            Reply::Error("ERR syntax error".into()),
            Reply::Integer(-7),
            Reply::Bulk(Bytes::from_static(b"\0bytes")),
            Reply::Double(1.5),
            Reply::Nil,
            Reply::NilArray,
            Reply::Set(vec![Reply::Integer(1)]),
            Reply::Map(vec![(Reply::Integer(1), Reply::Nil)]),
            Reply::Pairs(vec![(Reply::Integer(1), Reply::Double(2.0))]),
            Reply::Text("text".into()),
        ]);
        let mut bytes = Vec::new();
        replies.encode(&mut bytes);
        assert_eq!(Reply::decode(&mut bytes.as_slice()), Some(replies));
        for end in 0..bytes.len() {
            assert_eq!(Reply::decode(&mut &bytes[..end]), None, "{end}");
        }
    }
}
