//! Conditions in words, and the queries in them.
//!
//! ```text
//! condition = VERSION stream version | NOMATCH [AFTER position] query
//! guard     = IFEQ key value | IFNE key value | NX key | XX key
//!           | HIFEQ key field value | HIFNE key field value | HNX key field | HXX key field
//! query     = item [OR item]…
//! item      = [TYPE type]… [TAG tag]…
//! ```
//!
//! An event matches a query if it matches one of its items: it has one of the item's types, if the
//! item names any, and all of its tags.

use trefoil::{Condition, Guard, Query, QueryItem, Wanted};

use super::failure::of_error;
use super::words::{ReplyResult, Words, error};

/// What `EXEC` says besides its name.
#[derive(Debug, Default)]
pub(super) struct ExecOptions {
    pub(super) is_strict: bool,
    pub(super) conditions: Vec<Condition>,
    pub(super) guards: Vec<Guard>,
}

impl ExecOptions {
    /// Reads `[STRICT] [condition | guard]…`.
    pub(super) fn parse(mut words: Words<'_>) -> ReplyResult<Self> {
        let mut options = Self {
            is_strict: words.take("strict"),
            ..Self::default()
        };
        while !words.is_empty() {
            if let Some(condition) = take_condition(&mut words)? {
                options.conditions.push(condition);
            } else {
                options.guards.push(take_guard(&mut words)?);
            }
        }
        Ok(options)
    }
}

/// Takes a condition on the log, if one comes next.
pub(super) fn take_condition(words: &mut Words<'_>) -> ReplyResult<Option<Condition>> {
    if words.take("version") {
        let stream = words.text()?.to_owned();
        let expected = words.integer()?;
        return Ok(Some(Condition::StreamVersion { stream, expected }));
    }
    if words.take("nomatch") {
        let after = if words.take("after") {
            Some(words.number()?)
        } else {
            None
        };
        let query = take_query(words)?;
        return Ok(Some(match after {
            Some(after) => Condition::no_match_after(query, after),
            None => Condition::no_match(query),
        }));
    }
    Ok(None)
}

/// Takes a query, which ends where its words do.
pub(super) fn take_query(words: &mut Words<'_>) -> ReplyResult<Query> {
    let mut items = vec![QueryItem::any()];
    while let Some(item) = items.last_mut() {
        if words.take("type") {
            item.types.push(words.text()?.to_owned());
        } else if words.take("tag") {
            item.tags.push(words.text()?.to_owned());
        } else if words.take("or") {
            items.push(QueryItem::any());
        } else {
            break;
        }
    }
    if items.len() > 1 && items.iter().any(QueryItem::is_any) {
        return Err(error("ERR OR stands between TYPE and TAG on both sides"));
    }
    items.retain(|item| !item.is_any());
    let query = Query { items };
    query.validate().map_err(|failure| of_error(&failure))?;
    Ok(query)
}

fn take_guard(words: &mut Words<'_>) -> ReplyResult<Guard> {
    let option = words.word()?;
    let name = option.to_ascii_lowercase();
    let (is_field, name) = match name.strip_prefix(b"h") {
        Some(name) => (true, name),
        None => (false, name.as_slice()),
    };
    if ![b"ifeq".as_slice(), b"ifne", b"nx", b"xx"].contains(&name) {
        let option = String::from_utf8_lossy(option);
        return Err(error(format!("ERR there is no condition '{option}'")));
    }
    let key = words.word()?.clone();
    let field = match is_field {
        true => Some(words.word()?.clone()),
        false => None,
    };
    let mut value = || words.word().cloned();
    let wanted = match name {
        b"ifeq" => Wanted::Equal(value()?),
        b"ifne" => Wanted::NotEqual(value()?),
        b"nx" => Wanted::Absent,
        _ => Wanted::Present,
    };
    Ok(Guard { key, field, wanted })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use trefoil::Reply;

    use super::*;

    fn words(line: &str) -> Vec<Bytes> {
        let words = line.split_whitespace();
        words.map(|word| word.to_owned().into()).collect()
    }

    fn parse(line: &str) -> ReplyResult<ExecOptions> {
        ExecOptions::parse(Words::after(&words(line), 0))
    }

    #[test]
    fn conditions_and_guards_follow_one_another() {
        let line = "strict IFEQ k v NX a version s-1 -1 HIFNE h f v nomatch after 7 TYPE A type B TAG x \
                    OR TAG y hxx h f NOMATCH";
        let options = parse(line).unwrap();
        assert!(options.is_strict);
        let guard = |key: &'static str, field: Option<&'static str>, wanted| Guard {
            key: key.into(),
            field: field.map(Bytes::from),
            wanted,
        };
        let expected = [
            guard("k", None, Wanted::Equal("v".into())),
            guard("a", None, Wanted::Absent),
            guard("h", Some("f"), Wanted::NotEqual("v".into())),
            guard("h", Some("f"), Wanted::Present),
        ];
        assert_eq!(options.guards, expected);
        let item = QueryItem::any().of_type("A").of_type("B").tagged("x");
        let query = Query::from(item).or(QueryItem::any().tagged("y"));
        let expected = [
            Condition::StreamVersion {
                stream: "s-1".into(),
                expected: -1,
            },
            Condition::no_match_after(query, 7),
            Condition::no_match(Query::all()),
        ];
        assert_eq!(options.conditions, expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, expected) in [
            ("FOO k", "ERR there is no condition 'FOO'"),
            ("NX a STRICT", "ERR there is no condition 'STRICT'"),
            ("NX", "ERR syntax error"),
            ("IFEQ k", "ERR syntax error"),
            ("HXX k", "ERR syntax error"),
            ("VERSION s", "ERR syntax error"),
            ("VERSION s x", "ERR value is not an integer or out of range"),
            (
                "NOMATCH AFTER -1",
                "ERR value is out of range, must be positive",
            ),
            ("NOMATCH TYPE", "ERR syntax error"),
            (
                "NOMATCH TYPE A OR",
                "ERR OR stands between TYPE and TAG on both sides",
            ),
            (
                "NOMATCH OR TAG a",
                "ERR OR stands between TYPE and TAG on both sides",
            ),
        ] {
            match parse(line) {
                Err(Reply::Error(text)) => assert_eq!(text, expected, "{line}"),
                other => panic!("{line}: {other:?}"),
            }
        }
    }
}
