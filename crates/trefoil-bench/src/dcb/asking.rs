//! A client that asks the same kind of question again and again and knows how it must be answered.

use anyhow::{Result, ensure};
use trefoil_grpc::{Query, ReadRequest};

use super::connection::{Answer, Found, Request};
use super::events::DATA_BYTES;
use super::load::Client;

/// How a request must be answered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// A read finds this many events.
    Events(u64),
    /// An append of one event succeeds.
    Appended,
    /// An append of one event is refused.
    Refused,
}

/// Asks what `make` makes.
pub(crate) struct Asking<F> {
    make: F,
    expected: Expected,
}

impl<F: FnMut() -> Request + Send> Asking<F> {
    pub(crate) fn new(make: F, expected: Expected) -> Self {
        Self { make, expected }
    }
}

impl<F: FnMut() -> Request + Send> Client for Asking<F> {
    fn next(&mut self) -> Request {
        (self.make)()
    }

    fn answered(&mut self, answer: Answer) -> Result<u64> {
        let (is_right, events) = match (self.expected, answer) {
            (Expected::Events(events), Answer::Read(found)) => {
                let bytes = events * DATA_BYTES as u64;
                (found == Found { events, bytes }, events)
            }
            (Expected::Appended, Answer::Appended(_)) => (true, 1),
            (Expected::Refused, Answer::Refused) => (true, 0),
            _ => (false, 0),
        };
        ensure!(is_right, "{answer:?} instead of {:?}", self.expected);
        Ok(events)
    }
}

/// Reads all events that match.
pub(crate) fn read(query: Query) -> Request {
    Request::Read(ReadRequest {
        query: Some(query),
        ..ReadRequest::default()
    })
}

/// Reads the last event that matches.
pub(crate) fn read_last(query: Query) -> Request {
    Request::Read(ReadRequest {
        query: Some(query),
        backwards: Some(true),
        limit: Some(1),
        ..ReadRequest::default()
    })
}
