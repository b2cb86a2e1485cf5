//! The messages in Rust are those of the `.proto` file: same names, numbers and kinds of fields.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

const SCHEMA: &str = include_str!("../proto/umadb.v1.proto");
const SOURCE: &str = include_str!("../src/messages.rs");

/// A field as both files can say it: label, kind and number by name.
type Fields = BTreeMap<String, (String, String, u32)>;

/// What `messages.rs` has besides: the messages of another service.
const ELSEWHERE: &[&str] = &["HealthCheckRequest", "HealthCheckResponse"];

/// Reads `message Name {` and `[label] kind name = number;`.
fn of_schema() -> BTreeMap<String, Fields> {
    let mut messages = BTreeMap::new();
    let mut current = String::new();
    for line in SCHEMA.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("message ") {
            current = name.split_whitespace().next().unwrap().to_owned();
            messages.insert(current.clone(), Fields::new());
        }
        let Some((words, number)) = line.trim_end_matches(';').split_once(" = ") else {
            continue;
        };
        let words: Vec<&str> = words.split_whitespace().collect();
        let (label, kind, name) = match words[..] {
            [label, kind, name] => (label, kind, name),
            [kind, name] => ("", kind, name),
            // A value of an enumeration, or what stands before the first message.
            _ => continue,
        };
        let Ok(number) = number.parse() else { continue };
        let field = (label.to_owned(), kind.to_owned(), number);
        messages
            .get_mut(&current)
            .unwrap()
            .insert(name.to_owned(), field);
    }
    messages
}

/// Reads `pub struct Name {` and `#[prost(kind, label, tag = "number")]` before `pub name: Type,`.
fn of_source() -> BTreeMap<String, Fields> {
    let mut messages = BTreeMap::new();
    let (mut current, mut attribute) = (String::new(), None);
    for line in SOURCE.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("pub struct ") {
            current = name.split_whitespace().next().unwrap().to_owned();
            messages.insert(current.clone(), Fields::new());
        } else if let Some(rest) = line.strip_prefix("#[prost(") {
            attribute = rest.strip_suffix(")]");
        } else if let Some((name, kind)) = line
            .strip_prefix("pub ")
            .and_then(|line| line.split_once(": "))
        {
            let field = source_field(attribute.take().unwrap(), kind);
            messages
                .get_mut(&current)
                .unwrap()
                .insert(name.to_owned(), field);
        }
    }
    messages.retain(|name, _| !ELSEWHERE.contains(&name.as_str()));
    messages
}

fn source_field(attribute: &str, rust_type: &str) -> (String, String, u32) {
    let parts: Vec<&str> = attribute.split(", ").collect();
    let number = parts.last().unwrap().trim_start_matches("tag = ");
    let number = number.trim_matches('"').parse().unwrap();
    let label = parts.iter().copied();
    let label = label.filter(|part| ["repeated", "optional"].contains(part));
    let label: String = label.collect();
    let inner = rust_type.trim_end_matches(',').trim_end_matches('>');
    let inner = inner.rsplit('<').next().unwrap();
    let kind = match parts[0] {
        "message" => inner.to_owned(),
        enumeration if enumeration.starts_with("enumeration") => "ErrorType".to_owned(),
        plain => plain.split(' ').next().unwrap().to_owned(),
    };
    (label, kind, number)
}

/// A message always knows whether it is there, so `optional` says nothing before one.
fn without_idle_labels(messages: BTreeMap<String, Fields>) -> BTreeMap<String, Fields> {
    let names: Vec<String> = messages.keys().cloned().collect();
    let plain = |(name, (label, kind, number))| {
        let is_idle = label == "optional" && names.contains(&kind);
        let label = if is_idle { String::new() } else { label };
        (name, (label, kind, number))
    };
    let messages = messages.into_iter();
    messages
        .map(|(name, fields)| (name, fields.into_iter().map(plain).collect()))
        .collect()
}

#[test]
fn the_messages_are_those_of_the_schema() {
    let (schema, source) = (
        without_idle_labels(of_schema()),
        without_idle_labels(of_source()),
    );
    assert_eq!(schema.len(), 18);
    assert_eq!(schema["Event"].len(), 5);
    assert_eq!(source, schema);
}
