//! Requests of methods that are ours alone are read strictly: every value has its type, and every
//! name is known and there once.
//!
//! Nothing that a caller says may be passed over: a misspelt name would leave out a condition, a
//! tag or a demand, and the commit would be written or everything would match.

use std::borrow::Cow;

use serde_json::value::RawValue;
use trefoil::Error;
use trefoil::limits::POSITION_MAX;

use crate::error::{Failure, Result};
use crate::json::{Misfit, elements, only_fields, text};

/// The longest unknown name that an error repeats.
const NAME_SHOWN_MAX: usize = 100;

/// The values of the named fields of an object that has each of them at most once, and no others.
/// `what` is how errors call it.
pub(crate) fn object<'a, const N: usize>(
    value: &'a RawValue,
    what: &str,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N]> {
    let found = only_fields(value, names);
    let found = found.ok_or_else(|| Failure::invalid(format!("{what} must be an object")))?;
    found.map_err(|misfit| {
        Failure::invalid(match misfit {
            Misfit::Repeated(name) => format!("{what} has the field {name:?} more than once"),
            Misfit::Unknown(name) => unknown_name(what, "field", &name, &names),
        })
    })
}

/// Says that `what` has no part of the kind `kind` with this name, and which name was meant.
pub(crate) fn unknown_name(what: &str, kind: &str, unknown: &str, names: &[&str]) -> String {
    let shown: String = unknown.chars().take(NAME_SHOWN_MAX).collect();
    match nearest(&shown, names) {
        Some(meant) => format!("{what} has no {kind} {shown:?}: did you mean {meant:?}?"),
        None if names.is_empty() => format!("{what} has no {kind} {shown:?}"),
        None => format!("{what} has no {kind} {shown:?}, only {}", names.join(", ")),
    }
}

/// The name that was probably meant: at most one letter in three is wrong. Case, `_` and `-` are no
/// difference.
fn nearest<'a>(unknown: &str, names: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let unknown = plain(unknown);
    let changes = |name: &str| strsim::osa_distance(&unknown, &plain(name));
    let nearest = names.iter().min_by_key(|name| changes(name))?;
    (changes(nearest) <= nearest.len().div_ceil(3)).then_some(nearest)
}

/// The elements of an array; none if there is no array.
pub(crate) fn list<'a>(
    value: Option<&'a RawValue>,
    what: &str,
    limit: usize,
) -> Result<Vec<&'a RawValue>> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let found = elements(value, limit);
    let found = found.ok_or_else(|| Failure::invalid(format!("{what} must be an array")))?;
    found.map_err(|count| Error::over_limit(&format!("length of {what}"), count, limit).into())
}

/// The elements of an array of texts; none if there is no array.
pub(crate) fn texts(value: Option<&RawValue>, what: &str, limit: usize) -> Result<Vec<String>> {
    let found = list(value, what, limit)?;
    let found = found
        .into_iter()
        .map(|value| text(value).map(Cow::into_owned));
    let found: Option<Vec<String>> = found.collect();
    found.ok_or_else(|| Failure::invalid(format!("{what} must be an array of strings")))
}

/// A text that is neither missing nor empty.
pub(crate) fn name(value: Option<&RawValue>, what: &str) -> Result<String> {
    let found = value.and_then(text).filter(|name| !name.is_empty());
    let found = found.map(Cow::into_owned);
    found.ok_or_else(|| Failure::invalid(format!("{what} must be a non-empty string")))
}

/// A position, in this log or another one, that is not missing.
pub(crate) fn position(value: Option<&RawValue>, what: &str) -> Result<u64> {
    let found = value.and_then(|value| whole_number(value.get()));
    let found = found.filter(|position| *position <= POSITION_MAX);
    found.ok_or_else(|| {
        Failure::invalid(format!(
            "{what} must be a whole number from 0 to {POSITION_MAX}"
        ))
    })
}

/// A position, if there is one.
pub(crate) fn optional_position(value: Option<&RawValue>, what: &str) -> Result<Option<u64>> {
    value.map(|value| position(Some(value), what)).transpose()
}

/// A yes or a no; no if it is not said.
pub(crate) fn flag(value: Option<&RawValue>, what: &str) -> Result<bool> {
    flag_or(value, what, false)
}

/// A yes or a no; `default` if it is not said.
pub(crate) fn flag_or(value: Option<&RawValue>, what: &str, default: bool) -> Result<bool> {
    match value.map(RawValue::get) {
        None => Ok(default),
        Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Failure::invalid(format!("{what} must be true or false"))),
    }
}

/// A JSON number without sign and fraction, also one that is written with a point or an exponent.
fn whole_number(text: &str) -> Option<u64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let number: f64 = text.parse().ok()?;
    let is_whole = number.fract() == 0.0 && (0.0..=POSITION_MAX as f64).contains(&number);
    is_whole.then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn positions_are_whole_numbers_that_every_client_can_tell_apart() {
        for (text, expected) in [
            ("0", Some(0)),
            ("7.0", Some(7)),
            ("1e3", Some(1000)),
            ("-0", Some(0)),
            ("9007199254740991", Some(POSITION_MAX)),
            ("9007199254740992", None),
            ("18446744073709551616", None),
            ("1e300", None),
            ("1.5", None),
            ("-1", None),
            ("\"1\"", None),
            ("true", None),
            ("[1]", None),
        ] {
            assert_eq!(position(Some(raw(text)), "after").ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_name_that_is_unknown_or_repeated_is_told() {
        let names = ["items", "stream", "expectedVersion"];
        for (text, expected) in [
            (
                r#"{"items":[],"tgas":["x"]}"#,
                r#"query has no field "tgas", only items, stream, expectedVersion"#,
            ),
            (
                r#"{"itmes":[]}"#,
                r#"query has no field "itmes": did you mean "items"?"#,
            ),
            (
                r#"{"expected_version":1}"#,
                r#"query has no field "expected_version": did you mean "expectedVersion"?"#,
            ),
            (
                r#"{"items":[],"stream":1,"items":[]}"#,
                r#"query has the field "items" more than once"#,
            ),
            (
                r#"{"items":[],"\u0069tems":[]}"#,
                r#"query has the field "items" more than once"#,
            ),
        ] {
            let refused = object(raw(text), "query", names).unwrap_err();
            assert_eq!(refused.message, expected);
        }
        let long = format!(r#"{{"{}":1}}"#, "n".repeat(100_000));
        let refused = object(raw(&long), "query", ["items"]).unwrap_err();
        assert!(refused.message.len() < 200, "{}", refused.message);
        let refused = object(raw("[]"), "query", ["items"]).unwrap_err();
        assert_eq!(refused.message, "query must be an object");
    }
}
