//! The operations that are measured over HTTP, the requests of each, and what its answer must be.

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use fastrand::Rng;
use serde_json::Value;

use super::client;
use super::server::{Server, post};
use crate::workload::{Pool, Workload};

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Operation {
    /// Append one event to a stream.
    Write,
    /// Read 100 events of a stream.
    StreamGet,
    /// Read 100 events of a category.
    CategoryGet,
    /// Read the last event of a stream.
    StreamLast,
    /// Ask for the version of a stream.
    StreamVersion,
}

/// The category of the events that are read.
const CATEGORY: &str = "benchmark";
const STREAMS: u64 = 200;
const EVENTS_PER_STREAM: usize = 100;
/// How many requests are made before the measurement; they are repeated as often as need be.
const REQUESTS: usize = 20_000;

impl Operation {
    pub(crate) const ALL: [Self; 5] = [
        Self::Write,
        Self::StreamGet,
        Self::CategoryGet,
        Self::StreamLast,
        Self::StreamVersion,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Write => "stream.write of one event",
            Self::StreamGet => "stream.get of 100 events",
            Self::CategoryGet => "category.get of 100 events",
            Self::StreamLast => "stream.last",
            Self::StreamVersion => "stream.version",
        }
    }

    /// Requests as bytes to send; the answer to the first read is checked.
    pub(crate) fn requests(self, pool: &Pool, server: &Server) -> Result<Vec<Vec<u8>>> {
        if self == Self::Write {
            return Ok(writes(pool, server));
        }
        let mut random = Rng::with_seed(11);
        let mut request = || post(server.address, &self.read(random.u64(..STREAMS)));
        let requests: Vec<_> = (0..REQUESTS).map(|_| request()).collect();
        self.check(&client::ask(server.address, &requests[0])?)?;
        Ok(requests)
    }

    fn read(self, stream: u64) -> String {
        let stream = format!("{CATEGORY}-{stream}");
        match self {
            Self::CategoryGet => {
                format!(r#"["category.get","{CATEGORY}",{{"batchSize":{EVENTS_PER_STREAM}}}]"#)
            }
            Self::StreamLast => format!(r#"["stream.last","{stream}"]"#),
            Self::StreamVersion => format!(r#"["stream.version","{stream}"]"#),
            _ => format!(r#"["stream.get","{stream}",{{"batchSize":{EVENTS_PER_STREAM}}}]"#),
        }
    }

    /// Whether an answer is what the prepared events must give.
    fn check(self, body: &[u8]) -> Result<()> {
        let answer: Value = serde_json::from_slice(body).context("an answer is not JSON")?;
        let good = match self {
            Self::StreamGet | Self::CategoryGet => answer
                .as_array()
                .is_some_and(|rows| rows.len() == EVENTS_PER_STREAM),
            Self::StreamVersion => answer
                .as_u64()
                .is_some_and(|version| version >= EVENTS_PER_STREAM as u64 - 1),
            Self::StreamLast => answer.is_array(),
            Self::Write => answer.is_object(),
        };
        ensure!(
            good,
            "the answer to {self:?} is not what was written: {answer}"
        );
        Ok(())
    }
}

/// Writes to the streams of the workload.
fn writes(pool: &Pool, server: &Server) -> Vec<Vec<u8>> {
    let mut requests = Vec::with_capacity(REQUESTS);
    for event in Workload::new(pool).batch(REQUESTS) {
        let stream = event.stream.as_deref().unwrap_or_default();
        requests.push(write(server, stream, &event.event_type, event.data.bytes()));
    }
    requests
}

/// Writes of the events that are read later, each to be sent once.
pub(crate) fn preparation(pool: &Pool, server: &Server) -> Vec<Vec<u8>> {
    let events = Workload::new(pool).batch(STREAMS as usize * EVENTS_PER_STREAM);
    let streams = (0..STREAMS).cycle();
    let write = |(event, stream): (trefoil::NewEvent, u64)| {
        write(
            server,
            &format!("{CATEGORY}-{stream}"),
            &event.event_type,
            event.data.bytes(),
        )
    };
    events.into_iter().zip(streams).map(write).collect()
}

fn write(server: &Server, stream: &str, event_type: &str, data: &[u8]) -> Vec<u8> {
    let data = String::from_utf8_lossy(data);
    let body = format!(r#"["stream.write","{stream}",{{"type":"{event_type}","data":{data}}}]"#);
    post(server.address, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_checked() {
        assert!(Operation::StreamVersion.check(b"99").is_ok());
        assert!(Operation::StreamVersion.check(b"null").is_err());
        assert!(Operation::StreamGet.check(b"[]").is_err());
        assert!(Operation::StreamLast.check(b"<html>").is_err());
        let rows = format!("[{}[]]", "[],".repeat(EVENTS_PER_STREAM - 1));
        assert!(Operation::CategoryGet.check(rows.as_bytes()).is_ok());
    }
}
