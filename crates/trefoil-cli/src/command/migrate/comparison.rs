//! Comparing what was migrated with where it came from, event by event.

use std::io::{BufRead as _, BufReader, Lines, Read};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;
use trefoil::Timestamp;

use crate::client::HttpClient;

/// An event as it must be here.
#[derive(Debug, Default)]
pub(super) struct ExpectedEvent<'a> {
    pub(super) position: u64,
    /// `None`: it has none there, or need not keep it.
    pub(super) id: Option<&'a str>,
    /// Its stream and the position in that, if it has one.
    pub(super) stream: Option<(&'a str, i64)>,
    pub(super) event_type: &'a str,
    pub(super) tags: &'a [String],
    pub(super) data: &'a [u8],
    pub(super) metadata: Option<Json>,
    /// `None`: it has none there.
    pub(super) time: Option<Timestamp>,
}

/// A line of an export.
#[derive(Debug, Deserialize)]
struct ExportedLine {
    id: String,
    stream: String,
    #[serde(rename = "type")]
    event_type: String,
    pos: i64,
    gpos: u64,
    data: Option<Box<RawValue>>,
    data64: Option<String>,
    meta: Option<Json>,
    time: String,
    #[serde(default)]
    tags: Vec<String>,
}

/// What is here, read along with what is there.
pub(super) struct MigratedEvents {
    lines: Lines<BufReader<Box<dyn Read>>>,
    compared: u64,
}

impl MigratedEvents {
    /// Reads all events of the namespace.
    pub(super) fn of(client: &HttpClient) -> anyhow::Result<Self> {
        let body = client.get("/export", &[], None)?.into_reader();
        let body: Box<dyn Read> = Box::new(body);
        Ok(Self {
            lines: BufReader::new(body).lines(),
            compared: 0,
        })
    }

    /// Compares the next event, or says how it differs.
    pub(super) fn expect(&mut self, expected: &ExpectedEvent<'_>) -> anyhow::Result<()> {
        let position = expected.position;
        let missing = || format!("the event at position {position} is missing here");
        let line = self.lines.next().with_context(missing)?;
        let line: ExportedLine = serde_json::from_str(&line.context("the export broke off")?)?;
        if line.gpos != position {
            bail!("{}: the next one is at position {}", missing(), line.gpos);
        }
        if let Some(what) = line.difference(expected) {
            bail!("the event at position {position} has another {what} here");
        }
        self.compared += 1;
        Ok(())
    }

    /// Returns how many events are the same on both sides. Nothing but them may be here up to a position.
    pub(super) fn finish(mut self, last: u64) -> anyhow::Result<u64> {
        if let Some(line) = self.lines.next() {
            let line: ExportedLine = serde_json::from_str(&line.context("the export broke off")?)?;
            if line.gpos <= last {
                bail!("the event at position {} is only here", line.gpos);
            }
        }
        Ok(self.compared)
    }
}

impl ExportedLine {
    fn difference(&self, expected: &ExpectedEvent<'_>) -> Option<&'static str> {
        let stream = (!self.stream.is_empty()).then_some((self.stream.as_str(), self.pos));
        let time = || Timestamp::parse(&self.time);
        let differs = [
            (
                "id",
                { expected.id }.is_some_and(|id| !self.id.eq_ignore_ascii_case(id)),
            ),
            ("stream", stream != expected.stream),
            ("type", self.event_type != expected.event_type),
            ("time", expected.time.is_some() && time() != expected.time),
            ("metadata", self.meta != expected.metadata),
            ("list of tags", self.tags != expected.tags),
            ("content", !self.has_data(expected.data)),
        ];
        let mut found = differs.iter().filter(|(_, differs)| *differs);
        found.next().map(|(what, _)| *what)
    }

    /// Bytes are the same, or they are the same JSON: a line has no line breaks.
    fn has_data(&self, expected: &[u8]) -> bool {
        let parse = |bytes: &[u8]| serde_json::from_slice::<Json>(bytes).ok();
        match (&self.data, &self.data64) {
            (Some(data), _) => {
                let data = data.get().as_bytes();
                data == expected || parse(data).is_some_and(|data| Some(data) == parse(expected))
            }
            (None, Some(data)) => STANDARD.decode(data).is_ok_and(|data| data == expected),
            (None, None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_found() {
        let tags = ["a".to_owned()];
        let expected = |change: fn(&mut ExpectedEvent<'_>)| {
            let mut expected = ExpectedEvent {
                position: 7,
                id: Some("B"),
                stream: Some(("account-1", 3)),
                event_type: "Opened",
                tags: &tags,
                data: br#"{"a": 1}"#,
                metadata: Some(serde_json::json!({"m": 1})),
                time: Timestamp::parse("2026-01-01T00:00:00Z"),
            };
            change(&mut expected);
            let line = r#"{"id":"b","stream":"account-1","type":"Opened","pos":3,"gpos":7,
                "data":{"a":1},"meta":{"m":1},"time":"2026-01-01T00:00:00.000Z","tags":["a"]}"#;
            let line: ExportedLine = serde_json::from_str(line).unwrap();
            line.difference(&expected)
        };
        assert_eq!(expected(|_| {}), None);
        assert_eq!(expected(|event| event.id = None), None);
        assert_eq!(expected(|event| event.time = None), None);
        assert_eq!(expected(|event| event.id = Some("c")), Some("id"));
        assert_eq!(expected(|event| event.stream = None), Some("stream"));
        assert_eq!(expected(|event| event.event_type = "X"), Some("type"));
        assert_eq!(expected(|event| event.tags = &[]), Some("list of tags"));
        assert_eq!(expected(|event| event.data = b"{}"), Some("content"));
        assert_eq!(expected(|event| event.metadata = None), Some("metadata"));
        assert_eq!(
            expected(|event| event.time = Some(Timestamp(0))),
            Some("time")
        );
    }
}
