//! Events as lines of NDJSON, as `/export` writes and `/import` reads them:
//! `{"id", "stream", "type", "pos", "gpos", "data" | "data64", "meta", "time", "tags"?,
//! "tracking"?: {"source", "position"}, "redacted"?}`.
//!
//! `data64` stands for data that is not JSON, or that a line of JSON could not hold byte for byte.
//! An event without a stream has the stream `""` and the position -1: a line that says nothing of its
//! stream is a mistake.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::value::RawValue;
use trefoil::limits::{EVENT_DATA_BYTES_MAX, JSON_DEPTH_MAX, TAGS_PER_EVENT_MAX};
use trefoil::{
    Event, EventId, ImportedEvent, Json, NewEvent, Payload, StateLine, Timestamp, Tracking,
    parse_event_id,
};

use crate::json::{
    elements, fields, is_shallow, present, put_display, put_id, put_number, put_on_one_line,
    put_string, put_time, text,
};
use crate::rpc::rows::{put_stream_position, put_tags};
use crate::state_record::parse_state_line;
use crate::strict;

/// Appends an event as a line.
pub(crate) fn put_line(out: &mut Vec<u8>, event: &Event) {
    out.reserve(event.stored_bytes() + 200);
    out.extend_from_slice(b"{\"id\":");
    put_id(out, event.id());
    out.extend_from_slice(b",\"stream\":");
    put_string(out, event.stream().unwrap_or_default());
    out.extend_from_slice(b",\"type\":");
    put_string(out, event.event_type());
    out.extend_from_slice(b",\"pos\":");
    put_stream_position(out, event);
    out.extend_from_slice(b",\"gpos\":");
    put_number(out, event.position());
    if let Some(data) = legible_data(event) {
        out.extend_from_slice(b",\"data\":");
        put_on_one_line(out, data);
    } else {
        out.extend_from_slice(b",\"data64\":");
        put_display(out, STANDARD.encode(event.data()));
    }
    out.extend_from_slice(b",\"meta\":");
    put_on_one_line(out, event.metadata().unwrap_or(b"null"));
    out.extend_from_slice(b",\"time\":");
    put_time(out, event.time());
    if event.tags().next().is_some() {
        out.extend_from_slice(b",\"tags\":");
        put_tags(out, event);
    }
    if let Some(tracking) = event.tracking() {
        out.extend_from_slice(b",\"tracking\":{\"source\":");
        put_string(out, &tracking.source);
        out.extend_from_slice(b",\"position\":");
        put_number(out, tracking.position);
        out.push(b'}');
    }
    if event.is_redacted() {
        out.extend_from_slice(b",\"redacted\":true");
    }
    out.extend_from_slice(b"}\n");
}

/// The data if it is JSON that an import takes back. What has no stream came as bytes that may be
/// meant to be compared as such, so nothing of it is changed, not even a line break.
fn legible_data(event: &Event) -> Option<&[u8]> {
    let data = event.data_is_json().then(|| event.data())?;
    let has_line_break = || data.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
    let is_legible =
        event.stream().is_some() || (!has_line_break() && is_shallow(data, JSON_DEPTH_MAX));
    is_legible.then_some(data)
}

/// Why a line is not an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not JSON.
    Json(String),
    /// It is JSON, but not such an event.
    Record(String),
}

/// What becomes of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImportedIds {
    /// They are kept, or the line is refused.
    Kept,
    /// Events whose ids cannot be kept get new ones.
    NewIfNeeded,
}

/// What a line of an import holds.
#[derive(Debug)]
pub(crate) enum ImportLine {
    Event(Box<ImportedEvent>),
    State(StateLine),
}

const NAMES: [&str; 12] = [
    "id", "stream", "type", "pos", "gpos", "data", "data64", "meta", "time", "tags", "redacted",
    "tracking",
];

/// The values of these names.
type RecordValues<'a> = [Option<&'a RawValue>; NAMES.len()];

/// Reads a line.
pub(crate) fn parse_line(line: &Bytes, ids: ImportedIds) -> Result<ImportLine, Refusal> {
    let value: &RawValue =
        serde_json::from_slice(line).map_err(|error| Refusal::Json(error.to_string()))?;
    let values = fields(value, NAMES).ok_or_else(|| "record must be an object".to_owned());
    let parsed = values.and_then(|values| match is_of_event(value, &values) {
        true => parse_record(line, values, ids).map(|event| ImportLine::Event(Box::new(event))),
        false => parse_state_line(value).map(ImportLine::State),
    });
    parsed.map_err(Refusal::Record)
}

