//! One connection: HTTP/2, over TLS if that is configured. A client that does not answer pings is
//! gone, one that does not begin to speak is cut off, and one that does not authenticate is asked to
//! leave.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::call;
use super::socket::{Outgoing, buffered};
use crate::connections::Guest;
use crate::limits::{
    GRPC_CONNECTION_WINDOW_BYTES, GRPC_FRAME_BYTES_MAX, GRPC_PING_INTERVAL, GRPC_PING_TIMEOUT,
    GRPC_STREAM_WINDOW_BYTES, GRPC_STREAMS_MAX, HTTP2_HEAD_BYTES_MAX,
};
use crate::response::StreamError;
use crate::server::Stop;
use crate::service::Shared;

/// The bytes with which every HTTP/2 connection begins.
const PREFACE_BYTES: u64 = 24;

/// Serves a connection until it ends.
pub(crate) async fn serve(
    socket: TcpStream,
    tls: Option<&TlsAcceptor>,
    shared: &Arc<Shared>,
    guest: &Arc<Guest>,
    stop: Stop,
) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let Some(tls) = tls else {
        let (reader, writer) = socket.into_split();
        return speak(reader, writer, shared, guest, stop).await;
    };
    let shaken = tokio::select! {
        shaken = tls.accept(socket) => shaken,
        () = tokio::time::sleep(shared.config.head_timeout) => return,
        () = stop.drain.cancelled() => return,
    };
    match shaken {
        Ok(stream) => {
            let (reader, writer) = tokio::io::split(stream);
            speak(reader, writer, shared, guest, stop).await;
        }
        Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
    }
}

async fn speak(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    shared: &Arc<Shared>,
    guest: &Arc<Guest>,
    stop: Stop,
) {
    let (socket, mut outgoing, received) = buffered(reader, writer, shared);
    let (served, served_guest) = (Arc::clone(shared), Arc::clone(guest));
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, guest) = (Arc::clone(&served), Arc::clone(&served_guest));
        async move { Ok::<_, Infallible>(call::answer(shared, &guest, request).await) }
    });
    let mut connection = pin!(builder().serve_connection(TokioIo::new(socket), service));
    let mut must_speak = pin!(tokio::time::sleep(shared.config.head_timeout));
    let (mut is_draining, mut must_be_known) = (false, true);
    loop {
        let turn = poll_fn(|context| take_turns(connection.as_mut(), &mut outgoing, context));
        tokio::select! {
            biased;
            result = turn => {
                if let Err(error) = result {
                    tracing::debug!(%error, "connection ended");
                }
                break;
            }
            () = stop.cut.cancelled() => return,
            () = stop.drain.cancelled(), if !is_draining => {
                is_draining = true;
                connection.as_mut().graceful_shutdown();
            }
            () = must_speak.as_mut(), if must_be_known => {
                if received.load(Ordering::Relaxed) < PREFACE_BYTES {
                    return;
                }
                must_be_known = false;
                if !guest.is_known() {
                    // What it has asked for without a token is still answered.
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
    tokio::select! {
        // A client that has gone does not need the rest.
        _ = outgoing.finish() => {}
        () = stop.cut.cancelled() => {}
        () = tokio::time::sleep(GRPC_PING_TIMEOUT) => {}
    }
}

/// Lets the connection go on as far as it can, and sends what it has written. Ready when the
/// connection is at its end.
fn take_turns<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<&mut C>,
    outgoing: &mut Outgoing,
    context: &mut Context<'_>,
) -> Poll<Result<(), StreamError>> {
    loop {
        if let Poll::Ready(result) = connection.as_mut().poll(context) {
            return Poll::Ready(result.map_err(Into::into));
        }
        match outgoing.poll_drain(context) {
            Poll::Ready(Ok(true)) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
            Poll::Ready(Ok(false)) | Poll::Pending => return Poll::Pending,
        }
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(GRPC_PING_INTERVAL)
        .keep_alive_timeout(GRPC_PING_TIMEOUT)
        .initial_stream_window_size(GRPC_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(GRPC_CONNECTION_WINDOW_BYTES)
        .max_frame_size(GRPC_FRAME_BYTES_MAX)
        .max_concurrent_streams(GRPC_STREAMS_MAX)
        .max_header_list_size(HTTP2_HEAD_BYTES_MAX);
    builder
}
