//! The body of an answer: framed messages, and the status in the trailers that end it.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _};
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use hyper::Response;
use hyper::header::{self, HeaderMap, HeaderValue};
use prost::Message;
use tonic::{Code, Status};

use super::call::CountedCall;
use super::relay::tell_position;
use super::status::{self, Result};
use crate::response::SERVER;

/// Framed messages that are made while they are sent.
pub(super) type MessageFrames = BoxStream<'static, Result<Bytes>>;

/// What a method answers if it does not fail at once.
pub(super) enum GrpcAnswer {
    /// Framed messages.
    Whole(Bytes),
    /// Framed messages; a failure among them ends the call.
    Stream {
        frames: MessageFrames,
        /// Up to where the log is read, if that is said.
        as_of: Option<u64>,
    },
}

impl GrpcAnswer {
    /// One message.
    pub(super) fn message(message: &impl Message) -> Self {
        Self::Whole(framed(message))
    }

    /// The same, for somebody who need not know up to where the log is read.
    pub(super) fn without_position(self) -> Self {
        match self {
            Self::Stream { frames, .. } => Self::stream(frames),
            whole @ Self::Whole(_) => whole,
        }
    }

    /// Messages that are made while they are sent.
    pub(super) fn stream(frames: MessageFrames) -> Self {
        Self::Stream {
            frames,
            as_of: None,
        }
    }
}

/// A message with what gRPC puts before it.
pub(super) fn framed(message: &impl Message) -> Bytes {
    let mut out = Vec::with_capacity(32);
    begin_frame(&mut out);
    // A vector takes whatever is written to it.
    let _ = message.encode(&mut out);
    end_frame(&mut out, 0);
    out.into()
}

/// Makes room for what comes before a message.
pub(super) fn begin_frame(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; 5]);
}

/// Says before the message that began at `start` how long it is, now that it is written.
pub(super) fn end_frame(out: &mut [u8], start: usize) {
    let length = u32::try_from(out.len() - start - 5).unwrap_or(u32::MAX);
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: &str = "grpc-status";
const ZERO: HeaderValue = HeaderValue::from_static("0");

/// Sends an answer to its end. One that failed before it had anything to say consists of headers
/// only.
pub(super) async fn send(
    answer: Result<GrpcAnswer>,
    reply: &mut SendResponse<Bytes>,
    counted: &mut CountedCall,
) -> Result<(), h2::Error> {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.reserve(5);
    headers.insert(header::CONTENT_TYPE, CONTENT_TYPE);
    headers.insert(header::SERVER, SERVER);
    let answer = match answer {
        Ok(answer) => answer,
        Err(failure) => {
            put_status(headers, &failure);
            counted.finish(failure.code());
            return reply.send_response(response, true).map(drop);
        }
    };
    if let GrpcAnswer::Stream {
        as_of: Some(position),
        ..
    } = &answer
    {
        tell_position(response.headers_mut(), *position);
    }
    let mut stream = reply.send_response(response, false)?;
    let failure = match answer {
        GrpcAnswer::Whole(bytes) if bytes.is_empty() => None,
        // It is there already: it need not wait until the client has room for it.
        GrpcAnswer::Whole(bytes) => stream.send_data(bytes, false).map(|()| None)?,
        GrpcAnswer::Stream { frames, .. } => Box::pin(send_frames(frames, &mut stream)).await?,
    };
    let mut trailers = HeaderMap::with_capacity(3);
    match &failure {
        None => {
            trailers.insert(GRPC_STATUS, ZERO);
        }
        Some(failure) => put_status(&mut trailers, failure),
    }
    counted.finish(failure.map_or(Code::Ok, |failure| failure.code()));
    stream.send_trailers(trailers)
}

fn put_status(headers: &mut HeaderMap, failure: &Status) {
    if failure.add_header(headers).is_err() {
        // Only metadata could be to blame, and there is none.
        headers.insert(GRPC_STATUS, HeaderValue::from(failure.code() as i32));
    }
}

/// Sends messages as the client takes them. Returns the failure that ended them, if one did.
async fn send_frames(
    mut frames: MessageFrames,
    stream: &mut SendStream<Bytes>,
) -> Result<Option<Box<Status>>, h2::Error> {
    loop {
        // Nothing more is made before the client has room for some of it.
        stream.reserve_capacity(1);
        poll_fn(|context| poll_room(stream, context)).await?;
        let next = poll_fn(|context| match stream.poll_reset(context)? {
            Poll::Ready(reason) => Poll::Ready(Err(reason.into())),
            Poll::Pending => frames.poll_next_unpin(context).map(Ok::<_, h2::Error>),
        });
        match next.await? {
            Some(Ok(bytes)) => stream.send_data(bytes, false)?,
            Some(Err(failure)) => {
                let code = status::name(failure.code());
                tracing::debug!(code, "a call failed midway");
                return Ok(Some(failure));
            }
            None => return Ok(None),
        }
    }
}

/// Ready when the client has room for more.
fn poll_room(
    stream: &mut SendStream<Bytes>,
    context: &mut Context<'_>,
) -> Poll<Result<(), h2::Error>> {
    if let Poll::Ready(reason) = stream.poll_reset(context)? {
        return Poll::Ready(Err(reason.into()));
    }
    while stream.capacity() == 0 {
        match ready!(stream.poll_capacity(context)) {
            Some(room) => room.map(drop)?,
            None => return Poll::Ready(Err(Reason::CANCEL.into())),
        }
    }
    Poll::Ready(Ok(()))
}