/// An event says more than what is tracked; a line of the state does not.
fn is_of_event(value: &RawValue, values: &RecordValues<'_>) -> bool {
    let is_of_state = || {
        let found = fields(value, ["state", "timer", "tracking"]);
        found.is_some_and(|found| found.iter().any(Option::is_some))
    };
    values[..NAMES.len() - 1].iter().any(Option::is_some) || !is_of_state()
}

fn parse_record(
    line: &Bytes,
    values: RecordValues<'_>,
    ids: ImportedIds,
) -> Result<ImportedEvent, String> {
    let [
        id,
        stream,
        event_type,
        pos,
        gpos,
        data,
        data64,
        meta,
        time,
        tags,
        redacted,
        tracking,
    ] = values;
    let id = match present(id).map(parse_id).transpose() {
        Err(_) if ids == ImportedIds::NewIfNeeded => None,
        id => id?,
    };
    let stream = present(stream).ok_or("stream is missing")?;
    let stream = text(stream).ok_or("stream must be a string")?;
    let stream = Some(stream.into_owned()).filter(|stream| !stream.is_empty());
    let event_type = event_type
        .and_then(text)
        .ok_or("type must be a string")?
        .into_owned();
    let stream_position = match stream {
        Some(_) => parse_position(pos, "pos")?,
        None => 0,
    };
    let position = parse_position(gpos, "gpos")?;
    if position == 0 {
        return Err("gpos must not be 0".to_owned());
    }
    let time = time.and_then(text).and_then(|time| Timestamp::parse(&time));
    let mut event = NewEvent::of(event_type, payload(line, data, data64)?);
    event.id = id;
    event.stream = stream;
    event.metadata = present(meta)
        .map(|meta| stored(line, meta, "meta"))
        .transpose()?;
    event.tags = parse_tags(present(tags))?;
    event
        .validate(EVENT_DATA_BYTES_MAX)
        .map_err(|error| error.to_string())?;
    let time = time.ok_or("time must be an RFC 3339 time")?;
    let is_redacted =
        strict::flag(present(redacted), "redacted").map_err(|failure| failure.message)?;
    // Nobody compares what a redacted event says, so it must say nothing.
    if is_redacted && event.data.bytes().as_ref() != b"null" {
        return Err("the data of a redacted event must be null".to_owned());
    }
    Ok(ImportedEvent {
        tracking: present(tracking).map(parse_tracking).transpose()?,
        event,
        stream_position,
        position,
        time,
        is_redacted,
    })
}

fn parse_id(value: &RawValue) -> Result<EventId, String> {
    let id = text(value).and_then(|id| parse_event_id(&id));
    id.ok_or_else(|| "id must be a UUID; newIds=true has one made".to_owned())
}

fn parse_position(value: Option<&RawValue>, name: &str) -> Result<u64, String> {
    strict::position(value, name).map_err(|failure| failure.message)
}

fn stored(line: &Bytes, value: &RawValue, name: &str) -> Result<Json, String> {
    if !is_shallow(value.get().as_bytes(), JSON_DEPTH_MAX) {
        return Err(format!(
            "{name} is nested too deeply, the limit is {JSON_DEPTH_MAX}"
        ));
    }
    Ok(Json::found_in(line, value))
}

fn payload(
    line: &Bytes,
    data: Option<&RawValue>,
    data64: Option<&RawValue>,
) -> Result<Payload, String> {
    match (data, present(data64)) {
        (Some(data), None) => Ok(Payload::json(stored(line, data, "data")?)),
        (None, Some(data64)) => {
            let bytes = text(data64).and_then(|data64| STANDARD.decode(&*data64).ok());
            Ok(Payload::detect(bytes.ok_or("data64 must be base64")?))
        }
        (None, None) => Err("data is missing".to_owned()),
        (Some(_), Some(_)) => Err("data and data64 exclude each other".to_owned()),
    }
}

/// Positions in other logs are not bound to what we allow in ours.
fn parse_tracking(value: &RawValue) -> Result<Tracking, String> {
    let fields = fields(value, ["source", "position"]);
    let [source, position] = fields.ok_or("tracking must be an object")?;
    let source = source.and_then(text);
    let source = source.ok_or("tracking.source must be a string")?;
    let position = position.and_then(|position| position.get().parse().ok());
    let position = position.ok_or("tracking.position must be a number from 0")?;
    let tracking = Tracking::new(source, position);
    tracking.validate().map_err(|error| error.to_string())?;
    Ok(tracking)
}

