//! Answers: whole or as a stream, plain or compressed.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream::{BoxStream, StreamExt as _};
use hyper::body::{Frame, SizeHint};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

use crate::budget::Share;
use crate::error::{Failure, RETRY_AFTER_SECONDS};
use crate::limits::COMPRESS_BYTES_MIN;

/// A failure after the head of the answer has gone out: the connection is cut, so that nobody
/// takes what arrived for the whole.
pub(crate) type StreamError = Box<dyn std::error::Error + Send + Sync>;

/// The parts of an answer that is made while it is sent.
pub(crate) type Chunks = BoxStream<'static, Result<Bytes, StreamError>>;

/// The body of an answer.
pub(crate) enum HttpBody {
    Whole(Bytes),
    Stream(Chunks),
}

/// An answer.
pub(crate) type HttpAnswer = Response<HttpBody>;

impl hyper::body::Body for HttpBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(chunks) => chunks
                .poll_next_unpin(context)
                .map(|chunk| chunk.map(|chunk| chunk.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
pub(crate) const SERVER: HeaderValue =
    HeaderValue::from_static(concat!("Trefoil/", env!("CARGO_PKG_VERSION")));
const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// An answer with a body of this type. Every answer is made here, so that each says who made it.
pub(crate) fn answer(status: StatusCode, content_type: HeaderValue, body: HttpBody) -> HttpAnswer {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::SERVER, SERVER);
    response
}

/// A successful answer in JSON.
pub(crate) fn json(body: impl Into<Bytes>) -> HttpAnswer {
    answer(StatusCode::OK, JSON, HttpBody::Whole(body.into()))
}

/// A successful answer in JSON, whole or as a stream.
pub(crate) fn json_body(body: HttpBody) -> HttpAnswer {
    answer(StatusCode::OK, JSON, body)
}

/// An answer in plain text.
pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> HttpAnswer {
    answer(status, TEXT, HttpBody::Whole(body.into()))
}

/// The code of the error that an answer tells of, for those who count errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorCode(pub(crate) &'static str);

/// The answer to a request that failed.
pub(crate) fn failure(failure: &Failure) -> HttpAnswer {
    let mut response = answer(
        failure.status,
        JSON,
        HttpBody::Whole(failure.to_json().into()),
    );
    if failure.status == StatusCode::SERVICE_UNAVAILABLE {
        let value = HeaderValue::from_static(RETRY_AFTER_SECONDS);
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    if let Some(allowed) = &failure.allow {
        let headers = response.headers_mut();
        headers.insert(header::ALLOW, allowed.clone());
    }
    response.extensions_mut().insert(ErrorCode(failure.code));
    response
}

/// Returns whether the sender of these headers takes gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let Some(accepted) = headers.get(header::ACCEPT_ENCODING) else {
        return false;
    };
    let accepted = accepted.to_str().unwrap_or_default();
    accepted.split(',').any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = matches!(quality.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

/// Compresses an answer if that pays. Events that are sent one by one, and what is compressed already,
/// are left alone. What comes out
/// counts as memory of the connection; it was not refused when it was made, so it is not refused now.
pub(crate) fn compress(response: HttpAnswer, share: &Share) -> HttpAnswer {
    let is_events = |value: &HeaderValue| value.as_bytes().starts_with(b"text/event-stream");
    let (mut parts, body) = response.into_parts();
    let body = match body {
        _ if parts
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(is_events)
            || parts.headers.contains_key(header::CONTENT_ENCODING) =>
        {
            return Response::from_parts(parts, body);
        }
        HttpBody::Whole(bytes) if bytes.len() < COMPRESS_BYTES_MIN => {
            return Response::from_parts(parts, HttpBody::Whole(bytes));
        }
        HttpBody::Whole(bytes) => {
            let mut encoder = GzipOutput::new();
            let mut whole = encoder.chunk(&bytes);
            whole.extend_from_slice(&encoder.finish());
            HttpBody::Whole(counted(whole, share))
        }
        HttpBody::Stream(chunks) => HttpBody::Stream(compressed(chunks, share.clone())),
    };
    parts.headers.insert(header::CONTENT_ENCODING, GZIP);
    parts
        .headers
        .insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    Response::from_parts(parts, body)
}

fn counted(bytes: Vec<u8>, share: &Share) -> Bytes {
    let mut reservation = share.for_reply();
    reservation.grow_anyway(bytes.len());
    reservation.hold(bytes)
}

fn compressed(chunks: Chunks, share: Share) -> Chunks {
    let state = Some((chunks, GzipOutput::new(), share));
    let next = |state: Option<(Chunks, GzipOutput, Share)>| async move {
        let (mut chunks, mut encoder, share) = state?;
        loop {
            match chunks.next().await {
                Some(Ok(chunk)) => {
                    let chunk = encoder.chunk(&chunk);
                    if !chunk.is_empty() {
                        let chunk = counted(chunk, &share);
                        return Some((Ok(chunk), Some((chunks, encoder, share))));
                    }
                }
                Some(Err(error)) => return Some((Err(error), None)),
                None => return Some((Ok(counted(encoder.finish(), &share)), None)),
            }
        }
    };
    futures_util::stream::unfold(state, next).boxed()
}

/// A gzip stream that hands out what it has so far.
struct GzipOutput(GzEncoder<Vec<u8>>);

impl GzipOutput {
    fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }

    /// Takes the next part; it may come out with a later one.
    fn chunk(&mut self, plain: &[u8]) -> Vec<u8> {
        // Writing into a buffer in memory does not fail.
        let _ = self.0.write_all(plain);
        std::mem::take(self.0.get_mut())
    }

    fn finish(self) -> Vec<u8> {
        self.0.finish().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    #[test]
    fn what_was_compressed_counts_until_it_is_taken() {
        let budget = Budget::new(1 << 30);
        let share = budget.connect().unwrap();
        let before = budget.used();
        // Bytes that hardly become fewer.
        let hashes = (0..100_000u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes());
        let plain: Vec<u8> = hashes.flatten().collect();
        let compressed = compress(json(plain), &share);
        let HttpBody::Whole(bytes) = compressed.body() else {
            panic!("a whole answer has become a stream");
        };
        let held = bytes.len();
        assert!(held > 200_000, "{held}");
        assert!(budget.used() >= held);
        drop(compressed);
        assert!(budget.used() < before + held);
    }
}
