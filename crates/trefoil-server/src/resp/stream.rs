//! The two sides of a client's stream.
//!
//! A socket says when it can be read from or written to, so a client that is silent costs no buffer,
//! and replies are mostly sent without waiting. A stream behind TLS says neither.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp;

use crate::stream::ServedStream;

/// Where requests come from.
pub(super) enum RespReader<'a> {
    Socket(tcp::ReadHalf<'a>),
    Stream(tokio::io::ReadHalf<&'a mut ServedStream>),
}

/// Where replies go to.
pub(super) enum RespWriter<'a> {
    Socket(tcp::WriteHalf<'a>),
    Stream(tokio::io::WriteHalf<&'a mut ServedStream>),
}

/// Returns both sides of a stream.
pub(super) fn split(stream: &mut ServedStream) -> (RespReader<'_>, RespWriter<'_>) {
    match stream {
        ServedStream::Plain(socket) => {
            let (reader, writer) = socket.split();
            (RespReader::Socket(reader), RespWriter::Socket(writer))
        }
        secure @ ServedStream::Secure(_) => {
            let (reader, writer) = tokio::io::split(secure);
            (RespReader::Stream(reader), RespWriter::Stream(writer))
        }
    }
}

impl RespReader<'_> {
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

impl RespWriter<'_> {
    /// Writes as much as can be written at once, if the stream can tell.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.try_write(bytes),
            Self::Stream(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Waits until the client takes more. Returns how much it took meanwhile.
    pub(super) async fn wait(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.writable().await.map(|()| 0),
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
            Self::Socket(socket) => socket.shutdown().await,
            Self::Stream(stream) => stream.shutdown().await,
        }
    }
}
