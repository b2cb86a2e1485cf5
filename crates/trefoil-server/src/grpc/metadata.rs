//! Metadata in its two forms: entries of a key and a value here, a JSON object in the log.

use std::collections::HashSet;
use std::fmt;

use bytes::Bytes;
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::status::{Result, invalid, malformed};
use super::wire::bytes_field_length;
use super::wire::{WireFields, WireValue, put_bytes_field, put_message_head};
use crate::json::{put_string, text};

const KEY: u32 = 1;
const VALUE: u32 = 2;

/// Builds the JSON object of an event's entries, in their order.
#[derive(Debug, Default)]
pub(super) struct Object<'a> {
    json: Vec<u8>,
    keys: HashSet<&'a str>,
}

impl<'a> Object<'a> {
    /// Adds an encoded entry.
    pub(super) fn add(&mut self, entry: &'a [u8]) -> Result<()> {
        let wrong = || malformed("MetadataEntry");
        let (mut key, mut value) = ("", "");
        for field in WireFields::of(entry) {
            let (number, WireValue::Bytes(bytes)) = field.map_err(|_| wrong())? else {
                continue;
            };
            let part = match number {
                KEY => &mut key,
                VALUE => &mut value,
                _ => continue,
            };
            *part = std::str::from_utf8(bytes).map_err(|_| wrong())?;
        }
        if !self.keys.insert(key) {
            return Err(invalid("metadata contains duplicate keys"));
        }
        self.json
            .push(if self.json.is_empty() { b'{' } else { b',' });
        put_string(&mut self.json, key);
        self.json.push(b':');
        put_string(&mut self.json, value);
        Ok(())
    }

    /// The object; `None` if there was no entry.
    pub(super) fn finish(mut self) -> Option<Bytes> {
        if self.json.is_empty() {
            return None;
        }
        self.json.push(b'}');
        Some(self.json.into())
    }
}

/// Appends the members of a JSON object as entries in the field `field`. A value that is not a text
/// shows as its JSON.
pub(super) fn put_entries(out: &mut Vec<u8>, field: u32, object: &[u8]) {
    let mut parser = serde_json::Deserializer::from_slice(object);
    // What is stored was checked to be an object.
    let _ = parser.deserialize_map(EntriesVisitor { out, field });
}

struct EntriesVisitor<'o> {
    out: &'o mut Vec<u8>,
    field: u32,
}

impl<'de> Visitor<'de> for EntriesVisitor<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let key = text(key).unwrap_or_default();
            let decoded = text(value);
            let value = decoded.as_deref().unwrap_or(value.get());
            let length = bytes_field_length(key.len()) + bytes_field_length(value.len());
            put_message_head(self.out, self.field, length);
            put_bytes_field(self.out, KEY, key.as_bytes());
            put_bytes_field(self.out, VALUE, value.as_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes_field(&mut out, VALUE, value.as_bytes());
        put_bytes_field(&mut out, KEY, key.as_bytes());
        out
    }

    fn object(entries: &[Vec<u8>]) -> Result<Option<Bytes>> {
        let mut object = Object::default();
        entries.iter().try_for_each(|entry| object.add(entry))?;
        Ok(object.finish())
    }

    fn entries(json: &str) -> Vec<(String, String)> {
        let mut out = Vec::new();
        put_entries(&mut out, 5, json.as_bytes());
        let part = |entry: &[u8], wanted: u32| {
            let found = WireFields::of(entry).find_map(|field| match field {
                Ok((number, WireValue::Bytes(bytes))) if number == wanted => Some(bytes),
                _ => None,
            });
            String::from_utf8(found.unwrap().to_vec()).unwrap()
        };
        let entry = |field| match field {
            Ok((5, WireValue::Bytes(entry))) => (part(entry, KEY), part(entry, VALUE)),
            other => panic!("{other:?}"),
        };
        WireFields::of(&out).map(entry).collect()
    }

    #[test]
    fn entries_become_an_object_in_their_order() {
        let all = [entry("b", "1"), entry("a", "\"\n"), entry("", "")];
        let json = object(&all).unwrap().unwrap();
        assert_eq!(json, r#"{"b":"1","a":"\"\n","":""}"#);
        let back = entries(std::str::from_utf8(&json).unwrap());
        let expected = [("b", "1"), ("a", "\"\n"), ("", "")];
        assert!(back.iter().map(|(k, v)| (&k[..], &v[..])).eq(expected));
        assert_eq!(object(&[]).unwrap(), None);
    }

    #[test]
    fn a_key_that_comes_twice_is_refused() {
        let status = object(&[entry("k", "1"), entry("k", "1")]).unwrap_err();
        let expected = "invalid argument: metadata contains duplicate keys";
        assert_eq!(status.message(), expected);
    }

    #[test]
    fn values_that_are_no_text_show_as_json() {
        let shown = entries(r#"{"n": 1.50, "o": {"a": [null]}, "t": "\u00e9", "e\"": true}"#);
        let expected = [
            ("n", "1.50"),
            ("o", r#"{"a": [null]}"#),
            ("t", "é"),
            ("e\"", "true"),
        ];
        assert!(shown.iter().map(|(k, v)| (&k[..], &v[..])).eq(expected));
    }
}
