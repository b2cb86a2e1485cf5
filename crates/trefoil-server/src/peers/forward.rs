//! Sending an HTTP request on to the node that has its namespace.
//!
//! The owner gets what the client sent, with its token, and authenticates it again. Headers whose names
//! begin with `trefoil-` are spoken between nodes alone: what a client sends of them is left out.

use std::error::Error as _;

use futures_util::stream::{self, StreamExt as _};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode, Uri};
use tokio::time::timeout;
use trefoil::{Error, NamespaceId};

use super::PeerNodes;
use super::body::{ClientBody, RepeatableBody, SentBody};
use super::counts::ForwardOutcome;
use super::pool::{LentConnection, NoConnection};
use crate::budget::{Reservation, Share};
use crate::connections::Protocol;
use crate::error::{Elsewhere, Failure, Result};
use crate::limits::{PEER_ANSWER_TIMEOUT, PEER_WINDOW_BYTES, REQUEST_BYTES};
use crate::response::{Chunks, HttpAnswer, HttpBody};

/// A peer says with this that it does not have the namespace, and where it is if it knows. Nothing was
/// done.
pub(crate) const WRONG_NODE: HeaderName = HeaderName::from_static("trefoil-wrong-node");
/// After which position a subscription begins.
pub(crate) const AFTER: HeaderName = HeaderName::from_static("trefoil-after");
/// What begins all headers between nodes.
const BETWEEN_NODES: &str = "trefoil-";

