//! A socket, plain or behind TLS, that counts what passes through it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::service::Shared;

/// What bytes go through.
pub(super) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A socket that counts.
pub(super) struct Socket {
    pub(super) transport: Transport,
    pub(super) shared: Arc<Shared>,
    /// How many bytes the client has sent.
    pub(super) received: Arc<AtomicU64>,
}

/// Calls the same method on whatever the bytes go through.
macro_rules! transport {
    ($socket:expr, $method:ident, $($argument:expr),*) => {
        match &mut $socket.transport {
            Transport::Plain(stream) => Pin::new(stream).$method($($argument),*),
            Transport::Tls(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = transport!(self, poll_read, context, buffer);
        let bytes = (buffer.filled().len() - before) as u64;
        self.received.fetch_add(bytes, Ordering::Relaxed);
        self.shared.metrics.grpc_bytes_received.inc_by(bytes);
        result
    }
}

impl Socket {
    fn count_sent(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = result {
            self.shared.metrics.grpc_bytes_sent.inc_by(bytes as u64);
        }
        result
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = transport!(self, poll_write, context, bytes);
        self.count_sent(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = transport!(self, poll_write_vectored, context, slices);
        self.count_sent(result)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        transport!(self, poll_flush, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        transport!(self, poll_shutdown, context)
    }
}
