//! Calls where several nodes share the namespaces: that of a client is answered here, or sent on as a
//! whole to the node that has its namespace; that of a node is answered here or nowhere.
//!
//! A call is repeated only if it was certainly not carried out, or changes nothing. A stream goes on at
//! another node after what its client has got.
//!
//! ```text
//! connections  to other nodes
//! messages     of an answer that comes from there
//! journey      a stream, over as many nodes as it takes
//! progress     how far its client has come
//! ```

mod connections;
mod journey;
mod messages;
mod progress;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::StreamExt as _;
use h2::RecvStream;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method as HttpMethod, Request, Uri, Version};
use tonic::{Code, Status};
use trefoil::{Error, NamespaceId, OpenDatabase, Trace};

use super::body::{GrpcAnswer, begin_frame, end_frame};
use super::call::{CallTask, Method};
use super::request::Received;
use super::status::{Result, elsewhere, is_elsewhere, of_error, of_failure, owner_in};
use crate::budget::Share;
use crate::connections::{Guest, Protocol};
use crate::limits::{MOVE_PATIENCE, PEER_WINDOW_BYTES};
use crate::peers::{ForwardOutcome, OwnerSearch, Place};
use crate::service::Shared;
use connections::PeerFailure;
use messages::{PeerMessages, failure_of, result_of};

pub(crate) use connections::GrpcPeers;

/// What begins all headers that nodes alone tell each other.
const BETWEEN_NODES: &str = "trefoil-";

/// A position that the log has for certain: in a request, because the client of a stream has come that
/// far at another node; in an answer, where a read ends.
const KNOWN_POSITION: HeaderName = HeaderName::from_static("trefoil-known-position");

fn known_position(headers: &HeaderMap) -> Option<u64> {
    let value = headers.get(KNOWN_POSITION)?;
    value.to_str().ok()?.parse().ok()
}

/// Tells another node that the log has this position.
pub(super) fn tell_position(headers: &mut HeaderMap, position: u64) {
    headers.insert(KNOWN_POSITION, HeaderValue::from(position));
}

/// Answers a call where several nodes share the namespaces.
pub(super) async fn answer(
    task: CallTask<'_>,
    guest: &Guest,
    parts: &Parts,
    body: RecvStream,
) -> Result<GrpcAnswer> {
    let share = guest.request_share().map_err(of_failure)?;
    // The connection of a client has been counted, and those of a peer are counted there.
    let quotas = |id: &NamespaceId| task.shared.namespaces.quota_keeper(id);
    let entered = share.enter(task.namespace, false, quotas);
    entered.map_err(of_failure)?;
    let request = Received::read(task.shared, &share, &parts.headers, body).await?;
    if guest.is_peer {
        let task = CallTask {
            share: &share,
            ..task
        };
        return answer_peer(task, &parts.headers, &request).await;
    }
    let call = RelayedCall {
        shared: Arc::clone(task.shared),
        share,
        namespace: task.namespace.clone(),
        method: task.method,
        trace: Arc::clone(task.trace),
        head: parts.clone(),
        request,
    };
    match call.method {
        Method::Read | Method::Subscribe => journey::begin(call).await,
        _ => call.answer_once().await,
    }
}

/// Answers a call that another node has sent on.
async fn answer_peer(
    task: CallTask<'_>,
    headers: &HeaderMap,
    request: &Received,
) -> Result<GrpcAnswer> {
    let database = task.shared.database(task.namespace, task.trace, true).await;
    let database = database.map_err(of_failure)?;
    answer_here(task, database, request, known_position(headers)).await
}

/// Answers a call from a database of this node. When that is closed because the namespace moves, the error
/// says that the namespace is elsewhere.
async fn answer_here(
    task: CallTask<'_>,
    database: OpenDatabase,
    request: &Received,
    known: Option<u64>,
) -> Result<GrpcAnswer> {
    if let Some(known) = known {
        check_known(&database, known)?;
    }
    let answer = task.answer_from(database.clone(), request, known).await;
    match answer.map_err(|status| moved_or(status, &database))? {
        GrpcAnswer::Stream { frames, as_of } => {
            let frames =
                frames.map(move |frame| frame.map_err(|status| moved_or(status, &database)));
            let frames = frames.boxed();
            Ok(GrpcAnswer::Stream { frames, as_of })
        }
        whole @ GrpcAnswer::Whole(_) => Ok(whole),
    }
}

fn moved_or(status: Box<Status>, database: &OpenDatabase) -> Box<Status> {
    let is_closed = status.code() == Code::Unavailable && database.head().is_err();
    match is_closed && !is_elsewhere(&status) {
        true => elsewhere(status.message()),
        false => status,
    }
}

/// Refuses to go on in a log that does not have what the client has got already.
fn check_known(database: &OpenDatabase, known: u64) -> Result<()> {
    let head = database.head().map_err(|error| of_error(&error))?;
    match known <= head {
        true => Ok(()),
        false => Err(of_error(&Error::Closed("all events were removed".into()))),
    }
}

/// A call of a client.
struct RelayedCall {
    shared: Arc<Shared>,
    share: Share,
    namespace: NamespaceId,
    method: Method,
    trace: Arc<Trace>,
    head: Parts,
    request: Received,
}

