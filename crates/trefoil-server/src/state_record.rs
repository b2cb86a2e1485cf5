//! The state as lines of NDJSON, as `/export?state=true` writes and `/import?state=new` reads them:
//! `{"state": ["SET", "key", "value"]}`, `{"tracking": {"source", "position"}}` and
//! `{"timer": {"key", "kind", "time"}}`.
//!
//! Words are written as in a commit: as text, or as `{"$base64": …}` if they are none that people can read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::value::RawValue;
use trefoil::{SetTimer, StateLine, Tracking};

use crate::error::{Failure, Result};
use crate::json::{ObjectWriter, put_array, put_number, put_string, text};
use crate::limits::WORDS_PER_COMMAND_MAX;
use crate::rpc::state::word;
use crate::strict;

/// Appends a line.
pub(crate) fn put_state_line(out: &mut Vec<u8>, line: &StateLine) {
    let mut object = ObjectWriter::begin(out);
    match line {
        StateLine::Command(words) => {
            put_array(object.field("state"), words, |out, word| {
                put_word(out, word);
            });
        }
        StateLine::Tracking(tracking) => {
            let mut inner = ObjectWriter::begin(object.field("tracking"));
            inner.text("source", &tracking.source);
            put_number(inner.field("position"), tracking.position);
            inner.end();
        }
        StateLine::Timer(timer) => {
            let mut inner = ObjectWriter::begin(object.field("timer"));
            put_word(inner.field("key"), &timer.key);
            put_number(inner.field("kind"), u64::from(timer.kind));
            put_number(inner.field("time"), timer.time);
            inner.end();
        }
    }
    object.end();
    out.push(b'\n');
}

fn put_word(out: &mut Vec<u8>, word: &Bytes) {
    let legible = std::str::from_utf8(word).ok();
    match legible.filter(|text| !text.contains(char::is_control)) {
        Some(text) => put_string(out, text),
        None => {
            let mut object = ObjectWriter::begin(out);
            object.text("$base64", &STANDARD.encode(word));
            object.end();
        }
    }
}

/// Reads a line of the state.
pub(crate) fn parse_state_line(line: &RawValue) -> Result<StateLine, String> {
    parse(line).map_err(|failure| failure.message)
}

fn parse(line: &RawValue) -> Result<StateLine> {
    let names = ["state", "timer", "tracking"];
    match strict::object(line, "the line", names)? {
        [Some(words), None, None] => parse_command(words).map(StateLine::Command),
        [None, Some(timer), None] => parse_timer(timer).map(StateLine::Timer),
        [None, None, Some(tracking)] => parse_tracking(tracking).map(StateLine::Tracking),
        _ => Err(Failure::invalid(
            "the line must have one of state, timer and tracking",
        )),
    }
}

fn parse_command(words: &RawValue) -> Result<Vec<Bytes>> {
    let words = strict::list(Some(words), "state", WORDS_PER_COMMAND_MAX)?;
    let words = words.into_iter().enumerate();
    words
        .map(|(index, value)| word(value, &format!("state[{index}]")))
        .collect()
}

fn parse_timer(timer: &RawValue) -> Result<SetTimer> {
    let [key, kind, time] = strict::object(timer, "timer", ["key", "kind", "time"])?;
    let key = key.ok_or_else(|| Failure::invalid("timer.key is missing"))?;
    let kind = strict::position(kind, "timer.kind")?;
    Ok(SetTimer {
        key: word(key, "timer.key")?,
        kind: u8::try_from(kind).map_err(|_| Failure::invalid("timer.kind must be below 256"))?,
        time: strict::position(time, "timer.time")?,
    })
}

fn parse_tracking(tracking: &RawValue) -> Result<Tracking> {
    let [source, position] = strict::object(tracking, "tracking", ["source", "position"])?;
    let source = source.and_then(text).map(std::borrow::Cow::into_owned);
    Ok(Tracking {
        source: source.ok_or_else(|| Failure::invalid("tracking.source must be a string"))?,
        position: strict::position(position, "tracking.position")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &StateLine) -> String {
        let mut out = Vec::new();
        put_state_line(&mut out, line);
        String::from_utf8(out).unwrap()
    }

    fn read(text: &str) -> Result<StateLine, String> {
        parse_state_line(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn lines_are_read_as_they_are_written() {
        let words = ["SET", "k\u{e9}y", "a\nb", "\"\\"].map(|word| Bytes::from(word.to_owned()));
        let binary = Bytes::from_static(&[0xff, 0]);
        let words = words.into_iter().chain([binary.clone()]).collect();
        for (line, text) in [
            (
                StateLine::Command(words),
                "{\"state\":[\"SET\",\"k\u{e9}y\",{\"$base64\":\"YQpi\"},\"\\\"\\\\\",{\"$base64\":\"/wA=\"}]}\n",
            ),
            (
                StateLine::Tracking(Tracking::new("a", 7)),
                "{\"tracking\":{\"source\":\"a\",\"position\":7}}\n",
            ),
            (
                StateLine::Timer(SetTimer {
                    kind: 2,
                    key: binary,
                    time: 9,
                }),
                "{\"timer\":{\"key\":{\"$base64\":\"/wA=\"},\"kind\":2,\"time\":9}}\n",
            ),
        ] {
            assert_eq!(written(&line), text);
            assert_eq!(read(text), Ok(line));
        }
    }

    #[test]
    fn what_is_wrong_with_a_line_is_named() {
        for (line, told) in [
            (r#"{"state":1}"#, "state must be an array"),
            (r#"{"state":["SET",[]]}"#, "state[1] must be a string"),
            (r#"{"state":[],"more":1}"#, "the line has no field \"more\""),
            (r#"{"state":[],"timer":{}}"#, "the line must have one of"),
            (r#"{"timer":{"kind":2,"time":1}}"#, "timer.key is missing"),
            (
                r#"{"timer":{"key":"k","kind":999,"time":1}}"#,
                "timer.kind must be below",
            ),
            (
                r#"{"timer":{"key":"k","kind":2,"time":-1}}"#,
                "timer.time must be a whole",
            ),
            (
                r#"{"tracking":{"position":1}}"#,
                "tracking.source must be a string",
            ),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.starts_with(told), "{line}: {error}");
        }
    }
}
