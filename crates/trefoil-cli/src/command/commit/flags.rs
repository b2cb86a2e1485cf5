//! Parts of a commit on the command line.

use serde_json::value::RawValue;

use super::request::{CommitEvent, TrackedPosition};

/// `TYPE`, `TYPE@STREAM`, each with `=JSON` behind it, or a whole event as JSON.
#[derive(Debug, Clone)]
pub(super) enum EventArgument {
    Whole(Box<RawValue>),
    Parts {
        event_type: String,
        stream: Option<String>,
        data: Box<RawValue>,
    },
}

impl EventArgument {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('{') {
            return raw(text).map(Self::Whole);
        }
        let (names, data) = text.split_once('=').unwrap_or((text, "{}"));
        let (event_type, stream) = match names.split_once('@') {
            Some((event_type, stream)) => (event_type, Some(stream.to_owned())),
            None => (names, None),
        };
        if event_type.is_empty() || stream.as_deref() == Some("") {
            return Err("expected TYPE, TYPE@STREAM or TYPE@STREAM=JSON".to_owned());
        }
        Ok(Self::Parts {
            event_type: event_type.to_owned(),
            stream,
            data: raw(data)?,
        })
    }

    /// The event as it is sent; `tags` are those of events that are not given whole.
    pub(super) fn event<'a>(&'a self, tags: &'a [String]) -> CommitEvent<'a> {
        match self {
            Self::Whole(event) => CommitEvent::Whole(event),
            Self::Parts {
                event_type,
                stream,
                data,
            } => CommitEvent::Parts {
                stream: stream.as_deref(),
                event_type,
                data: std::borrow::Cow::Borrowed(data),
                metadata: None,
                tags,
                id: None,
            },
        }
    }
}

fn raw(text: &str) -> Result<Box<RawValue>, String> {
    let value = RawValue::from_string(text.to_owned());
    value.map_err(|error| format!("the data is not JSON: {error}"))
}

/// A name and a value around the last equals sign.
fn pair(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once('=').filter(|(name, _)| !name.is_empty())
}

/// `STREAM=VERSION`
pub(super) fn parse_version(text: &str) -> Result<(String, i64), String> {
    let found = pair(text).and_then(|(stream, version)| {
        let version = version.parse().ok()?;
        Some((stream.to_owned(), version))
    });
    found.ok_or_else(|| "expected STREAM=VERSION, as in account-1=-1".to_owned())
}

/// `SOURCE=POSITION`
pub(super) fn parse_tracking(text: &str) -> Result<TrackedPosition, String> {
    let found = pair(text).and_then(|(source, position)| {
        let position = position.parse().ok()?;
        let source = source.to_owned();
        Some(TrackedPosition { source, position })
    });
    found.ok_or_else(|| "expected SOURCE=POSITION".to_owned())
}

/// `KEY=VALUE`; the key ends at the first equals sign.
pub(super) fn parse_equals(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err("expected KEY=VALUE".to_owned()),
    }
}

/// The words of a command, apart by spaces. Quotes keep spaces together: '…' as they are, "…" with
/// \" and \\ in them.
pub(super) fn parse_command(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            quote @ ('"' | '\'') => quoted(&mut characters, quote, word.get_or_insert_default())?,
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    match words.is_empty() {
        true => Err("expected a command, as in SET key value".to_owned()),
        false => Ok(words),
    }
}

fn quoted(
    characters: &mut std::str::Chars<'_>,
    quote: char,
    word: &mut String,
) -> Result<(), String> {
    while let Some(character) = characters.next() {
        match character {
            end if end == quote => return Ok(()),
            '\\' if quote == '"' => word.extend(characters.next()),
            other => word.push(other),
        }
    }
    Err(format!("a {quote} is not closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_in_each_form() {
        let sent = |text: &str| {
            let event = EventArgument::parse(text)?;
            Ok::<_, String>(serde_json::to_string(&event.event(&["t".to_owned()])).unwrap())
        };
        for (text, expected) in [
            ("Opened", r#"{"type":"Opened","data":{},"tags":["t"]}"#),
            (
                r#"Opened@account-1={"a": "=@"}"#,
                r#"{"stream":"account-1","type":"Opened","data":{"a": "=@"},"tags":["t"]}"#,
            ),
            ("Counted=7", r#"{"type":"Counted","data":7,"tags":["t"]}"#),
            (r#"{"type":"a=b"}"#, r#"{"type":"a=b"}"#),
        ] {
            assert_eq!(sent(text).unwrap(), expected);
        }
        for text in ["", "@account-1", "Opened@", "Opened={", "=1"] {
            assert!(sent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn commands_are_split_into_words() {
        let words = |text: &str| parse_command(text).map(|words| words.join("|"));
        for (text, expected) in [
            ("SET k v", "SET|k|v"),
            ("  SET 'a b'  \"c \\\"d\\\\\" '' ", "SET|a b|c \"d\\|"),
            ("HSET h f{\"a\" 1", "HSET|h|f{a|1"),
        ] {
            assert_eq!(words(text).unwrap(), expected);
        }
        assert!(words("").is_err() && words("SET 'a").is_err());
        assert_eq!(parse_version("a=b=-1").unwrap(), ("a=b".to_owned(), -1));
        assert!(parse_version("a").is_err() && parse_version("=1").is_err());
        assert_eq!(parse_tracking("db=41").unwrap().position, 41);
        assert!(parse_tracking("db=-1").is_err());
        assert_eq!(parse_equals("k=a=b").unwrap().1, "a=b");
    }
}
