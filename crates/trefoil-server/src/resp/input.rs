//! The bytes that a client has sent, and the requests in them.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use trefoil::Reply;

use super::failure::of_failure;
use super::parser::{Parser, Trust, Violation};
use super::stream::RespReader;
use crate::budget::Reservation;
use crate::connections::Guest;
use crate::limits::{DISCARD_BYTES_MAX, RESP_INPUT_BYTES, RESP_READ_BYTES};
use crate::service::Shared;

/// Why nothing more is read.
pub(super) enum InputRefusal {
    Io(io::Error),
    /// The client is told so.
    Reply(Reply),
}

/// Bytes that have arrived.
pub(super) struct RespInput {
    stream: RespReader,
    shared: Arc<Shared>,
    parser: Parser,
    pub(super) buffer: BytesMut,
    /// How many bytes are asked for next.
    wanted: usize,
    /// What the requests take of the memory for clients.
    reservation: Reservation,
}

impl RespInput {
    pub(super) fn new(stream: RespReader, shared: &Arc<Shared>, guest: &Guest) -> Self {
        Self {
            stream,
            shared: Arc::clone(shared),
            parser: Parser::default(),
            buffer: BytesMut::new(),
            wanted: RESP_READ_BYTES.0,
            reservation: guest.share.for_request(),
        }
    }

    /// Takes the next request; `None` if it is not all here.
    pub(super) fn next(&mut self, trust: Trust) -> Result<Option<Vec<Bytes>>, Violation> {
        self.parser.next(&mut self.buffer, trust)
    }

    /// Reads more; false if the client has gone. What came before is answered by now.
    pub(super) async fn more(&mut self) -> Result<bool, InputRefusal> {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
            self.reservation.shrink_to(RESP_INPUT_BYTES);
            self.stream.readable().await.map_err(InputRefusal::Io)?;
        }
        let (least, most) = RESP_READ_BYTES;
        let missing = self.parser.bytes_wanted(&self.buffer);
        // What is announced is believed a piece at a time.
        let wanted = self.wanted.max(missing.min(self.buffer.len() + most));
        self.reserve(wanted)?;
        self.buffer.reserve(wanted);
        let read = self
            .stream
            .read_buf(&mut self.buffer)
            .await
            .map_err(InputRefusal::Io)?;
        self.wanted = match read >= self.wanted {
            true => (self.wanted * 2).min(most),
            false => least,
        };
        self.shared.metrics.resp.received.add(read as u64);
        Ok(read > 0)
    }

    /// Takes memory for what has arrived, for `wanted` bytes that are about to, and for as many words
    /// as they may be.
    fn reserve(&mut self, wanted: usize) -> Result<(), InputRefusal> {
        let bytes = self.buffer.len() + wanted;
        // A buffer that grows by copying is there twice for a moment.
        let twice = if bytes > self.buffer.capacity() {
            bytes
        } else {
            0
        };
        let words = self.parser.words_bytes_after(wanted);
        let needed = (bytes + twice + words).max(RESP_INPUT_BYTES);
        self.reservation.shrink_to(needed);
        let grown = self.reservation.grow_to(needed);
        grown.map_err(|failure| InputRefusal::Reply(of_failure(&failure)))
    }

    /// Reads and forgets, within a bound.
    pub(super) async fn discard(&mut self) {
        let mut left = DISCARD_BYTES_MAX;
        while left > 0 {
            self.buffer.clear();
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(read @ 1..) => left = left.saturating_sub(read),
                _ => return,
            }
        }
    }
}
