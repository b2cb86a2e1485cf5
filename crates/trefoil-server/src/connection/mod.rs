//! One connection: HTTP/1 or HTTP/2, and a watch that ends it when its client is too slow.
//!
//! The watch looks at when requests began and ended and when bytes came in. It costs one timer per
//! connection rather than several per request.

mod activity;
mod socket;

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;

use crate::connections::Guest;
use crate::limits::{
    HEAD_BYTES_MAX, HTTP2_HEAD_BYTES_MAX, HTTP2_STREAMS_MAX, PEER_CONNECTION_WINDOW_BYTES,
    PEER_PING_INTERVAL, PEER_PING_TIMEOUT, PEER_WINDOW_BYTES,
};
use crate::response::{self, StreamError};
use crate::server::Stop;
use crate::service::{self, Shared};
use crate::stream::ServedStream;
use activity::Activity;
use socket::HttpSocket;

pub(crate) use activity::UnderWay;

/// Serves a connection until it ends.
pub(crate) async fn serve(
    stream: ServedStream,
    shared: &Arc<Shared>,
    guest: &Arc<Guest>,
    stop: Stop,
) {
    let activity = Arc::new(Activity::new(shared.clock().clone()));
    let socket = HttpSocket {
        stream,
        activity: Arc::clone(&activity),
        shared: Arc::clone(shared),
    };
    let (serving, served) = (Arc::clone(&activity), Arc::clone(shared));
    let served_guest = Arc::clone(guest);
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, under_way) = (Arc::clone(&served), UnderWay::begin(&serving, &request));
        let guest = Arc::clone(&served_guest);
        async move {
            let version = request.version();
            let mut answer = service::serve(Arc::clone(&shared), &guest, request, &under_way).await;
            // A client that knows of the end sends its next request elsewhere. One that does not may
            // send it in the moment in which its idle connection is closed.
            if shared.leaving.is_cancelled() && version <= Version::HTTP_11 {
                let headers = answer.headers_mut();
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer.map(|body| HeldBody {
                body,
                _under_way: under_way,
            }))
        }
    });
    let builder = builder(guest.is_peer);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(socket), service));
    let mut is_draining = false;
    loop {
        let pause = activity.time_left(&shared.config);
        tokio::select! {
            biased;
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            () = stop.cut.cancelled() => return,
            () = stop.drain.cancelled(), if !is_draining => {
                is_draining = true;
                connection.as_mut().graceful_shutdown();
            }
            // A peer is asked whether it is there, and ends what it does not need.
            () = tokio::time::sleep(pause), if !guest.is_peer => {
                if activity.time_left(&shared.config).is_zero() {
                    return;
                }
            }
        }
    }
}

/// Without `pipeline_flush`: it would let hyper take a whole answer into memory, however large and
/// however slowly the client reads.
fn builder(is_peer: bool) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    if is_peer {
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PEER_PING_INTERVAL)
            .keep_alive_timeout(PEER_PING_TIMEOUT)
            .initial_stream_window_size(PEER_WINDOW_BYTES)
            .initial_connection_window_size(PEER_CONNECTION_WINDOW_BYTES);
    }
    builder
        .http1()
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_header_list_size(HTTP2_HEAD_BYTES_MAX);
    builder
}

/// An answer's body; its request is under way until this is dropped.
struct HeldBody {
    body: response::HttpBody,
    _under_way: UnderWay,
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
