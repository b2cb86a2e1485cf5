//! The one message of a call, out of the body of its request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use hyper::body::{Body, Frame};
use hyper::header::HeaderMap;
use prost::Message;
use tonic::Code;
use trefoil_grpc::ErrorType;

use super::status::{Result, malformed, of_failure, status};
use crate::body::{BodyReader, Whole};
use crate::budget::Share;
use crate::limits::REQUEST_BYTES;
use crate::service::Shared;

/// A flag and the length of the message.
const PREFIX_BYTES: usize = 5;

/// A message and the part of the memory for clients it takes.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) message: Bytes,
    _whole: Arc<Whole>,
}

impl Received {
    /// Reads a body that holds one message.
    pub(super) async fn read(
        shared: &Shared,
        share: &Share,
        headers: &HeaderMap,
        body: RecvStream,
    ) -> Result<Self> {
        let body = RequestBody(body);
        let reader =
            BodyReader::new(headers, body, shared.config.body_timeout).map_err(of_failure)?;
        let mut reservation = share.for_request();
        reservation.grow_to(REQUEST_BYTES).map_err(of_failure)?;
        let whole = reader.whole(reservation).await.map_err(of_failure)?;
        let message = unframe(&whole.bytes)?;
        Ok(Self {
            message,
            _whole: Arc::new(whole),
        })
    }

    /// Another message instead of this one, which is kept.
    pub(super) fn with_message(&self, message: Bytes) -> Self {
        Self {
            message,
            ..self.clone()
        }
    }

    /// Understands the message.
    pub(super) fn decode<M: Message + Default>(&self, name: &str) -> Result<M> {
        M::decode(self.message.clone()).map_err(|_| malformed(name))
    }
}

/// The body of a request.
struct RequestBody(RecvStream);

impl Body for RequestBody {
    type Data = Bytes;
    type Error = h2::Error;

    /// Whoever takes the bytes counts them, so the client may send as many again.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let data = ready!(self.0.poll_data(context)).transpose()?;
        if let Some(bytes) = &data {
            self.0.flow_control().release_capacity(bytes.len())?;
        }
        Poll::Ready(data.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
}

/// The message without what gRPC puts before it.
fn unframe(body: &Bytes) -> Result<Bytes> {
    let wrong = |code, text: &str| Err(status(code, ErrorType::Serialization, text));
    let Some((prefix, message)) = body.split_first_chunk::<PREFIX_BYTES>() else {
        return wrong(Code::InvalidArgument, "the request holds no message");
    };
    let [flag, length @ ..] = *prefix;
    if flag != 0 {
        let text = "compressed messages are not understood: use the encoding identity";
        return wrong(Code::Unimplemented, text);
    }
    let announced = u32::from_be_bytes(length) as usize;
    if announced != message.len() {
        let text = format!(
            "the request announces a message of {announced} bytes and holds {}",
            message.len()
        );
        return wrong(Code::InvalidArgument, &text);
    }
    Ok(body.slice(PREFIX_BYTES..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_plain_message_is_taken() {
        let code = |bytes: &'static [u8]| {
            let unframed = unframe(&Bytes::from_static(bytes));
            unframed.map_err(|status| status.code())
        };
        assert_eq!(code(b"\0\0\0\0\x02ab"), Ok(Bytes::from_static(b"ab")));
        assert_eq!(code(b"\0\0\0\0\0"), Ok(Bytes::new()));
        assert_eq!(code(b""), Err(Code::InvalidArgument));
        assert_eq!(code(b"\0\0\0\0\x03ab"), Err(Code::InvalidArgument));
        assert_eq!(code(b"\0\0\0\0\x01ab"), Err(Code::InvalidArgument));
        assert_eq!(code(b"\x01\0\0\0\x02ab"), Err(Code::Unimplemented));
    }
}
