//! Patterns that answers are compared with; `cases/README.md` describes them.

use std::collections::BTreeMap;

use serde_json::Value;

/// Values that patterns have kept, by name.
pub(crate) type Kept = BTreeMap<String, Value>;

/// Whether `value` is as `pattern` says; the error names the place and what is wrong there.
pub(crate) fn matches(pattern: &Value, value: &Value, kept: &mut Kept) -> Result<(), String> {
    at("", pattern, value, kept)
}

fn at(place: &str, pattern: &Value, value: &Value, kept: &mut Kept) -> Result<(), String> {
    let wrong = || Err(format!("at {place:?}: {value} is not {pattern}"));
    match (pattern, value) {
        (Value::String(text), _) if text.starts_with('$') && !text.starts_with("$*") => {
            match named(text, value, kept) {
                true => Ok(()),
                false => wrong(),
            }
        }
        (Value::String(glob), Value::String(text)) if is_like(glob, text) => Ok(()),
        (Value::Array(items), Value::Array(values)) if items.first() == Some(&"$each".into()) => {
            if items[2] != values.len() {
                return Err(format!(
                    "at {place:?}: {} elements, not {}",
                    values.len(),
                    items[2]
                ));
            }
            each(place, values.iter().map(|value| (&items[1], value)), kept)
        }
        (Value::Array(items), Value::Array(values)) if items.len() == values.len() => {
            each(place, items.iter().zip(values), kept)
        }
        (Value::Object(fields), Value::Object(values)) => {
            let open = fields.contains_key("$more");
            let extra = values.keys().find(|key| !fields.contains_key(*key));
            if let (false, Some(extra)) = (open, extra) {
                return Err(format!("at {place:?}: unexpected {extra:?} in {value}"));
            }
            for (key, pattern) in fields.iter().filter(|(key, _)| *key != "$more") {
                let value = values.get(key);
                let value = value.ok_or_else(|| format!("at {place:?}: no {key:?}"))?;
                at(&format!("{place}.{key}"), pattern, value, kept)?;
            }
            Ok(())
        }
        _ if pattern == value => Ok(()),
        _ => wrong(),
    }
}

fn each<'a>(
    place: &str,
    pairs: impl Iterator<Item = (&'a Value, &'a Value)>,
    kept: &mut Kept,
) -> Result<(), String> {
    for (index, (pattern, value)) in pairs.enumerate() {
        at(&format!("{place}[{index}]"), pattern, value, kept)?;
    }
    Ok(())
}

fn named(name: &str, value: &Value, kept: &mut Kept) -> bool {
    match name {
        "$_" => true,
        "$int" => value.is_i64() || value.is_u64(),
        "$string" => value.is_string(),
        "$uuid" => value.as_str().is_some_and(is_uuid),
        "$time" => value.as_str().is_some_and(is_time),
        _ => kept.entry(name.to_owned()).or_insert_with(|| value.clone()) == value,
    }
}

/// `$*` in `glob` stands for any text.
fn is_like(glob: &str, text: &str) -> bool {
    let mut parts = glob.split("$*");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut ends_open = false;
    for part in parts {
        let Some(index) = rest.find(part) else {
            return false;
        };
        rest = &rest[index + part.len()..];
        ends_open = part.is_empty();
    }
    rest.is_empty() || ends_open
}

fn is_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.len() == 36
        && text
            .bytes()
            .enumerate()
            .all(|(index, byte)| match dashes.contains(&index) {
                true => byte == b'-',
                false => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            })
}

/// RFC 3339 in UTC: `2026-03-03T10:00:00Z`, with any fraction.
fn is_time(text: &str) -> bool {
    let shape: String = text
        .chars()
        .map(|char| if char.is_ascii_digit() { '0' } else { char })
        .collect();
    let fraction = shape
        .strip_prefix("0000-00-00T00:00:00")
        .and_then(|rest| rest.strip_suffix('Z'));
    match fraction.map(|fraction| fraction.strip_prefix('.').ok_or(fraction)) {
        Some(Ok(digits)) => !digits.is_empty() && digits.chars().all(|char| char == '0'),
        Some(Err(rest)) => rest.is_empty(),
        None => false,
    }
}
