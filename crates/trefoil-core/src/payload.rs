//! The body of an event: JSON, kept byte for byte, or any bytes.

use bytes::Bytes;

use crate::{Json, is_json};

/// The body of an event. Two are equal if the same is stored for them.
#[derive(Debug, Clone, Eq)]
pub struct Payload {
    bytes: Bytes,
    kind: PayloadKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PayloadKind {
    /// JSON, as its writer says.
    Json,
    /// JSON, as a parser has found.
    CheckedJson,
    Binary,
    /// JSON or not: found out when the database takes the event, so that it is parsed once.
    Undecided,
}

impl Payload {
    /// Returns a body of one JSON value. The database refuses an event whose body is not one.
    pub fn json(text: impl Into<Json>) -> Self {
        let json = text.into();
        let kind = match json.is_checked() {
            true => PayloadKind::CheckedJson,
            false => PayloadKind::Json,
        };
        Self::new(json.into_bytes(), kind)
    }

    /// Returns a body of bytes that the database does not interpret.
    pub fn binary(bytes: impl Into<Bytes>) -> Self {
        Self::new(bytes, PayloadKind::Binary)
    }

    /// Returns a body that is stored as JSON if it is JSON, and as bytes otherwise.
    pub fn detect(bytes: impl Into<Bytes>) -> Self {
        Self::new(bytes, PayloadKind::Undecided)
    }

    fn new(bytes: impl Into<Bytes>, kind: PayloadKind) -> Self {
        let bytes = bytes.into();
        Self { bytes, kind }
    }

    /// Returns the bytes of the body.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns whether the body is stored as JSON.
    pub fn is_json(&self) -> bool {
        match self.kind {
            PayloadKind::Json | PayloadKind::CheckedJson => true,
            PayloadKind::Binary => false,
            PayloadKind::Undecided => is_json(&self.bytes),
        }
    }

    /// Returns whether it claims to be JSON and is not.
    pub(crate) fn is_broken(&self) -> bool {
        self.kind == PayloadKind::Json && !is_json(&self.bytes)
    }

    /// Decides whether it is JSON if that was left open.
    pub(crate) fn settle(&mut self) {
        if self.kind == PayloadKind::Undecided {
            self.kind = match is_json(&self.bytes) {
                true => PayloadKind::CheckedJson,
                false => PayloadKind::Binary,
            };
        }
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.is_json() == other.is_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_either_kind_is_settled_by_what_it_holds() {
        for (text, is_json) in [("{}", true), (" 1 ", true), ("", false), ("x", false)] {
            let mut body = Payload::detect(text);
            let expected = match is_json {
                true => Payload::json(text),
                false => Payload::binary(text),
            };
            assert_eq!(body, expected, "{text}");
            body.settle();
            assert_eq!(body.is_json(), is_json, "{text}");
            assert!(!body.is_broken());
        }
    }

    #[test]
    fn what_a_parser_has_found_is_not_parsed_again() {
        let whole = Bytes::from_static(b"[1]");
        let values: Vec<&serde_json::value::RawValue> = serde_json::from_slice(&whole).unwrap();
        let found = Payload::json(Json::found_in(&whole, values[0]));
        assert_eq!(found.kind, PayloadKind::CheckedJson);
        assert_eq!(found, Payload::json("1"));
        assert!(!found.is_broken() && Payload::json("{").is_broken());
    }
}
