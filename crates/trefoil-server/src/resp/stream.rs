//! The two sides of a client's stream.
//!
//! A socket says when it can be read from or written to, so a client that is silent costs no buffer,
//! and replies are mostly sent without waiting. A stream behind TLS says neither.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::OwnedReadHalf;

use super::outbox::OutboxSocket;
use crate::stream::ServedStream;

/// Where requests come from.
pub(super) enum RespReader {
    Socket(OwnedReadHalf),
    Stream(tokio::io::ReadHalf<ServedStream>),
}

/// Where replies go to.
pub(super) enum RespWriter {
    Socket(Arc<OutboxSocket>),
    Stream(tokio::io::WriteHalf<ServedStream>),
}

/// Returns both sides of a stream.
pub(super) fn split(stream: ServedStream) -> (RespReader, RespWriter) {
    match stream {
        ServedStream::Plain(socket) => {
            let (reader, writer) = socket.into_split();
            let writer = OutboxSocket::new(writer);
            (RespReader::Socket(reader), RespWriter::Socket(writer))
        }
        secure @ ServedStream::Secure(_) => {
            let (reader, writer) = tokio::io::split(secure);
            (RespReader::Stream(reader), RespWriter::Stream(writer))
        }
    }
}

impl RespReader {
    /// Waits until there is something to read, if the stream can tell.
    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.readable().await,
            Self::Stream(_) => Ok(()),
        }
    }

    /// Reads into a buffer that has room. Returns how many bytes came; none at the end.
    pub(super) async fn read_buf(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.read_buf(buffer).await,
            Self::Stream(stream) => stream.read_buf(buffer).await,
        }
    }
}

impl RespWriter {
    /// Has bytes leave at the end of the turn. Returns whether it took them.
    pub(super) fn post(&self, bytes: &mut BytesMut) -> bool {
        match self {
            Self::Socket(outgoing) => outgoing.post(bytes),
            Self::Stream(_) => false,
        }
    }

    /// Takes back what was to leave and has not, to be sent before these bytes.
    pub(super) fn take_back(&self, bytes: &mut BytesMut) {
        if let Self::Socket(outgoing) = self {
            outgoing.take_back(bytes);
        }
    }

    /// Completes when something was to leave and did not.
    pub(super) fn poll_stuck(&self, context: &Context<'_>) -> Poll<()> {
        match self {
            Self::Socket(outgoing) => outgoing.poll_stuck(context),
            Self::Stream(_) => Poll::Pending,
        }
    }

    /// Writes as much as can be written at once, if the stream can tell.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket(outgoing) => outgoing.try_write(bytes),
            Self::Stream(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Waits until the client takes more. Returns how much it took meanwhile.
    pub(super) async fn wait(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket(outgoing) => outgoing.writable().await.map(|()| 0),
            Self::Stream(stream) => {
                let written = stream.write(bytes).await?;
                if written == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                stream.flush().await?;
                Ok(written)
            }
        }
    }

    /// Says that nothing more will come.
    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Socket(outgoing) => outgoing.shutdown(),
            Self::Stream(stream) => stream.shutdown().await,
        }
    }
}
