//! What a command on the state answers: with its type for people, as redis-cli shows it, and the
//! bytes alone for programs.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The name that stands for bytes that are no text.
const BYTES: &str = "$base64";

/// Texts that are not quoted: commands answer them as a word of their own.
const STATUSES: [&str; 2] = ["OK", "PONG"];

/// A reply, in the order and with the digits it has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StateReply {
    Nil,
    Integer(i64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<StateReply>),
    Map(Vec<(String, StateReply)>),
}

impl StateReply {
    /// The lines that a person reads.
    pub(crate) fn typed(&self) -> String {
        match self {
            Self::Nil => "(nil)".to_owned(),
            Self::Integer(number) => format!("(integer) {number}"),
            Self::Double(number) => format!("(double) {number}"),
            Self::Text(status) if STATUSES.contains(&status.as_str()) => status.clone(),
            Self::Text(text) => format!("{text:?}"),
            Self::Bytes(bytes) => format!("\"{}\"", bytes.escape_ascii()),
            Self::List(replies) if replies.is_empty() => "(empty array)".to_owned(),
            Self::Map(pairs) if pairs.is_empty() => "(empty hash)".to_owned(),
            Self::List(replies) => {
                let items = replies.iter().map(Self::typed);
                numbered(items, replies.len(), ')')
            }
            Self::Map(pairs) => {
                let items = pairs
                    .iter()
                    .map(|(name, value)| format!("{name:?} => {}", value.typed()));
                numbered(items, pairs.len(), '#')
            }
        }
    }

    /// The bytes that a program reads: a line for each value.
    pub(crate) fn raw(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put_raw(&mut out);
        out
    }

    fn put_raw(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nil => {}
            Self::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Self::Double(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::List(replies) => {
                for (index, reply) in replies.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b"\n" } else { b"" });
                    reply.put_raw(out);
                }
            }
            Self::Map(pairs) => {
                for (index, (name, reply)) in pairs.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b"\n" } else { b"" });
                    out.extend_from_slice(name.as_bytes());
                    out.push(b'\n');
                    reply.put_raw(out);
                }
            }
        }
    }
}

/// Items with their numbers; what has several lines stays in its column.
fn numbered(items: impl Iterator<Item = String>, count: usize, mark: char) -> String {
    let width = count.to_string().len();
    let indent = format!("\n{}", " ".repeat(width + 2));
    let lines = items
        .zip(1..)
        .map(|(item, number)| format!("{number:>width$}{mark} {}", item.replace('\n', &indent)));
    lines.collect::<Vec<_>>().join("\n")
}

impl<'de> Deserialize<'de> for StateReply {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReplyVisitor)
    }
}

struct ReplyVisitor;

impl<'de> Visitor<'de> for ReplyVisitor {
    type Value = StateReply;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a reply")
    }

    fn visit_unit<E>(self) -> Result<StateReply, E> {
        Ok(StateReply::Nil)
    }

    fn visit_bool<E>(self, value: bool) -> Result<StateReply, E> {
        Ok(StateReply::Text(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<StateReply, E> {
        Ok(StateReply::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<StateReply, E> {
        Ok(i64::try_from(value).map_or(StateReply::Text(value.to_string()), StateReply::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<StateReply, E> {
        Ok(StateReply::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<StateReply, E> {
        Ok(StateReply::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<StateReply, A::Error> {
        let mut replies = Vec::new();
        while let Some(reply) = list.next_element()? {
            replies.push(reply);
        }
        Ok(StateReply::List(replies))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StateReply, A::Error> {
        let mut pairs: Vec<(String, StateReply)> = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        if let [(name, StateReply::Text(encoded))] = pairs.as_slice()
            && name == BYTES
            && let Ok(bytes) = STANDARD.decode(encoded)
        {
            return Ok(StateReply::Bytes(bytes));
        }
        Ok(StateReply::Map(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_typed_for_people_and_raw_for_programs() {
        for (json, typed, raw) in [
            ("null", "(nil)", ""),
            ("-7", "(integer) -7", "-7"),
            ("1.5", "(double) 1.5", "1.5"),
            ("\"OK\"", "OK", "OK"),
            (r#""a \"b\"\n""#, r#""a \"b\"\n""#, "a \"b\"\n"),
            (r#"{"$base64":"/wA="}"#, r#""\xff\x00""#, "\u{fffd}\0"),
            ("[]", "(empty array)", ""),
            (
                r#"["a",[1,null]]"#,
                "1) \"a\"\n2) 1) (integer) 1\n   2) (nil)",
                "a\n1\n",
            ),
            (
                r#"{"z":"1","a":2}"#,
                "1# \"z\" => \"1\"\n2# \"a\" => (integer) 2",
                "z\n1\na\n2",
            ),
        ] {
            let reply: StateReply = serde_json::from_str(json).unwrap();
            assert_eq!(reply.typed(), typed);
            assert_eq!(String::from_utf8_lossy(&reply.raw()), raw);
        }
    }
}
