//! One call: which method it is for, whose namespace it may touch, what is counted.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use hyper::Request;
use hyper::header::{self, HeaderMap};
use hyper::http::request::Parts;
use tonic::Code;
use trefoil::{DEFAULT_NAMESPACE, Grant, NamespaceId, OpenDatabase, Scope, Trace};
use trefoil_grpc::{ErrorType, method};

use super::body::{GrpcAnswer, send};
use super::request::Received;
use super::status::{self, Result, of_error, of_failure};
use super::{append, health, lookup, read, relay, subscribe};
use crate::auth::authenticate;
use crate::budget::Share;
use crate::connections::{Guest, Protocol};
use crate::need::Need;
use crate::panics::caught;
use crate::query::QueryString;
use crate::requests::{EndedRequest, Severity, micros};
use crate::service::Shared;

/// The methods that are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Read,
    Subscribe,
    Append,
    Head,
    GetTrackingInfo,
    HealthCheck,
    HealthWatch,
    Unknown,
}

impl Method {
    fn of_path(path: &str) -> Self {
        let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let Some((service, name)) = parts else {
            return Self::Unknown;
        };
        match (service, name) {
            (method::SERVICE | method::LEGACY_SERVICE, name) => match name {
                "Read" => Self::Read,
                "Subscribe" => Self::Subscribe,
                "Append" => Self::Append,
                "Head" => Self::Head,
                "GetTrackingInfo" => Self::GetTrackingInfo,
                _ => Self::Unknown,
            },
            (method::HEALTH_SERVICE, "Check") => Self::HealthCheck,
            (method::HEALTH_SERVICE, "Watch") => Self::HealthWatch,
            _ => Self::Unknown,
        }
    }

    /// What it needs to be permitted. Events have no streams here, so nothing is confined to some.
    fn need(self) -> Need {
        match self {
            Self::Read | Self::Head | Self::GetTrackingInfo => Need::Whole(Scope::Read),
            Self::Subscribe => Need::Whole(Scope::Subscribe),
            Self::Append => Need::Whole(Scope::Write),
            Self::HealthCheck | Self::HealthWatch | Self::Unknown => Need::Nothing,
        }
    }

    /// Whether its answer has many parts, which the client takes when it likes.
    fn is_stream(self) -> bool {
        matches!(self, Self::Read | Self::Subscribe | Self::HealthWatch)
    }

    /// What metrics and the log call it.
    fn name(self) -> &'static str {
        METHOD_NAMES[self as usize]
    }
}

/// The names of the methods, in the order of [`Method`].
pub(crate) const METHOD_NAMES: [&str; 8] = [
    "Read",
    "Subscribe",
    "Append",
    "Head",
    "GetTrackingInfo",
    "Check",
    "Watch",
    "unknown",
];

/// A call that is counted when it ends, however it ends.
pub(super) struct CountedCall {
    shared: Arc<Shared>,
    method: Method,
    /// When the call began, by the steady clock.
    began: Duration,
    is_counted: bool,
    scene: Arc<CallScene>,
}

/// Whose call it is, once that is known, and how long its stages take.
#[derive(Debug, Default)]
pub(super) struct CallScene {
    namespace: OnceLock<NamespaceId>,
    trace: Arc<Trace>,
}

/// What a call asks for, and for whom.
#[derive(Clone, Copy)]
pub(super) struct CallTask<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) share: &'a Share,
    pub(super) namespace: &'a NamespaceId,
    pub(super) method: Method,
    pub(super) trace: &'a Arc<Trace>,
}

impl CountedCall {
    /// Counts the call as ended with this code.
    pub(super) fn finish(&mut self, code: Code) {
        self.is_counted = true;
        let elapsed = self.shared.clock().since(self.began);
        let calls = &self.shared.metrics.calls;
        calls.count(self.method as usize, code as usize, elapsed);
        let (method, name) = (self.method.name(), status::name(code));
        let ended = EndedRequest {
            protocol: Protocol::Grpc,
            method,
            namespace: self.scene.namespace.get(),
            code: name,
            severity: severity_of(code),
            began: self.began,
            elapsed,
            is_stream: self.method.is_stream(),
            trace: &self.scene.trace,
        };
        self.shared.requests.note(&self.shared, ended);
        let (code, duration_us) = (name, micros(elapsed));
        tracing::debug!(method, code, duration_us, "gRPC call");
    }
}

impl Drop for CountedCall {
    /// A client that leaves before the end has cancelled its call.
    fn drop(&mut self) {
        if !self.is_counted {
            self.finish(Code::Cancelled);
        }
    }
}

/// Answers a call, unless its client cancels it.
pub(super) async fn serve(
    shared: Arc<Shared>,
    guest: Arc<Guest>,
    request: Request<RecvStream>,
    mut reply: SendResponse<Bytes>,
) {
    let (parts, body) = request.into_parts();
    let mut counted = CountedCall {
        method: Method::of_path(parts.uri.path()),
        began: shared.clock().steady(),
        shared,
        is_counted: false,
        scene: Arc::default(),
    };
    let (shared, method) = (Arc::clone(&counted.shared), counted.method);
    let scene = Arc::clone(&counted.scene);
    let answer = {
        let running = pin!(run(&shared, &guest, (method, &scene), &parts, body));
        let mut answer = pin!(caught(running));
        // A call that was cancelled before it began costs nothing.
        poll_fn(|context| match reply.poll_reset(context) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => answer.as_mut().poll(context).map(Some),
        })
        .await
    };
    let Some(answer) = answer else {
        return;
    };
    let answer = answer.unwrap_or_else(|panicked| Err(of_error(&panicked)));
    let sent = caught(pin!(send(answer, &mut reply, &mut counted))).await;
    match sent {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a call was cut off"),
        Err(_) => reply.send_reset(Reason::INTERNAL_ERROR),
    }
}

