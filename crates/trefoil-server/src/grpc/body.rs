//! The body of an answer: framed messages, and the status in the trailers that end it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _};
use hyper::Response;
use hyper::body::Frame;
use hyper::header::{self, HeaderMap, HeaderValue};
use prost::Message;
use tonic::{Code, Status};

use super::call::CountedCall;
use super::status::{self, Result};
use crate::response::SERVER;

/// Framed messages that are made while they are sent.
pub(super) type MessageFrames = BoxStream<'static, Result<Bytes>>;

/// What a method answers if it does not fail at once.
pub(super) enum GrpcAnswer {
    /// Framed messages.
    Whole(Bytes),
    /// Framed messages; a failure among them ends the call.
    Stream(MessageFrames),
}

impl GrpcAnswer {
    /// One message.
    pub(super) fn message(message: &impl Message) -> Self {
        Self::Whole(framed(message))
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

/// The body of an answer.
pub(crate) struct GrpcBody {
    frames: Option<GrpcAnswer>,
    /// Counts the call when it ends.
    counted: Option<CountedCall>,
}

const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: &str = "grpc-status";
const ZERO: HeaderValue = HeaderValue::from_static("0");

/// The response of a call. One that failed before it had anything to say consists of headers only.
pub(super) fn response(answer: Result<GrpcAnswer>, mut counted: CountedCall) -> Response<GrpcBody> {
    let mut headers = HeaderMap::with_capacity(5);
    headers.insert(header::CONTENT_TYPE, CONTENT_TYPE);
    headers.insert(header::SERVER, SERVER);
    let body = match answer {
        Ok(answer) => GrpcBody {
            frames: Some(answer),
            counted: Some(counted),
        },
        Err(status) => {
            counted.finish(status.code());
            put_status(&mut headers, &status);
            GrpcBody {
                frames: None,
                counted: None,
            }
        }
    };
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response
}

fn put_status(headers: &mut HeaderMap, failure: &Status) {
    if failure.add_header(headers).is_err() {
        // Only metadata could be to blame, and there is none.
        headers.insert(GRPC_STATUS, HeaderValue::from(failure.code() as i32));
    }
}

impl GrpcBody {
    /// The trailers that end a call.
    fn end(&mut self, failure: Option<&Status>) -> Frame<Bytes> {
        self.frames = None;
        let mut trailers = HeaderMap::with_capacity(3);
        match failure {
            None => {
                trailers.insert(GRPC_STATUS, ZERO);
            }
            Some(failure) => put_status(&mut trailers, failure),
        }
        if let Some(mut counted) = self.counted.take() {
            counted.finish(failure.map_or(Code::Ok, Status::code));
        }
        Frame::trailers(trailers)
    }
}

impl hyper::body::Body for GrpcBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = match &mut self.frames {
            None => return Poll::Ready(None),
            Some(GrpcAnswer::Whole(bytes)) if bytes.is_empty() => self.end(None),
            Some(GrpcAnswer::Whole(bytes)) => Frame::data(std::mem::take(bytes)),
            Some(GrpcAnswer::Stream(frames)) => {
                match std::task::ready!(frames.poll_next_unpin(context)) {
                    Some(Ok(bytes)) => Frame::data(bytes),
                    Some(Err(failure)) => {
                        tracing::debug!(
                            code = status::name(failure.code()),
                            "a call failed midway"
                        );
                        self.end(Some(&failure))
                    }
                    None => self.end(None),
                }
            }
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_none()
    }
}
