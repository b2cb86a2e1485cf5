//! A subscription to a namespace of another node, whose frames are passed on: only whole ones, so that what
//! was cut off can be asked for again.

use bytes::{Bytes, BytesMut};
use futures_util::stream::StreamExt as _;
use memchr::memmem;

use super::continued::Fed;
use super::frame::{self, END};
use crate::budget::Reservation;
use crate::response::Chunks;

/// Frames of another node on their way to a client.
pub(super) struct RelayedFeed {
    chunks: Chunks,
    /// What has come in and is no whole frame yet.
    part: BytesMut,
    /// The memory for that.
    reservation: Reservation,
    /// Whether the first frame, which says that the subscription has begun, has been left out.
    has_begun: bool,
}

impl RelayedFeed {
    pub(super) fn new(chunks: Chunks, reservation: Reservation) -> Self {
        Self {
            chunks,
            part: BytesMut::new(),
            reservation,
            has_begun: false,
        }
    }

    /// The next frames.
    pub(super) async fn next(&mut self) -> Fed {
        loop {
            match self.chunks.next().await {
                Some(Ok(chunk)) => {
                    self.part.extend_from_slice(&chunk);
                    self.reservation.grow_anyway(self.part.len());
                }
                Some(Err(error)) => {
                    tracing::debug!(error, "the subscription at another node was cut off");
                    return Fed::Gone;
                }
                None => return Fed::Gone,
            }
            if let Some(frames) = self.whole_frames() {
                let position = frame::last_position(&frames);
                return Fed::Frames(frames, position);
            }
        }
    }

    /// Takes the frames that are whole; `None` if there is none to pass on.
    fn whole_frames(&mut self) -> Option<Bytes> {
        let end = memmem::rfind(&self.part, END)? + END.len();
        let mut frames = self.part.split_to(end).freeze();
        self.reservation.shrink_to(self.part.len());
        if !std::mem::replace(&mut self.has_begun, true) && frames.starts_with(frame::READY) {
            frames = frames.slice(frame::READY.len()..);
        }
        (!frames.is_empty()).then_some(frames)
    }
}