fn parse_tags(value: Option<&RawValue>) -> Result<Vec<String>, String> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let tags = elements(value, TAGS_PER_EVENT_MAX).ok_or("tags must be an array")?;
    let tags = tags
        .map_err(|count| format!("number of tags is {count}, the limit is {TAGS_PER_EVENT_MAX}"))?;
    let tag = |tag| text(tag).map(std::borrow::Cow::into_owned);
    let tags: Option<Vec<String>> = tags.into_iter().map(tag).collect();
    tags.ok_or_else(|| "tags must be an array of strings".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"id":"550e8400-e29b-41d4-a716-446655440000","stream":"order-1","type":"Created","pos":0,"gpos":47,"data":{"amount":1.0},"meta":null,"time":"2025-01-15T10:00:00+01:00"}"#;

    const NO_POSITION: &str = "pos must be a whole number from 0 to 9007199254740991";

    fn parse_event(line: &Bytes, ids: ImportedIds) -> Result<ImportedEvent, Refusal> {
        match parse_line(line, ids)? {
            ImportLine::Event(event) => Ok(*event),
            ImportLine::State(line) => panic!("{line:?}"),
        }
    }

    fn refused(from: &str, to: &str) -> String {
        assert!(LINE.contains(from), "{from}");
        match parse_event(&Bytes::from(LINE.replace(from, to)), ImportedIds::Kept) {
            Err(Refusal::Record(text)) => text,
            other => panic!("{to}: {other:?}"),
        }
    }

    #[test]
    fn a_line_of_eventodb_is_read() {
        let read = parse_event(&Bytes::from_static(LINE.as_bytes()), ImportedIds::Kept).unwrap();
        assert_eq!((read.position, read.stream_position), (47, 0));
        assert_eq!(read.time.to_string(), "2025-01-15T09:00:00Z");
        assert_eq!(
            read.event.data,
            Payload::json(Bytes::from_static(b"{\"amount\":1.0}"))
        );
        assert_eq!(read.event.metadata, None);
    }

    #[test]
    fn bytes_that_are_json_are_json_and_an_id_may_be_missing() {
        let line = LINE.replace("\"550e8400-e29b-41d4-a716-446655440000\"", "null");
        // {\n}, and a byte that is no text.
        for (packed, expected) in [
            ("ewp9", Payload::json(Bytes::from_static(b"{\n}"))),
            ("/w==", Payload::binary(Bytes::from_static(b"\xff"))),
            ("", Payload::binary(Bytes::new())),
        ] {
            let data64 = format!("\"data64\":\"{packed}\"");
            let line = line.replace("\"data\":{\"amount\":1.0}", &data64);
            let read = parse_event(&Bytes::from(line), ImportedIds::Kept).unwrap();
            assert_eq!((read.event.data, read.event.id), (expected, None));
        }
        let line = Bytes::from(LINE.replace("550e8400", "nope"));
        let read = parse_event(&line, ImportedIds::NewIfNeeded).unwrap();
        assert_eq!(read.event.id, None);
    }

    #[test]
    fn what_is_wrong_with_a_line_is_named() {
        let cases = [
            (
                "2025-01-15T10",
                "yesterday",
                "time must be an RFC 3339 time",
            ),
            (
                "550e8400",
                "nope",
                "id must be a UUID; newIds=true has one made",
            ),
            ("\"stream\":\"order-1\",", "", "stream is missing"),
            ("\"order-1\"", "null", "stream is missing"),
            (
                "\"meta\":null",
                "\"tracking\":{\"source\":1}",
                "tracking.source must be a string",
            ),
            (
                "\"meta\":null",
                "\"tracking\":{\"source\":\"a\",\"position\":-1}",
                "tracking.position must be a number from 0",
            ),
            (
                "\"data\":{\"amount\":1.0}",
                "\"data64\":\"a\"",
                "data64 must be base64",
            ),
            ("\"pos\":0", "\"pos\":-1", NO_POSITION),
            ("\"pos\":0", "\"pos\":0.5", NO_POSITION),
            ("\"pos\":0", "\"pos\":null", NO_POSITION),
            ("\"gpos\":47", "\"gpos\":0", "gpos must not be 0"),
            (
                "\"meta\":null",
                "\"meta\":3",
                "event metadata is not a JSON object",
            ),
            ("\"data\":", "\"body\":", "data is missing"),
            (
                "\"meta\":null",
                "\"tags\":[1]",
                "tags must be an array of strings",
            ),
            (
                "\"Created\"",
                "\"\"",
                "event type must be a non-empty string",
            ),
        ];
        for (from, to, expected) in cases {
            assert_eq!(refused(from, to), expected);
        }
        let not_json = parse_line(&Bytes::from_static(b"{\"id\":"), ImportedIds::Kept);
        assert!(matches!(not_json, Err(Refusal::Json(_))));
    }
}
