//! The little that the database must understand of JSON: whether it is JSON, and the one field of
//! metadata that is indexed.

use std::borrow::Cow;
use std::ops::Deref;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::category;
use crate::limits::STREAM_NAME_BYTES_MAX;

/// One JSON value as text, kept byte for byte.
///
/// Text is converted without a look at it, and checked when an event with it is appended. A value
/// that a parser has found is known to be JSON, and is not checked again.
#[derive(Debug, Clone)]
pub struct Json {
    text: Bytes,
    is_checked: bool,
}

impl Json {
    /// Returns a value that a parser has found in `whole`. It shares the memory of `whole`.
    pub fn found_in(whole: &Bytes, value: &RawValue) -> Self {
        let text = value.get().as_bytes();
        let is_part = whole.as_ptr_range().contains(&text.as_ptr());
        Self {
            text: match is_part {
                true => whole.slice_ref(text),
                false => Bytes::copy_from_slice(text),
            },
            is_checked: true,
        }
    }

    /// Returns the text.
    pub fn bytes(&self) -> &Bytes {
        &self.text
    }

    /// Returns whether a parser has found this to be JSON.
    pub(crate) fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// Returns whether this is one JSON object.
    pub(crate) fn is_object(&self) -> bool {
        begins_object(&self.text) && (self.is_checked || is_json(&self.text))
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.text
    }
}

impl<T: Into<Bytes>> From<T> for Json {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            is_checked: false,
        }
    }
}

impl Deref for Json {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.text
    }
}

/// Equal bytes are equal, checked or not.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Json {}

/// Returns whether `text` is one JSON value.
pub fn is_json(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text);
    text.is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// Returns whether `text` is one JSON object.
pub fn is_json_object(text: &[u8]) -> bool {
    begins_object(text) && is_json(text)
}

fn begins_object(text: &[u8]) -> bool {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    first == Some(&b'{')
}

/// Returns the category of `correlationStreamName` in an event's metadata, if there is one. What is
/// longer than a stream's name may be names no stream, and is not indexed.
pub fn correlation_category(metadata: &[u8]) -> Option<String> {
    let parsed: Correlation<'_> = serde_json::from_slice(metadata).ok()?;
    let stream = parsed
        .stream
        .filter(|stream| stream.len() <= STREAM_NAME_BYTES_MAX)?;
    Some(category(&stream).to_owned())
}

struct Correlation<'a> {
    stream: Option<Cow<'a, str>>,
}

/// A key or a value: a string, or anything else.
struct Text<'a>(Option<Cow<'a, str>>);

impl<'de> Deserialize<'de> for Correlation<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CorrelationVisitor)
    }
}

struct CorrelationVisitor;

impl<'de> Visitor<'de> for CorrelationVisitor {
    type Value = Correlation<'de>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    /// The last of several equal keys counts, as with most JSON parsers.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut stream = None;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if key.0.as_deref() == Some("correlationStreamName") {
                stream = map.next_value::<Text<'de>>()?.0;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Correlation { stream })
    }
}

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Owned(text.to_owned()))))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Text<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Text(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_too_long_for_a_stream_correlates_with_nothing() {
        for length in [STREAM_NAME_BYTES_MAX, STREAM_NAME_BYTES_MAX + 1, 70_000] {
            let name = "n".repeat(length);
            let metadata = format!(r#"{{"correlationStreamName":"{name}"}}"#);
            let found = correlation_category(metadata.as_bytes());
            assert_eq!(found.is_some(), length <= STREAM_NAME_BYTES_MAX, "{length}");
        }
    }

    #[test]
    fn a_value_that_was_found_is_part_of_the_whole_and_known_to_be_json() {
        let whole = Bytes::from_static(br#"[{"a": 1.0}, 2]"#);
        let values: Vec<&RawValue> = serde_json::from_slice(&whole).unwrap();
        let found = Json::found_in(&whole, values[0]);
        assert_eq!(found.as_ptr(), whole[1..].as_ptr());
        assert_eq!(&found[..], br#"{"a": 1.0}"#);
        assert!(found.is_checked() && found.is_object());
        let number = Json::found_in(&whole, values[1]);
        assert!(number.is_checked() && !number.is_object());
        let elsewhere = Json::found_in(&Bytes::new(), values[0]);
        assert_eq!(elsewhere, found);
    }

    #[test]
    fn text_that_nobody_has_looked_at_is_checked() {
        for (text, is_object) in [(" {} ", true), ("1", false), ("{", false), ("", false)] {
            let json = Json::from(text);
            assert!(!json.is_checked());
            assert_eq!(json.is_object(), is_object, "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_no_json() {
        assert!(!is_json(b"\"\xff\""));
        assert!(is_json("\"\u{e9}\"".as_bytes()));
    }

    #[test]
    fn the_correlation_is_the_category_of_the_named_stream() {
        let cases = [
            (
                r#"{"correlationStreamName":"workflow-1"}"#,
                Some("workflow"),
            ),
            (
                r#"{"a":{"correlationStreamName":"x-1"},"correlationStreamName":"w"}"#,
                Some("w"),
            ),
            (
                r#"{"correlationStreamName":"a-1","correlationStreamName":"b-1"}"#,
                Some("b"),
            ),
            (
                r#"{"correlation\u0053treamName":"esc\u0061ped-1"}"#,
                Some("escaped"),
            ),
            (r#"{"correlationStreamName":[1,{"a":2}]}"#, None),
            (r#"{"other":1.5}"#, None),
            ("null", None),
        ];
        for (metadata, expected) in cases {
            assert_eq!(
                correlation_category(metadata.as_bytes()).as_deref(),
                expected,
                "{metadata}"
            );
        }
    }
}
