//! One connection: HTTP/2, perhaps over TLS. A client that does not answer pings is
//! gone, one that does not begin to speak is cut off, and one that does not authenticate is asked to
//! leave.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use h2::server::{Builder, Connection, SendResponse};
use h2::{Ping, PingPong, RecvStream};
use hyper::Request;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};

use super::call;
use super::socket::{GrpcSocket, Outgoing, buffered};
use crate::connections::Guest;
use crate::limits::{
    GRPC_CALLS_PER_TURN_MAX, GRPC_CANCELLED_CALLS_MAX, GRPC_CONNECTION_WINDOW_BYTES,
    GRPC_FRAME_BYTES_MAX, GRPC_PING_INTERVAL, GRPC_PING_TIMEOUT, GRPC_STREAM_WINDOW_BYTES,
    GRPC_STREAMS_MAX, HTTP2_HEAD_BYTES_MAX,
};
use crate::response::StreamError;
use crate::server::Stop;
use crate::service::Shared;
use crate::stream::ServedStream;

/// Serves a connection until it ends.
pub(crate) async fn serve(
    stream: ServedStream,
    shared: &Arc<Shared>,
    guest: &Arc<Guest>,
    stop: Stop,
) {
    match stream {
        ServedStream::Plain(socket) => {
            let (reader, writer) = socket.into_split();
            speak(reader, writer, shared, guest, stop).await;
        }
        secure @ ServedStream::Secure(_) => {
            let (reader, writer) = tokio::io::split(secure);
            speak(reader, writer, shared, guest, stop).await;
        }
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
    let shaken = tokio::select! {
        biased;
        shaken = shake_hands(socket, &mut outgoing) => shaken,
        () = sleep(shared.config.head_timeout) => return,
        () = stop.drain.cancelled() => return,
        () = guest.must_leave.cancelled() => return,
    };
    let (http2, is_gone) = match shaken {
        Ok(mut http2) => {
            let pings = http2.ping_pong();
            (http2, pings.map(|pings| until_gone(pings, received)))
        }
        Err(error) => return tracing::debug!(%error, "an HTTP/2 handshake failed"),
    };
    let mut connection = ServedHttp2 {
        http2,
        outgoing,
        calls: FuturesUnordered::new(),
        begin: |request, reply| call::serve(Arc::clone(shared), Arc::clone(guest), request, reply),
        interruptions: interruptions(shared.config.head_timeout, guest, &stop),
        guest,
    };
    if let Some(is_gone) = is_gone {
        connection.interruptions.push(is_gone.boxed());
    }
    let ended = poll_fn(|context| connection.poll_turn(context)).await;
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
    tokio::select! {
        // A client that has gone does not need the rest.
        _ = connection.outgoing.finish() => {}
        () = stop.cut.cancelled() => {}
        () = guest.must_leave.cancelled() => {}
        () = sleep(GRPC_PING_TIMEOUT) => {}
    }
}

type Http2 = Connection<GrpcSocket, Bytes>;

/// Waits until the client has begun to speak HTTP/2.
async fn shake_hands(socket: GrpcSocket, outgoing: &mut Outgoing) -> Result<Http2, StreamError> {
    let mut handshake = builder().handshake(socket);
    poll_fn(|context| {
        let shaken = handshake.poll_unpin(context)?;
        let _ = outgoing.poll_drain(context)?;
        shaken.map(Ok)
    })
    .await
}

/// What interrupts a connection.
enum Interruption {
    /// It ends at once.
    End,
    /// It ends when the calls under way have ended.
    Drain,
    /// It ends so if its client has not shown who it is.
    MustBeKnown,
}

type Interruptions = FuturesUnordered<BoxFuture<'static, Interruption>>;

fn interruptions(head_timeout: Duration, guest: &Guest, stop: &Stop) -> Interruptions {
    let is_cut = stop.cut.clone().cancelled_owned();
    let must_leave = guest.must_leave.clone().cancelled_owned();
    let is_drained = stop.drain.clone().cancelled_owned();
    [
        is_cut.map(|()| Interruption::End).boxed(),
        must_leave.map(|()| Interruption::End).boxed(),
        is_drained.map(|()| Interruption::Drain).boxed(),
        sleep(head_timeout)
            .map(|()| Interruption::MustBeKnown)
            .boxed(),
    ]
    .into_iter()
    .collect()
}

/// Waits until the client is silent and does not answer when it is asked whether it is there.
async fn until_gone(mut pings: PingPong, received: Arc<AtomicU64>) -> Interruption {
    let mut before = 0;
    loop {
        sleep(GRPC_PING_INTERVAL).await;
        let now = received.load(Ordering::Relaxed);
        if now == before {
            let asked = timeout(GRPC_PING_TIMEOUT, pings.ping(Ping::opaque()));
            if !matches!(asked.await, Ok(Ok(_))) {
                return Interruption::End;
            }
        }
        before = received.load(Ordering::Relaxed);
    }
}

/// A connection and its calls, all run by one task: a task for each call would cost more than most
/// calls do, and answers would leave in pieces.
struct ServedHttp2<'a, F, B> {
    http2: Http2,
    outgoing: Outgoing,
    /// The calls under way; only those that were woken are polled.
    calls: FuturesUnordered<F>,
    /// Begins a call.
    begin: B,
    interruptions: Interruptions,
    guest: &'a Guest,
}

impl<F, B> ServedHttp2<'_, F, B>
where
    F: Future<Output = ()>,
    B: FnMut(Request<RecvStream>, SendResponse<Bytes>) -> F,
{
    /// Lets the connection and its calls go on as far as they can, and then sends all that they have
    /// written. Ready when the connection is at its end.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        while let Poll::Ready(Some(interruption)) = self.interruptions.poll_next_unpin(context) {
            match interruption {
                Interruption::MustBeKnown if self.guest.is_known() => {}
                // What it has asked for without a token is still answered.
                Interruption::MustBeKnown | Interruption::Drain => self.http2.graceful_shutdown(),
                Interruption::End => return Poll::Ready(Ok(())),
            }
        }
        let mut n_begun = 0;
        loop {
            while let Poll::Ready(Some(())) = self.calls.poll_next_unpin(context) {}
            let n_before = n_begun;
            while n_begun < GRPC_CALLS_PER_TURN_MAX {
                match self.http2.poll_accept(context)? {
                    Poll::Ready(Some((request, reply))) => {
                        self.calls.push((self.begin)(request, reply));
                        n_begun += 1;
                    }
                    Poll::Ready(None) => return Poll::Ready(Ok(())),
                    Poll::Pending => break,
                }
            }
            if n_begun == GRPC_CALLS_PER_TURN_MAX {
                // Other connections of this thread come first.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if n_begun == n_before {
                match self.outgoing.poll_drain(context)? {
                    // The connection can go on now that there is room.
                    Poll::Ready(true) => {}
                    Poll::Ready(false) | Poll::Pending => return Poll::Pending,
                }
            }
        }
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(GRPC_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(GRPC_CONNECTION_WINDOW_BYTES)
        .max_frame_size(GRPC_FRAME_BYTES_MAX)
        .max_concurrent_streams(GRPC_STREAMS_MAX)
        .max_pending_accept_reset_streams(GRPC_CANCELLED_CALLS_MAX)
        .max_header_list_size(HTTP2_HEAD_BYTES_MAX);
    builder
}