impl RelayedCall {
    fn task(&self) -> CallTask<'_> {
        CallTask {
            shared: &self.shared,
            share: &self.share,
            namespace: &self.namespace,
            method: self.method,
            trace: &self.trace,
        }
    }

    /// Returns where the namespace is.
    async fn place(&self, search: &mut OwnerSearch) -> Result<Place> {
        let place = search.place(&self.shared, &self.namespace, &self.trace);
        place.await.map_err(of_failure)
    }

    /// Waits before the namespace is looked for again. Returns whether it is to be.
    async fn goes_on(&self, search: &mut OwnerSearch, why: &Status) -> bool {
        let owner = owner_in(why);
        search.goes_on(&self.shared, &self.namespace, owner).await
    }

    /// Answers a call that has one answer.
    async fn answer_once(&self) -> Result<GrpcAnswer> {
        let mut search = OwnerSearch::new(&self.shared, MOVE_PATIENCE);
        loop {
            let answer = match self.place(&mut search).await? {
                Place::Here(database) => {
                    let answer = answer_here(self.task(), database, &self.request, None).await;
                    answer.map_err(failure_of)
                }
                Place::There(owner) => self.answer_there(&owner).await,
            };
            let why = match answer {
                Ok(answer) => return Ok(answer),
                Err(PeerFailure::Answered(status)) => return Err(status),
                Err(PeerFailure::Elsewhere(status)) => status,
                Err(PeerFailure::Lost(why)) => {
                    let status = of_error(&Error::result_lost(why));
                    // What changes nothing may be asked for again.
                    if self.method == Method::Append {
                        return Err(status);
                    }
                    status
                }
            };
            if !self.goes_on(&mut search, &why).await {
                return Err(why);
            }
        }
    }

    async fn answer_there(&self, owner: &Arc<str>) -> Result<GrpcAnswer, PeerFailure> {
        let (messages, _) = self.send(owner, &self.request.message, None).await?;
        let collected = messages.collect().await;
        if let (Err(PeerFailure::Lost(_)), Some(peers)) = (&collected, &self.shared.peers) {
            peers.counts.count(Protocol::Grpc, ForwardOutcome::Lost);
        }
        Ok(GrpcAnswer::Whole(collected?))
    }

    /// Sends the call, with this message, to the node that has the namespace. Returns its answer, and
    /// the position that it tells.
    async fn send(
        &self,
        owner: &Arc<str>,
        message: &Bytes,
        known: Option<u64>,
    ) -> Result<(PeerMessages, Option<u64>), PeerFailure> {
        let sent = self.send_uncounted(owner, message, known).await;
        let outcome = match &sent {
            Ok(_) | Err(PeerFailure::Answered(_)) => ForwardOutcome::Answered,
            Err(PeerFailure::Elsewhere(_)) => ForwardOutcome::NotExecuted,
            Err(PeerFailure::Lost(_)) => ForwardOutcome::Lost,
        };
        if let Some(peers) = &self.shared.peers {
            peers.counts.count(Protocol::Grpc, outcome);
            if sent.is_ok() {
                peers.found(&self.namespace, owner);
            }
        }
        sent
    }

    async fn send_uncounted(
        &self,
        owner: &Arc<str>,
        message: &Bytes,
        known: Option<u64>,
    ) -> Result<(PeerMessages, Option<u64>), PeerFailure> {
        let Some(peers) = &self.shared.peers else {
            return Err(PeerFailure::Elsewhere(elsewhere("there is no other node")));
        };
        let window = self.share.reserve(PEER_WINDOW_BYTES as usize);
        let window = window.map_err(|failure| PeerFailure::Answered(of_failure(failure)))?;
        let request = self.request_to(owner, known)?;
        let connections = &self.shared.grpc_peers;
        let sent = connections.send(peers, owner, request, framed(message));
        let (response, place) = sent.await?;
        let (head, body) = response.await?.into_parts();
        if head.headers.contains_key("grpc-status") {
            result_of(&head.headers)?;
        }
        let messages = PeerMessages::new(body, &self.share, window, place);
        Ok((messages, known_position(&head.headers)))
    }

    /// Returns the head of the request: that of the client, for another address.
    fn request_to(&self, owner: &str, known: Option<u64>) -> Result<Request<()>, PeerFailure> {
        let refused = |error: hyper::http::Error| {
            PeerFailure::Answered(of_error(&Error::Internal(error.to_string())))
        };
        let uri = Uri::builder().scheme("https").authority(owner);
        let uri = uri.path_and_query(self.head.uri.path()).build();
        let mut request = Request::new(());
        *request.method_mut() = HttpMethod::POST;
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = uri.map_err(refused)?;
        let headers = self.head.headers.iter();
        let headers = headers.filter(|(name, _)| !name.as_str().starts_with(BETWEEN_NODES));
        let headers = headers.map(|(name, value)| (name.clone(), value.clone()));
        *request.headers_mut() = headers.collect();
        if let Some(known) = known {
            tell_position(request.headers_mut(), known);
        }
        Ok(request)
    }
}

/// A message with what gRPC puts before it.
fn framed(message: &Bytes) -> Bytes {
    let mut out = Vec::with_capacity(message.len() + 5);
    begin_frame(&mut out);
    out.extend_from_slice(message);
    end_frame(&mut out, 0);
    out.into()
}
