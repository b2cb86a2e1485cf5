//! The stream of a connection that is served: a socket, or TLS on a socket.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::connections::Guest;
use crate::server::Stop;
use crate::service::Shared;

/// What a connection is read from and written to.
#[derive(Debug)]
pub(crate) enum ServedStream {
    Plain(TcpStream),
    /// Boxed, so that the plain ones need no room for it.
    Secure(Box<TlsStream<TcpStream>>),
}

impl ServedStream {
    /// A socket as it is. What is written is sent at once.
    pub(crate) fn plain(socket: TcpStream) -> Self {
        send_at_once(&socket);
        Self::Plain(socket)
    }

    /// Begins with TLS. `None` if the client does not, or not in time.
    pub(crate) async fn secure(
        socket: TcpStream,
        tls: &TlsAcceptor,
        (shared, guest, stop): (&Shared, &Guest, &Stop),
    ) -> Option<Self> {
        send_at_once(&socket);
        let shaken = tokio::select! {
            shaken = tls.accept(socket) => shaken,
            () = sleep(shared.config.head_timeout) => return None,
            () = stop.drain.cancelled() => return None,
            () = guest.must_leave.cancelled() => return None,
        };
        match shaken {
            Ok(stream) => Some(Self::Secure(Box::new(stream))),
            Err(error) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
        }
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Secure(stream) => stream.get_ref().0,
        }
    }

    /// Returns the addresses of the client and of this side.
    pub(crate) fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        Ok((self.socket().peer_addr()?, self.socket().local_addr()?))
    }

    /// Returns the number of the socket.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.socket().as_raw_fd()
    }
}

fn send_at_once(socket: &TcpStream) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
}

impl AsyncRead for ServedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
            Self::Secure(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for ServedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Secure(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(context, slices),
            Self::Secure(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_write_vectored(),
            Self::Secure(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_flush(context),
            Self::Secure(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            Self::Secure(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
