//! A socket, plain or behind TLS, that sends what is written to it when its connection has nothing
//! more to write for now.
//!
//! HTTP/2 would send a response in as many pieces as it has frames, and each piece costs the kernel of
//! both sides more than the frame is worth. Here a connection writes to a buffer, and its task
//! drains the buffer after each turn.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use crate::limits::GRPC_OUTGOING_BYTES_MAX;
use crate::service::Shared;

/// A buffer that is larger than this is given back when it is empty.
const KEPT_BYTES: usize = 16 * 1024;

/// What the connection reads from and writes to.
pub(super) struct GrpcSocket {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    buffer: Arc<Mutex<Buffer>>,
    shared: Arc<Shared>,
    /// How many bytes the client has sent.
    received: Arc<AtomicU64>,
}

/// What is written and not sent.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// Whether the connection had more to write than there was room for.
    is_wanted: bool,
}

/// Sends what the connection has written.
pub(super) struct Outgoing {
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    buffer: Arc<Mutex<Buffer>>,
    shared: Arc<Shared>,
    /// What is being sent, and how much of it was.
    sending: Vec<u8>,
    sent: usize,
}

/// Puts a buffer before a stream. The counter tells how many bytes came in.
pub(super) fn buffered(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    shared: &Arc<Shared>,
) -> (GrpcSocket, Outgoing, Arc<AtomicU64>) {
    let (buffer, received) = (Arc::default(), Arc::default());
    let socket = GrpcSocket {
        reader: Box::new(reader),
        buffer: Arc::clone(&buffer),
        shared: Arc::clone(shared),
        received: Arc::clone(&received),
    };
    let outgoing = Outgoing {
        writer: Box::new(writer),
        buffer,
        shared: Arc::clone(shared),
        sending: Vec::new(),
        sent: 0,
    };
    (socket, outgoing, received)
}

impl Outgoing {
    /// Sends as much as the client takes. Returns whether the connection wants to write more now
    /// that there is room.
    pub(super) fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut is_wanted = false;
        loop {
            while self.sent < self.sending.len() {
                let rest = &self.sending[self.sent..];
                let written = ready!(Pin::new(&mut self.writer).poll_write(context, rest))?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.sent += written;
                self.shared.metrics.grpc_bytes_sent.add(written as u64);
            }
            self.sent = 0;
            self.sending.clear();
            if self.sending.capacity() > KEPT_BYTES {
                self.sending = Vec::new();
            }
            let mut buffer = self.buffer.lock();
            is_wanted |= std::mem::take(&mut buffer.is_wanted);
            if buffer.bytes.is_empty() {
                break;
            }
            std::mem::swap(&mut buffer.bytes, &mut self.sending);
        }
        ready!(Pin::new(&mut self.writer).poll_flush(context))?;
        Poll::Ready(Ok(is_wanted))
    }

    /// Sends the rest and says that nothing will follow.
    pub(super) async fn finish(mut self) -> io::Result<()> {
        std::future::poll_fn(|context| self.poll_drain(context)).await?;
        self.writer.shutdown().await
    }
}

impl AsyncRead for GrpcSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let result = Pin::new(&mut self.reader).poll_read(context, into);
        let bytes = (into.filled().len() - before) as u64;
        self.received.fetch_add(bytes, Ordering::Relaxed);
        self.shared.metrics.grpc_bytes_received.add(bytes);
        result
    }
}

impl AsyncWrite for GrpcSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    /// The task that drives the connection drains the buffer and then lets it go on: there is nobody to
    /// be woken.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = self.buffer.lock();
        if buffer.bytes.len() >= GRPC_OUTGOING_BYTES_MAX {
            buffer.is_wanted = true;
            return Poll::Pending;
        }
        let before = buffer.bytes.len();
        for slice in slices {
            buffer.bytes.extend_from_slice(slice);
        }
        Poll::Ready(Ok(buffer.bytes.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
