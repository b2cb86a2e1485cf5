//! Replies on their way to a client.
//!
//! They are sent when all that has arrived is answered, or when there are many of them. A client
//! that does not take them is not read from meanwhile, and given up on in the end.

use std::io;
use std::sync::Arc;

use bytes::{Buf as _, BytesMut};
use tokio::io::AsyncWriteExt as _;
use tokio::net::tcp::WriteHalf;
use trefoil::Reply;

use super::encoder::{Protocol, encode};
use crate::limits::RESP_REPLY_BYTES;
use crate::service::Shared;

/// Replies on their way to a client.
pub(super) struct Output<'a> {
    pub(super) socket: WriteHalf<'a>,
    pub(super) shared: Arc<Shared>,
    pub(super) buffer: BytesMut,
}

impl Output<'_> {
    /// Adds a reply, and sends what there is if that is much.
    pub(super) async fn put(&mut self, reply: &Reply, protocol: Protocol) -> io::Result<()> {
        if matches!(reply, Reply::Error(_)) {
            self.shared.metrics.resp.errors.inc();
        }
        encode(reply, protocol, &mut self.buffer);
        if self.buffer.len() >= RESP_REPLY_BYTES {
            return self.send().await;
        }
        Ok(())
    }

    /// Sends everything.
    pub(super) async fn send(&mut self) -> io::Result<()> {
        let bytes = self.buffer.len() as u64;
        while !self.buffer.is_empty() {
            match self.socket.try_write(&self.buffer) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.buffer.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait().await?,
                Err(error) => return Err(error),
            }
        }
        self.shared.metrics.resp.sent.inc_by(bytes);
        self.buffer.clear();
        Ok(())
    }

    /// Waits until the client takes something.
    async fn wait(&mut self) -> io::Result<()> {
        let resp = self.shared.config.resp.as_ref();
        let timeout = resp.map_or(crate::limits::RESP_REPLY_TIMEOUT, |resp| resp.reply_timeout);
        match tokio::time::timeout(timeout, self.socket.writable()).await {
            Ok(ready) => ready,
            Err(_) => {
                tracing::debug!("a RESP client does not take its replies");
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// Lets go of the memory, if nothing waits in it.
    pub(super) fn release(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }

    /// Says that nothing more will come.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        self.socket.shutdown().await
    }
}
