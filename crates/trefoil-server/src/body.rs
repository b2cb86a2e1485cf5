//! Request bodies: read whole within limits, or chunk by chunk; plain or gzip.

use std::fmt::Display;
use std::io::Write as _;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use flate2::write::MultiGzDecoder;
use futures_util::future::poll_immediate;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::Body;
use hyper::header::{self, HeaderMap};
use tokio::time::timeout;
use trefoil::limits::REQUEST_BYTES_MAX;

use crate::budget::Reservation;
use crate::error::{Failure, Result};
use crate::limits::{DISCARD_BYTES_MAX, DISCARD_TIMEOUT};
use crate::peers::ClientBody;

/// A body that arrives chunk by chunk and is decompressed on the way.
#[derive(Debug)]
pub(crate) struct BodyReader<B = ClientBody> {
    incoming: B,
    inflater: Option<Box<Inflater>>,
    silence_max: Duration,
}

/// The body of a request as a protocol hands it over.
pub(crate) trait IncomingBody:
    Body<Data = Bytes, Error: Display> + Send + Unpin + 'static
{
}

impl<B: Body<Data = Bytes, Error: Display> + Send + Unpin + 'static> IncomingBody for B {}

/// A whole body and the part of the memory for clients it takes.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) bytes: Bytes,
    _reservation: Reservation,
}

impl<B: IncomingBody> BodyReader<B> {
    pub(crate) fn new(headers: &HeaderMap, incoming: B, silence_max: Duration) -> Result<Self> {
        let inflater = match headers
            .get(header::CONTENT_ENCODING)
            .map(|value| value.as_bytes())
        {
            None | Some(b"identity") => None,
            Some(b"gzip" | b"x-gzip") => Some(Box::new(Inflater::new())),
            Some(_) => {
                return Err(Failure::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "INVALID_REQUEST",
                    "Content-Encoding must be gzip or identity",
                ));
            }
        };
        Ok(Self {
            incoming,
            inflater,
            silence_max,
        })
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>> {
        loop {
            let Some(inflater) = &mut self.inflater else {
                return received(&mut self.incoming, self.silence_max).await;
            };
            if let Some(plain) = inflater.inflate()? {
                return Ok(Some(plain));
            }
            match received(&mut self.incoming, self.silence_max).await? {
                Some(packed) => inflater.packed = packed,
                None => return inflater.finish(),
            }
        }
    }

    /// Reads the whole body. The reservation grows with it.
    pub(crate) async fn whole(mut self, mut reservation: Reservation) -> Result<Whole> {
        let announced = self.incoming.size_hint().lower();
        if announced > REQUEST_BYTES_MAX as u64 {
            return Err(self.refuse(too_large()));
        }
        let first = self.chunk().await?.unwrap_or_default();
        if let Err(failure) = reservation.grow_to(first.len()) {
            return Err(self.refuse(failure));
        }
        let Some(second) = self.chunk().await? else {
            return Ok(Whole {
                bytes: first,
                _reservation: reservation,
            });
        };
        let mut bytes = BytesMut::from(&first[..]);
        let mut next = Some(second);
        while let Some(chunk) = next {
            if bytes.len() + chunk.len() > REQUEST_BYTES_MAX {
                return Err(self.refuse(too_large()));
            }
            // A buffer that grows by doubling may take twice what is in it.
            if let Err(failure) = reservation.grow_to(2 * (bytes.len() + chunk.len())) {
                return Err(self.refuse(failure));
            }
            bytes.extend_from_slice(&chunk);
            next = self.chunk().await?;
        }
        Ok(Whole {
            bytes: bytes.freeze(),
            _reservation: reservation,
        })
    }

    /// Throws away what is left of the body, within limits.
    pub(crate) async fn discard(&mut self) {
        discard(&mut self.incoming).await;
    }

    /// Throws away the rest, so that the client sees why.
    fn refuse(self, failure: Failure) -> Failure {
        discard_in_background(self.incoming);
        failure
    }
}

fn too_large() -> Failure {
    let message = format!("request body is too large, the limit is {REQUEST_BYTES_MAX} bytes");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "INVALID_REQUEST", message)
}

async fn received(
    incoming: &mut impl IncomingBody,
    silence_max: Duration,
) -> Result<Option<Bytes>> {
    loop {
        // Most bodies are there already: they need no timer.
        let frame = match poll_immediate(incoming.frame()).await {
            Some(frame) => Ok(frame),
            None => timeout(silence_max, incoming.frame()).await,
        };
        match frame {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => {
                // Trailers are not looked at.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Ok(Some(Err(error))) => {
                return Err(Failure::invalid(format!(
                    "request body is incomplete: {error}"
                )));
            }
            Err(_) => {
                let seconds = silence_max.as_secs();
                let message = format!("request body made no progress for {seconds} seconds");
                let status = StatusCode::REQUEST_TIMEOUT;
                return Err(Failure::new(status, "INVALID_REQUEST", message));
            }
        }
    }
}

/// Reads what is left of a refused body while its answer is sent: a sender that is cut off while
/// it sends would not see the answer.
pub(crate) fn discard_in_background(mut incoming: impl IncomingBody) {
    if !incoming.is_end_stream() {
        tokio::spawn(async move { discard(&mut incoming).await });
    }
}

/// Reads and throws away, within limits. A client that sends more is cut off.
async fn discard(incoming: &mut impl IncomingBody) {
    let read = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = incoming.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > DISCARD_BYTES_MAX {
                return;
            }
        }
    };
    let _ = timeout(DISCARD_TIMEOUT, read).await;
}

/// How many compressed bytes are decompressed at a time; gzip makes at most about a thousand bytes
/// out of one.
const PACKED_STEP_BYTES: usize = 1024;

/// Decompresses gzip step by step, so that a small body cannot become a large piece of memory.
#[derive(Debug)]
struct Inflater {
    decoder: MultiGzDecoder<Vec<u8>>,
    packed: Bytes,
}

impl Inflater {
    fn new() -> Self {
        Self {
            decoder: MultiGzDecoder::new(Vec::new()),
            packed: Bytes::new(),
        }
    }

    /// The next decompressed bytes; `None` if more compressed ones are needed.
    fn inflate(&mut self) -> Result<Option<Bytes>> {
        while !self.packed.is_empty() {
            let step = self
                .packed
                .split_to(self.packed.len().min(PACKED_STEP_BYTES));
            self.decoder
                .write_all(&step)
                .map_err(|error| not_gzip(&error))?;
            let plain = std::mem::take(self.decoder.get_mut());
            if !plain.is_empty() {
                return Ok(Some(plain.into()));
            }
        }
        Ok(None)
    }

    fn finish(&mut self) -> Result<Option<Bytes>> {
        self.decoder
            .try_finish()
            .map_err(|error| not_gzip(&error))?;
        let plain = std::mem::take(self.decoder.get_mut());
        Ok((!plain.is_empty()).then(|| plain.into()))
    }
}

fn not_gzip(error: &std::io::Error) -> Failure {
    Failure::invalid(format!("request body is not valid gzip: {error}"))
}
