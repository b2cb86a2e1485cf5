//! A gRPC client that costs little, on HTTP/2 itself.
//!
//! The usual one writes three times for each request and hands it through two queues. Where client
//! and server share the machine, that is more than a good server needs for its whole answer, and it
//! would hide what is to be measured. This one writes once and has one task for its connection.

use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::RecvStream;
use h2::client::{Builder, SendRequest};
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, Version};
use prost::Message;
use tokio::net::TcpStream;
use trefoil_grpc::{
    AppendRequest, AppendResponse, Code, ReadRequest, ReadResponse, SequencedEvent, method,
};

use super::connection::{Answer, Found};

/// What UmaDB's own client allows the server to send ahead.
const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 8 * 1024 * 1024;
/// A message is preceded by a flag and its length.
const PREFIX_BYTES: usize = 5;

/// A connection; it belongs to the runtime of the thread that made it.
pub(crate) struct Grpc {
    sender: SendRequest<Bytes>,
    append: Uri,
    read: Uri,
    headers: HeaderMap,
}

/// A response as far as it has come.
struct Response {
    body: RecvStream,
    /// Bytes of messages that are not yet complete.
    received: BytesMut,
    /// The status, if it came at once.
    code: Option<Code>,
}

impl Grpc {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = Builder::new()
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .handshake(socket)
            .await?;
        // If it fails, so do the requests that wait for it.
        tokio::spawn(async { drop(connection.await) });
        let mut headers = HeaderMap::new();
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        let uri = |path| format!("http://{address}{path}").parse();
        Ok(Self {
            sender,
            append: uri(method::APPEND)?,
            read: uri(method::READ)?,
            headers,
        })
    }

    pub(crate) async fn append(&mut self, append: &AppendRequest) -> Result<Answer> {
        let uri = self.append.clone();
        let mut response = self.send(uri, append).await?;
        let answer: Option<AppendResponse> = response.message().await?;
        match (answer, response.status().await?) {
            (Some(answer), Code::Ok) => Ok(Answer::Appended(answer.position)),
            (None, Code::FailedPrecondition) => Ok(Answer::Refused),
            (_, code) => bail!("an append was answered with {code:?}"),
        }
    }

    pub(crate) async fn read(&mut self, read: &ReadRequest) -> Result<Found> {
        let uri = self.read.clone();
        let mut response = self.send(uri, read).await?;
        let mut found = Found::default();
        while let Some(message) = response.message::<ReadResponse>().await? {
            for SequencedEvent { event, .. } in message.events {
                found.events += 1;
                found.bytes += event.map_or(0, |event| event.data.len() as u64);
            }
        }
        let code = response.status().await?;
        ensure!(code == Code::Ok, "a read was answered with {code:?}");
        Ok(found)
    }

    async fn send(&mut self, uri: Uri, message: &impl Message) -> Result<Response> {
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers.clone();

        let length = message.encoded_len();
        let mut framed = BytesMut::with_capacity(PREFIX_BYTES + length);
        framed.put_u8(0);
        framed.put_u32(u32::try_from(length).context("a message is too large")?);
        message.encode(&mut framed)?;

        std::future::poll_fn(|context| self.sender.poll_ready(context)).await?;
        // Both parts are handed over before the connection writes any of them.
        let (response, mut body) = self.sender.send_request(request, false)?;
        body.send_data(framed.freeze(), true)?;
        let response = response.await?;
        Ok(Response {
            code: code(response.headers()),
            body: response.into_body(),
            received: BytesMut::new(),
        })
    }
}

impl Response {
    /// The next message; `None` if there is no more.
    async fn message<M: Message + Default>(&mut self) -> Result<Option<M>> {
        loop {
            if let Some(length) = self.complete() {
                self.received.advance(PREFIX_BYTES);
                let message = self.received.split_to(length).freeze();
                return Ok(Some(M::decode(message)?));
            }
            let Some(data) = self.body.data().await.transpose()? else {
                ensure!(self.received.is_empty(), "a message was cut");
                return Ok(None);
            };
            self.body.flow_control().release_capacity(data.len())?;
            self.received.extend_from_slice(&data);
        }
    }

    /// The length of the first message, if all of it has come.
    fn complete(&self) -> Option<usize> {
        let (_, mut rest) = self.received.split_at_checked(1)?;
        let length = rest.try_get_u32().ok()? as usize;
        (rest.len() >= length).then_some(length)
    }

    async fn status(mut self) -> Result<Code> {
        if let Some(code) = self.code {
            return Ok(code);
        }
        // Nothing but the end can follow the last message.
        while self.body.data().await.transpose()?.is_some() {}
        let trailers = self.body.trailers().await?;
        let code = trailers.as_ref().and_then(code);
        code.ok_or_else(|| anyhow!("a response has no status"))
    }
}

fn code(headers: &HeaderMap) -> Option<Code> {
    let value = headers.get("grpc-status")?;
    Some(Code::from_bytes(value.as_bytes()))
}
