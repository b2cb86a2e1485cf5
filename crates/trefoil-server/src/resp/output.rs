//! Replies on their way to a client.
//!
//! They leave at the end of the turn in which they were made, or when there are many of them. A client
//! that does not take them is not read from meanwhile, and given up on in the end.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use trefoil::Reply;

use super::clients::RespClient;
use super::encoder::{Encoding, RespVersion, encode_short, is_shorter, put_length};
use super::stream::RespWriter;
use crate::budget::{Reservation, Share};
use crate::limits::{RESP_OUTPUT_BYTES, RESP_REPLY_BYTES, RESP_REPLY_TIMEOUT};
use crate::service::Shared;

/// A buffer of at most this size is kept while the client is idle: the next replies need no new one.
const KEPT_BYTES: usize = 512;

/// Replies on their way to a client.
pub(super) struct RespOutput {
    stream: RespWriter,
    pub(super) shared: Arc<Shared>,
    client: Arc<RespClient>,
    buffer: BytesMut,
    /// What the buffer takes of the memory for clients.
    reservation: Reservation,
    /// How many bytes it may have before they are sent.
    room: usize,
}

impl RespOutput {
    pub(super) fn new(
        stream: RespWriter,
        shared: &Arc<Shared>,
        client: &Arc<RespClient>,
        share: &Share,
    ) -> Self {
        Self {
            stream,
            shared: Arc::clone(shared),
            client: Arc::clone(client),
            buffer: BytesMut::new(),
            reservation: share.for_request(),
            room: RESP_OUTPUT_BYTES,
        }
    }

    /// Adds a reply if it is short and there is room for it. Returns whether it did.
    pub(super) fn put_short(&mut self, reply: &Reply, protocol: RespVersion) -> bool {
        let room = self.room.saturating_sub(self.buffer.len());
        if !is_shorter(reply, &mut { room }) {
            return false;
        }
        self.shared.metrics.resp.count_error(reply);
        if !encode_short(reply, protocol, &mut self.buffer) {
            Encoding::new(reply, protocol).fill(&mut self.buffer, usize::MAX);
        }
        true
    }

    /// Adds a reply, and sends what there is if that is much. A long one is sent in pieces, between
    /// which others are served.
    pub(super) async fn put(&mut self, reply: &Reply, protocol: RespVersion) -> io::Result<()> {
        self.shared.metrics.resp.count_error(reply);
        if !encode_short(reply, protocol, &mut self.buffer) {
            let mut encoding = Encoding::new(reply, protocol);
            while encoding.fill(&mut self.buffer, self.room) {
                self.make_room().await?;
            }
        }
        self.make_room().await
    }

    /// Adds the beginning of a reply that is made piece by piece.
    pub(super) async fn put_head(&mut self, marker: u8, length: usize) -> io::Result<()> {
        put_length(&mut self.buffer, marker, length);
        self.make_room().await
    }

    /// Adds bytes of a reply that is made piece by piece.
    pub(super) async fn put_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.make_room().await
    }

    /// Sends what there is if it is much.
    async fn make_room(&mut self) -> io::Result<()> {
        if self.buffer.len() < self.room {
            return Ok(());
        }
        // Without memory for more, less is sent at a time.
        if self.room < RESP_REPLY_BYTES && self.reservation.try_grow_to(RESP_REPLY_BYTES) {
            self.room = RESP_REPLY_BYTES;
            return Ok(());
        }
        self.send().await?;
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Has everything leave at the end of the turn, or sends it now.
    pub(super) async fn send_soon(&mut self) -> io::Result<()> {
        let bytes = self.buffer.len() as u64;
        if bytes == 0 {
            return Ok(());
        }
        if !self.stream.post(&mut self.buffer) {
            return self.send().await;
        }
        self.shared.metrics.resp.sent.add(bytes);
        Ok(())
    }

    /// Waits until something was to leave and did not, because the client does not take it.
    pub(super) async fn stuck(&self) {
        poll_fn(|context| self.stream.poll_stuck(context)).await;
    }

    /// Sends everything now.
    pub(super) async fn send(&mut self) -> io::Result<()> {
        let bytes = self.buffer.len() as u64;
        self.stream.take_back(&mut self.buffer);
        while !self.buffer.is_empty() {
            let written = match self.stream.try_write(&self.buffer) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait().await?,
                Err(error) => return Err(error),
            };
            // The buffer keeps its room, which it loses when it advances.
            match written == self.buffer.len() {
                true => self.buffer.clear(),
                false => self.buffer.advance(written),
            }
        }
        self.shared.metrics.resp.sent.add(bytes);
        Ok(())
    }

    /// Returns how long the client may take nothing.
    pub(super) fn reply_timeout(&self) -> Duration {
        let resp = self.shared.config.resp.as_ref();
        resp.map_or(RESP_REPLY_TIMEOUT, |resp| resp.reply_timeout)
    }

    /// Waits until the client takes something. Returns how much it took meanwhile.
    async fn wait(&mut self) -> io::Result<usize> {
        self.client
            .unsent
            .store(self.buffer.len(), Ordering::Relaxed);
        let patience = self.reply_timeout();
        let ready = tokio::time::timeout(patience, self.stream.wait(&self.buffer)).await;
        self.client.unsent.store(0, Ordering::Relaxed);
        match ready {
            Ok(ready) => ready,
            Err(_) => {
                tracing::debug!("a RESP client does not take its replies");
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// Frees the memory, if it is much and nothing waits in it.
    pub(super) fn release(&mut self) {
        let is_much = self.buffer.capacity() > KEPT_BYTES || self.room > RESP_OUTPUT_BYTES;
        if self.buffer.is_empty() && is_much {
            self.buffer = BytesMut::new();
            self.room = RESP_OUTPUT_BYTES;
            self.reservation.shrink_to(RESP_OUTPUT_BYTES);
        }
    }

    /// Says that nothing more will come.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }
}