/// Headers that are about one connection, or that are made anew.
const NOT_SENT_ON: [HeaderName; 9] = [
    header::CONNECTION,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// A request as it is sent to other nodes, once or again.
#[derive(Debug, Clone)]
pub(crate) struct ForwardedRequest {
    method: Method,
    uri: Uri,
    pub(crate) headers: HeaderMap,
    body: ForwardedBody,
}

#[derive(Debug, Clone)]
pub(crate) enum ForwardedBody {
    /// The whole body, not compressed.
    Whole(bytes::Bytes),
    /// As it comes from the client.
    Streamed(RepeatableBody),
}

/// What has come of sending a request to a peer.
#[derive(Debug)]
pub(crate) enum Forwarded {
    Answered(PeerAnswer),
    /// Certainly not executed: the peer is not there, does not have the namespace, or is stopping.
    NotExecuted {
        why: String,
        /// Who has it, if the peer knows.
        owner: Option<String>,
    },
    /// Certainly not executed, and not to be tried again at once.
    Refused(Failure),
    /// The connection was lost after the request was sent.
    Lost(String),
}

/// The answer of a peer.
#[derive(Debug)]
pub(crate) struct PeerAnswer {
    pub(crate) response: Response<Incoming>,
    _connection: LentConnection,
    /// What of the answer waits here to be taken.
    _window: Reservation,
}

/// Says of an answer that it comes from another node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IsForwarded;

impl ForwardedRequest {
    pub(crate) fn new(parts: &Parts, body: ForwardedBody) -> Result<Self> {
        let is_sent_on = |name: &HeaderName| {
            !NOT_SENT_ON.contains(name) && !name.as_str().starts_with(BETWEEN_NODES)
        };
        let headers = parts.headers.iter();
        let mut headers: HeaderMap = headers
            .filter(|(name, _)| is_sent_on(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if let ForwardedBody::Whole(_) = body {
            headers.remove(header::CONTENT_ENCODING);
            headers.remove(header::CONTENT_LENGTH);
        }
        let path = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let uri = Uri::builder()
            .scheme("https")
            .authority(super::identity::NODE_NAME)
            .path_and_query(path)
            .build();
        let uri =
            uri.map_err(|error| Failure::internal(format!("the path of a request: {error}")))?;
        Ok(Self {
            method: parts.method.clone(),
            uri,
            headers,
            body,
        })
    }

    /// Makes the request once more; `None` if too much of its body has been taken.
    fn make(&self) -> Option<Request<SentBody>> {
        let body = match &self.body {
            ForwardedBody::Whole(bytes) => SentBody::Whole(bytes.clone()),
            ForwardedBody::Streamed(body) => SentBody::Kept(body.begin()?),
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        Some(request)
    }

    /// Returns the body for whoever reads it here, if it is not held as a whole.
    pub(crate) fn unread_body(&self) -> Option<ClientBody> {
        match &self.body {
            ForwardedBody::Whole(_) => None,
            ForwardedBody::Streamed(body) => body.begin().map(ClientBody::Resumed),
        }
    }

    /// Whether the answer must begin within a time: not if that depends on how fast the client sends.
    fn has_deadline(&self) -> bool {
        matches!(self.body, ForwardedBody::Whole(_))
    }
}

impl PeerNodes {
    /// Sends a request to the owner of a namespace. The inner error says why it was certainly not executed.
    pub(crate) async fn forward_to(
        &self,
        elsewhere: &Elsewhere,
        owner: &str,
        request: &ForwardedRequest,
        share: &Share,
    ) -> Result<Result<PeerAnswer, String>> {
        let id = NamespaceId::new(&elsewhere.namespace)?;
        match self.forward(owner, request, share).await {
            Forwarded::Answered(answer) => {
                self.owners.note(&id, owner);
                Ok(Ok(answer))
            }
            Forwarded::NotExecuted { why, owner } => {
                match owner {
                    Some(owner) => self.owners.note(&id, &owner),
                    None => self.owners.forget(&id),
                }
                Ok(Err(why))
            }
            Forwarded::Refused(failure) => Err(failure),
            Forwarded::Lost(why) => {
                self.owners.forget(&id);
                Err(Error::result_lost(&why).into())
            }
        }
    }

    /// Sends a request to the peer at this address.
    pub(crate) async fn forward(
        &self,
        address: &str,
        request: &ForwardedRequest,
        share: &Share,
    ) -> Forwarded {
        let sent = self.send(address, request, share).await;
        let outcome = match &sent {
            Forwarded::Answered(_) => ForwardOutcome::Answered,
            Forwarded::NotExecuted { .. } | Forwarded::Refused(_) => ForwardOutcome::NotExecuted,
            Forwarded::Lost(_) => ForwardOutcome::Lost,
        };
        self.counts.count(Protocol::Http, outcome);
        sent
    }

    async fn send(&self, address: &str, request: &ForwardedRequest, share: &Share) -> Forwarded {
        let mut window = share.for_request();
        if let Err(failure) = window.grow_to(REQUEST_BYTES + PEER_WINDOW_BYTES as usize) {
            return Forwarded::Refused(failure);
        }
        let mut connection = match self.pool.lend(address).await {
            Ok(connection) => connection,
            Err(NoConnection::Unreachable(error)) => {
                return not_executed(format!("{address} cannot be reached: {error}"));
            }
            Err(NoConnection::Full) => {
                let text = format!("overloaded: too many requests are under way to {address}");
                return Forwarded::Refused(Failure::overloaded(text));
            }
        };
        let Some(made) = request.make() else {
            let text = "the namespace has moved while the request was being sent";
            return Forwarded::Lost(text.to_owned());
        };
        let sent = connection.sender.try_send_request(made);
        let answered = match request.has_deadline() {
            true => timeout(PEER_ANSWER_TIMEOUT, sent).await,
            false => Ok(sent.await),
        };
        match answered {
            Ok(Ok(response)) => match owner_elsewhere(&response) {
                Some(owner) => Forwarded::NotExecuted {
                    why: format!("{address} does not have it"),
                    owner: Some(owner).filter(|owner| !owner.is_empty()),
                },
                None => Forwarded::Answered(PeerAnswer {
                    response,
                    _connection: connection,
                    _window: window,
                }),
            },
            Ok(Err(mut error)) => match error.take_message() {
                Some(_) => not_executed(format!("{address} ended the connection")),
                None if was_not_looked_at(error.error()) => {
                    not_executed(format!("{address} is stopping"))
                }
                None => Forwarded::Lost(format!("{address}: {}", error.error())),
            },
            Err(_) => Forwarded::Lost(format!("{address} did not answer in time")),
        }
    }
}

fn not_executed(why: String) -> Forwarded {
    Forwarded::NotExecuted { why, owner: None }
}

/// Returns what a peer says that does not have the namespace.
fn owner_elsewhere(response: &Response<Incoming>) -> Option<String> {
    if response.status() != StatusCode::MISDIRECTED_REQUEST {
        return None;
    }
    let owner = response.headers().get(WRONG_NODE)?;
    Some(String::from_utf8_lossy(owner.as_bytes()).into_owned())
}

/// Returns whether a peer has said that it has not looked at the request.
fn was_not_looked_at(error: &hyper::Error) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let is_refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return error.is_remote() && (error.is_go_away() || is_refused);
        }
        source = error.source();
    }
    false
}

impl PeerAnswer {
    /// The answer as the client gets it.
    pub(crate) fn into_answer(mut self) -> HttpAnswer {
        let mut answer = Response::new(HttpBody::Whole(bytes::Bytes::new()));
        *answer.status_mut() = self.response.status();
        *answer.headers_mut() = std::mem::take(self.response.headers_mut());
        answer.headers_mut().remove(AFTER);
        answer.extensions_mut().insert(IsForwarded);
        *answer.body_mut() = HttpBody::Stream(self.into_chunks());
        answer
    }

    /// The parts of the body as they come.
    pub(crate) fn into_chunks(self) -> Chunks {
        let next = |mut answer: Self| async move {
            loop {
                return match answer.response.body_mut().frame().await? {
                    Ok(frame) => match frame.into_data() {
                        Ok(bytes) => Some((Ok(bytes), answer)),
                        // Trailers are not looked at.
                        Err(_) => continue,
                    },
                    Err(error) => Some((Err(error.into()), answer)),
                };
            }
        };
        stream::unfold(self, next).boxed()
    }
}

/// Tells a peer that this node does not have the namespace.
pub(crate) fn put_wrong_node(answer: &mut HttpAnswer, owner: Option<&str>) {
    let value = HeaderValue::from_str(owner.unwrap_or_default());
    let value = value.unwrap_or(HeaderValue::from_static(""));
    answer.headers_mut().insert(WRONG_NODE, value);
}
