//! Requests: JSON that is looked at where it stands, without building a tree.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The most elements of a request that any method looks at.
const CALL_PARTS_MAX: usize = 4;

/// A request: a method and its arguments. Further elements are ignored.
#[derive(Debug, Default)]
pub(crate) struct RpcCall<'a> {
    parts: [Option<&'a RawValue>; CALL_PARTS_MAX],
}

impl<'a> RpcCall<'a> {
    /// Reads a request; the error is the parser's. `null` counts as an empty request.
    pub(crate) fn parse(body: &'a [u8]) -> serde_json::Result<Self> {
        let mut parser = serde_json::Deserializer::from_slice(body);
        let call = parser.deserialize_any(CallVisitor)?;
        parser.end()?;
        Ok(call)
    }

    /// The first element.
    pub(crate) fn method(&self) -> Option<&'a RawValue> {
        self.parts[0]
    }

    /// The argument at `index` from 0; `None` if there are fewer.
    pub(crate) fn argument(&self, index: usize) -> Option<&'a RawValue> {
        self.parts.get(index + 1).copied().flatten()
    }
}

struct CallVisitor;

impl<'de> Visitor<'de> for CallVisitor {
    type Value = RpcCall<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of a method and its arguments")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(RpcCall::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut call = RpcCall::default();
        for part in &mut call.parts {
            *part = elements.next_element()?;
            if part.is_none() {
                return Ok(call);
            }
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(call)
    }
}

/// The values of the named fields of an object, in the order of the names; `None` if it is no
/// object. Other fields are ignored; the last of several equal ones counts.
pub(crate) fn fields<'a, const N: usize>(
    value: &'a RawValue,
    names: [&str; N],
) -> Option<[Option<&'a RawValue>; N]> {
    Some(found_fields(value, names)?.values)
}

/// As [`fields`] of an object that has each of them at most once, and no others.
pub(crate) fn only_fields<'a, const N: usize>(
    value: &'a RawValue,
    names: [&str; N],
) -> Option<Result<[Option<&'a RawValue>; N], Misfit>> {
    let found = found_fields(value, names)?;
    Some(found.misfit.map_or(Ok(found.values), Err))
}

/// What is wrong with the names in an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// This one was not asked for.
    Unknown(String),
    /// This one is there more than once.
    Repeated(String),
}

fn found_fields<'a, const N: usize>(
    value: &'a RawValue,
    names: [&str; N],
) -> Option<ObjectFields<'a, N>> {
    let mut parser = serde_json::Deserializer::from_str(value.get());
    parser.deserialize_any(FieldsVisitor(names)).ok()
}

/// What an object holds.
struct ObjectFields<'a, const N: usize> {
    values: [Option<&'a RawValue>; N],
    /// The first name that is one too many.
    misfit: Option<Misfit>,
}

impl<const N: usize> ObjectFields<'_, N> {
    fn note(&mut self, misfit: impl FnOnce() -> Misfit) {
        self.misfit.get_or_insert_with(misfit);
    }
}

struct FieldsVisitor<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> Visitor<'de> for FieldsVisitor<'_, N> {
    type Value = ObjectFields<'de, N>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = ObjectFields {
            values: [None; N],
            misfit: None,
        };
        while let Some(key) = map.next_key::<&'de RawValue>()? {
            let key = text(key).unwrap_or_default();
            let Some(place) = self.0.iter().position(|name| *name == key) else {
                map.next_value::<IgnoredAny>()?;
                found.note(|| Misfit::Unknown(key.into_owned()));
                continue;
            };
            if found.values[place].replace(map.next_value()?).is_some() {
                found.note(|| Misfit::Repeated(key.into_owned()));
            }
        }
        Ok(found)
    }
}

/// The elements of an array; `None` if it is no array, and their number instead if there are more
/// than `count_max`.
pub(crate) fn elements(
    value: &RawValue,
    count_max: usize,
) -> Option<Result<Vec<&RawValue>, usize>> {
    let mut parser = serde_json::Deserializer::from_str(value.get());
    parser.deserialize_any(ElementsVisitor(count_max)).ok()
}

struct ElementsVisitor(usize);

impl<'de> Visitor<'de> for ElementsVisitor {
    type Value = Result<Vec<&'de RawValue>, usize>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while found.len() < self.0 {
            match elements.next_element()? {
                Some(element) => found.push(element),
                None => return Ok(Ok(found)),
            }
        }
        let mut count = found.len();
        while elements.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(if count > self.0 {
            Err(count)
        } else {
            Ok(found)
        })
    }
}

/// The value, unless it is missing or `null`.
pub(crate) fn present(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| value.get() != "null")
}

/// The text of a JSON string; `None` if it is something else.
pub(crate) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let inner = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str(value.get()).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// A JSON number without its fraction; `None` if it is something else.
pub(crate) fn number(value: &RawValue) -> Option<i64> {
    let text = value.get();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return None;
    }
    // What lies outside the range becomes the nearest number in it.
    text.parse::<f64>().ok().map(|number| number as i64)
}

/// Returns whether the value is an object.
pub(crate) fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

/// Returns whether arrays and objects of a JSON value are nested at most this deep.
pub(crate) fn is_shallow(json: &[u8], depth_max: usize) -> bool {
    let mut depth = 0;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' if depth == depth_max => return false,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    true
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn numbers_lose_their_fraction_and_stay_in_range() {
        let cases = [
            ("5", Some(5)),
            ("-1.9", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("1e300", Some(i64::MAX)),
            ("\"5\"", None),
            ("true", None),
        ];
        for (text, expected) in cases {
            assert_eq!(number(raw(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_call_keeps_what_methods_look_at() {
        let call = RpcCall::parse(br#" ["m", {"a": [1]}, "x\u0041", 3, 4, 5] "#).unwrap();
        assert_eq!(text(call.method().unwrap()).as_deref(), Some("m"));
        assert_eq!(call.argument(0).unwrap().get(), r#"{"a": [1]}"#);
        assert_eq!(text(call.argument(1).unwrap()).as_deref(), Some("xA"));
        assert!(call.argument(7).is_none());
        assert!(RpcCall::parse(b"null").unwrap().method().is_none());
        for body in [&b""[..], b"{}", b"\"m\"", b"[1", b"[] []", b"[\"\xff\"]"] {
            assert!(RpcCall::parse(body).is_err(), "{body:?}");
        }
    }

    #[test]
    fn fields_are_found_by_name_and_the_last_one_counts() {
        let object = raw(r#"{"b":1,"\u0061":2,"c":{"a":9},"b":3}"#);
        let [a, b, missing] = fields(object, ["a", "b", "d"]).unwrap();
        assert_eq!((a.unwrap().get(), b.unwrap().get()), ("2", "3"));
        assert!(missing.is_none());
        assert!(fields(raw("[]"), ["a"]).is_none());
    }

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        assert!(is_shallow(br#"{"a":["[[[[\"[["]}"#, 2));
        assert!(!is_shallow(b"[[[1]]]", 2));
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(!is_shallow(deep.as_bytes(), 128));
    }
}