/// Finds the method. What is not about a namespace needs no token.
async fn run(
    shared: &Arc<Shared>,
    guest: &Guest,
    (method, scene): (Method, &Arc<CallScene>),
    parts: &Parts,
    body: RecvStream,
) -> Result<GrpcAnswer> {
    // What a peer sends on has been looked at by that peer.
    if !guest.is_peer {
        let config = &shared.config;
        let admitted = config.web.check_origin(parts, &config.listen);
        admitted.map_err(of_failure)?;
    }
    match method {
        Method::Unknown => {
            let text = format!("there is no method {}", parts.uri.path());
            let (code, error_type) = (Code::Unimplemented, ErrorType::InvalidArgument);
            Err(status::status(code, error_type, text))
        }
        Method::HealthCheck | Method::HealthWatch => {
            let request = Received::read(shared, &guest.share, &parts.headers, body).await?;
            health::answer(shared, &request, method == Method::HealthWatch)
        }
        _ => {
            let grant = authorize(shared, guest, parts).await?;
            method
                .need()
                .check(&grant)
                .map_err(|error| of_error(&error))?;
            let is_alone = shared.peers.is_none();
            let task = CallTask {
                shared,
                share: &guest.share,
                namespace: scene.namespace.get_or_init(|| grant.namespace().clone()),
                method,
                trace: &scene.trace,
            };
            let answer = match is_alone {
                true => task.answer(&parts.headers, body).await?,
                false => Box::pin(relay::answer(task, guest, parts, body)).await?,
            };
            Ok(until_revoked(shared, answer, &grant))
        }
    }
}

/// Returns what the client may use.
async fn authorize(shared: &Shared, guest: &Guest, parts: &Parts) -> Result<Arc<Grant>> {
    let grant = if is_anonymous(shared, parts) {
        let default = NamespaceId::new(DEFAULT_NAMESPACE).map_err(|error| of_error(&error))?;
        shared.namespaces.admit_anybody(&default)
    } else {
        let query = QueryString::of(&parts.uri);
        let access = authenticate(shared, &parts.headers, query, guest.is_peer);
        access.await.map_err(of_failure)?.grant
    };
    guest.make_known();
    let entered = shared.enter(&guest.share, &grant, guest.is_peer);
    entered.map_err(of_failure)?;
    Ok(grant)
}

/// The answer, which fails when its token does not count any more, if it takes a while.
fn until_revoked(shared: &Shared, answer: GrpcAnswer, grant: &Arc<Grant>) -> GrpcAnswer {
    match answer {
        GrpcAnswer::Stream { frames, as_of } => {
            let visit = shared.visits.begin(&shared.namespaces, grant);
            let frames = visit.guard(frames, status::not_granted);
            GrpcAnswer::Stream { frames, as_of }
        }
        whole @ GrpcAnswer::Whole(_) => whole,
    }
}

impl CallTask<'_> {
    /// Answers a call where nobody else has namespaces.
    async fn answer(&self, headers: &HeaderMap, body: RecvStream) -> Result<GrpcAnswer> {
        let database = self
            .shared
            .database(self.namespace, self.trace, false)
            .await;
        let database = database.map_err(of_failure)?;
        let request = Received::read(self.shared, self.share, headers, body).await?;
        let answer = self.answer_from(database, &request, None).await?;
        Ok(answer.without_position())
    }

    /// Answers a call from a database of this node. If another node has begun, `known` is a position
    /// that the log has; a read ends there.
    pub(super) async fn answer_from(
        &self,
        database: OpenDatabase,
        request: &Received,
        known: Option<u64>,
    ) -> Result<GrpcAnswer> {
        let (shared, share) = (self.shared, self.share);
        let database = database.traced(self.trace);
        match self.method {
            Method::Append => append::answer(shared, database, request).await,
            Method::Read => {
                let database = match shared.peers {
                    Some(_) => database,
                    // The next page could not be had of another node.
                    None => database.staying(),
                };
                Box::pin(read::answer(share, database, request, known)).await
            }
            Method::Subscribe => {
                subscribe::answer(shared, share, self.namespace, &database, request)
            }
            Method::GetTrackingInfo => lookup::tracking(&database, request).await,
            _ => lookup::head(&database),
        }
    }
}

/// Whose fault it is that a call ended with this code.
fn severity_of(code: Code) -> Severity {
    match code {
        Code::Ok => Severity::None,
        Code::Unavailable | Code::ResourceExhausted => Severity::Refused,
        Code::Internal | Code::DataLoss | Code::Unknown => Severity::Fault,
        _ => Severity::Client,
    }
}

/// Returns whether the client brings no token where none is needed.
fn is_anonymous(shared: &Shared, parts: &Parts) -> bool {
    let grpc = shared.config.grpc.as_ref();
    grpc.is_some_and(|grpc| grpc.anonymous) && !parts.headers.contains_key(header::AUTHORIZATION)
}
