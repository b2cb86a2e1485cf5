//! The messages of an answer that another node sends.
//!
//! A message is passed on when it is here as a whole: if the node is lost, the client has got it or not,
//! and goes on after it. While the client takes nothing, the node can send no more than a window.

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use hyper::header::HeaderMap;
use tonic::{Code, Status};

use super::super::status::is_elsewhere;
use super::connections::{CallPlace, PeerFailure};
use crate::budget::{Reservation, Share};
use crate::limits::GRPC_MESSAGE_BYTES_MAX;

/// A flag and the length of the message.
const PREFIX_BYTES: usize = 5;

/// The messages that are still to come.
pub(super) struct PeerMessages {
    body: RecvStream,
    /// What is here of the next one.
    buffer: BytesMut,
    share: Share,
    /// The memory of what the node may send ahead.
    _window: Reservation,
    _place: CallPlace,
}

impl PeerMessages {
    pub(super) fn new(
        body: RecvStream,
        share: &Share,
        window: Reservation,
        place: CallPlace,
    ) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
            share: share.clone(),
            _window: window,
            _place: place,
        }
    }

    /// Returns the next messages; `None` at the end of an answer that succeeded.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, PeerFailure> {
        let mut reservation = self.share.for_reply();
        loop {
            let whole = whole_bytes(&self.buffer)?;
            if whole > 0 {
                reservation.shrink_to(whole);
                reservation.grow_anyway(whole);
                let frames = self.buffer.split_to(whole);
                return Ok(Some(reservation.hold(frames)));
            }
            let wanted = wanted_bytes(&self.buffer);
            if !reservation.try_grow_to(wanted) {
                reservation = self.share.reserve_in_turn(wanted).await;
            }
            match self.body.data().await.transpose()? {
                Some(bytes) => {
                    self.body.flow_control().release_capacity(bytes.len())?;
                    self.buffer.extend_from_slice(&bytes);
                }
                None => return self.end().await.map(|()| None),
            }
        }
    }

    /// Returns all messages of an answer that has few.
    pub(super) async fn collect(mut self) -> Result<Bytes, PeerFailure> {
        let mut all = Bytes::new();
        while let Some(frames) = self.next().await? {
            all = match all.is_empty() {
                true => frames,
                false => [all, frames].concat().into(),
            };
        }
        Ok(all)
    }

    /// Waits for the status that ends the answer.
    async fn end(&mut self) -> Result<(), PeerFailure> {
        match self.body.trailers().await? {
            Some(trailers) if self.buffer.is_empty() => result_of(&trailers),
            _ => Err(PeerFailure::Lost("an answer was cut short".into())),
        }
    }
}

/// Returns the status in headers or trailers.
pub(super) fn result_of(headers: &HeaderMap) -> Result<(), PeerFailure> {
    match Status::from_header_map(headers).map(Box::new) {
        Some(status) if status.code() == Code::Ok => Ok(()),
        Some(status) => Err(failure_of(status)),
        None => Err(PeerFailure::Lost("an answer has no status".into())),
    }
}

/// Returns what follows from the status of a call.
pub(super) fn failure_of(status: Box<Status>) -> PeerFailure {
    match is_elsewhere(&status) {
        true => PeerFailure::Elsewhere(status),
        false => PeerFailure::Answered(status),
    }
}

/// Returns how many bytes the messages take that are there as a whole.
fn whole_bytes(buffer: &[u8]) -> Result<usize, PeerFailure> {
    let mut whole = 0;
    while let Some((prefix, rest)) = buffer[whole..].split_first_chunk::<PREFIX_BYTES>() {
        let length = message_bytes(*prefix);
        if length > GRPC_MESSAGE_BYTES_MAX {
            let text = format!("an answer announces a message of {length} bytes");
            return Err(PeerFailure::Lost(text));
        }
        if rest.len() < length {
            break;
        }
        whole += PREFIX_BYTES + length;
    }
    Ok(whole)
}

/// Returns how many bytes the message takes that has begun.
fn wanted_bytes(buffer: &[u8]) -> usize {
    let prefix = buffer.first_chunk::<PREFIX_BYTES>();
    PREFIX_BYTES + prefix.map_or(0, |prefix| message_bytes(*prefix))
}

fn message_bytes([_, length @ ..]: [u8; PREFIX_BYTES]) -> usize {
    u32::from_be_bytes(length) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_messages_are_passed_on() {
        let two = b"\0\0\0\0\x02ab\0\0\0\0\0";
        for (end, expected) in [(0, 0), (4, 0), (6, 0), (7, 7), (11, 7), (12, 12)] {
            assert_eq!(whole_bytes(&two[..end]).unwrap(), expected, "{end}");
        }
        assert_eq!(wanted_bytes(&two[..3]), 5);
        assert_eq!(wanted_bytes(&two[..6]), 7);
        assert!(whole_bytes(b"\0\xff\0\0\0").is_err());
    }
}
