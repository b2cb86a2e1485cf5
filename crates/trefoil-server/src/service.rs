//! One request: which endpoint it is for, what it may touch, what is logged and counted.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use tokio_util::sync::CancellationToken;
use trefoil::{
    Clock, Database, Error, Grant, NamespaceId, Namespaces, OpenDatabase, RequestStage, Scope,
    Token, Trace,
};

use crate::auth::{Access, authenticate};
use crate::body::{BodyReader, Whole, discard_in_background};
use crate::budget::{Budget, PageTurns, Reservation, Share};
use crate::connection::UnderWay;
use crate::connections::{Connections, Guest, Protocol};
use crate::error::{Failure, Result};
use crate::grpc::GrpcPeers;
use crate::limits::{LOGGED_PATH_BYTES, MOVE_PATIENCE, REQUEST_BYTES};
use crate::metrics::{CONSOLE_ENDPOINT, Metrics, OTHER_ENDPOINT, RequestLabels};
use crate::need::Need;
use crate::openings::{OpeningAccount, Openings};
use crate::panics::caught;
use crate::peers::{
    ClientBody, ForwardedBody, ForwardedRequest, IsForwarded, Patience, PeerNodes, RepeatableBody,
    put_wrong_node,
};
use crate::query::QueryString;
use crate::requests::{EndedRequest, RequestLog, Severity, micros};
use crate::resp::RespClients;
use crate::response::{self, ErrorCode, HttpAnswer, HttpBody};
use crate::subscriptions::Subscriptions;
use crate::visits::{NOT_GRANTED, Visits};
use crate::{
    Config, VERSION, backup, console, dcb, export, import, metrics, openapi, ready, rpc, sse,
};

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) namespaces: Namespaces,
    pub(crate) budget: Arc<Budget>,
    pub(crate) metrics: Metrics,
    pub(crate) requests: RequestLog,
    pub(crate) connections: Arc<Connections>,
    pub(crate) resp: RespClients,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) visits: Arc<Visits>,
    openings: Arc<Openings>,
    /// The other nodes; `None` if there are none, or they cannot reach this one.
    pub(crate) peers: Option<PeerNodes>,
    pub(crate) grpc_peers: GrpcPeers,
    /// Cancelled when the server is told to stop.
    pub(crate) leaving: CancellationToken,
    /// Cancelled when subscriptions have to end.
    pub(crate) closing: CancellationToken,
}

impl Shared {
    pub(crate) fn new(config: Config, namespaces: Namespaces, peers: Option<PeerNodes>) -> Self {
        let budget = Budget::new(config.client_memory_max);
        let visits = Arc::new(Visits::default());
        let reviewed = Arc::clone(&visits);
        namespaces.on_token_change(move |review| reviewed.review(review));
        Self {
            visits,
            connections: Connections::new(config.connections_max, Arc::clone(&budget)),
            requests: RequestLog::new(config.slow_after),
            config,
            budget,
            metrics: Metrics::new(namespaces.clock().now()),
            resp: RespClients::new(namespaces.commands(), namespaces.clock().clone()),
            subscriptions: Subscriptions::default(),
            openings: Openings::new(),
            peers,
            grpc_peers: GrpcPeers::default(),
            namespaces,
            leaving: CancellationToken::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Has a connection work for the namespace of a grant, if the quota allows it. What a peer sends on was
    /// counted there, and the administrator of the server can always look after it.
    pub(crate) fn enter(&self, share: &Share, grant: &Grant, is_peer: bool) -> Result<()> {
        let is_counted = !is_peer && !grant.is_server_admin();
        let quotas = |id: &NamespaceId| self.namespaces.quota_keeper(id);
        share.enter(grant.namespace(), is_counted, quotas)
    }

    /// Returns the turns of a namespace's subscriptions.
    pub(crate) fn page_turns(&self, id: &NamespaceId) -> PageTurns {
        self.budget.page_turns(id, self.namespaces.quota_keeper(id))
    }

    /// Returns the clock of all namespaces.
    pub(crate) fn clock(&self) -> &Clock {
        self.namespaces.clock()
    }

    /// Returns the database of a namespace. OpeningAccount it may take a while, so that happens elsewhere. If
    /// another node has it, or should, that is [`Error::NotOwner`]; only for a peer, which has looked for
    /// the owner already, it is opened here if it can be.
    pub(crate) async fn database(
        &self,
        id: &NamespaceId,
        trace: &Trace,
        is_from_peer: bool,
    ) -> Result<OpenDatabase> {
        if let Some(database) = self.namespaces.opened(id) {
            return Ok(database);
        }
        let peers = self.peers.as_ref().filter(|_| !is_from_peer);
        if let Some(owner) = peers.and_then(|peers| peers.owner(id)) {
            return Err(Failure::from(Error::NotOwner {
                namespace: id.to_string(),
                owner: Some(owner.to_string()),
            }));
        }
        let began = self.clock().steady();
        let opening = match peers {
            Some(_) => OpeningAccount::WhereItBelongs,
            None => OpeningAccount::Here,
        };
        let opened = self.openings.open(&self.namespaces, id, opening).await;
        trace.add(RequestStage::Open, self.clock().since(began));
        Ok(opened?)
    }
}

/// What an endpoint needs that is about a namespace.
pub(crate) fn endpoint_need(endpoint: &str) -> Need {
    match endpoint {
        // Its methods have needs of their own.
        "/rpc" => Need::Nothing,
        "/dcb/read" => Need::Whole(Scope::Read),
        "/dcb/append" => Need::Whole(Scope::Write),
        "/import" | "/export" => Need::Whole(Scope::Admin),
        "/backup" => Need::Of(Scope::Admin),
        "/events" | "/subscribe" => Need::Named(Scope::Subscribe),
        _ => Need::Server,
    }
}

/// Reads a database on a thread made for it. If its storage may wait, that is one of the library's,
/// where the namespaces take turns: threads made for it could become so many that others had none.
pub(crate) async fn reading<T: Send + 'static>(
    database: &Database,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    match database.may_wait() {
        true => Ok(database.elsewhere(move |_| Ok(work())).await?),
        false => blocking(work).await,
    }
}

/// Reads a database on a thread of the library that waits for the disk, where the namespaces take turns.
pub(crate) async fn waiting<T: Send + 'static>(
    database: &Database,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    Ok(database.from_disk(move |_| Ok(work())).await?)
}

/// Runs something that blocks on a thread made for it.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::internal(format!("a task of the server ended early: {error}")))
}

/// Answers a request.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    guest: &Guest,
    request: Request<Incoming>,
    under_way: &UnderWay,
) -> HttpAnswer {
    let began = shared.clock().steady();
    let (parts, body) = request.into_parts();
    let labels = RequestLabels::of_path(parts.uri.path());
    let share = match guest.request_share() {
        Ok(share) => share,
        Err(failure) => return response::failure(&failure),
    };
    let mut exchange = Exchange {
        shared,
        parts,
        body: Some(ClientBody::Incoming(body)),
        whole: None,
        labels,
        access: None,
        trace: Arc::default(),
        guest,
        share,
        under_way,
    };
    let answer = caught(pin!(exchange.route())).await;
    let answer = answer.unwrap_or_else(|panicked| Err(panicked.into()));
    let answer = answer.unwrap_or_else(|failure| response::failure(&failure));
    if let Some(body) = exchange.body.take() {
        discard_in_background(body);
    }
    let answer = exchange.finished(answer);
    exchange.note(&answer, began);
    answer
}
/// Whose fault it is that a request was answered with this.
fn severity_of(status: StatusCode) -> Severity {
    match status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::INSUFFICIENT_STORAGE => Severity::Refused,
        status if status.is_server_error() => Severity::Fault,
        status if status.is_client_error() => Severity::Client,
        _ => Severity::None,
    }
}

/// The beginning of a path. Query strings are never logged: they may hold a token.
fn logged_path(path: &str) -> &str {
    let mut end = path.len().min(LOGGED_PATH_BYTES);
    while !path.is_char_boundary(end) {
        end -= 1;
    }
    &path[..end]
}

/// A request on its way to an answer.
struct Exchange<'a> {
    shared: Arc<Shared>,
    parts: Parts,
    /// Taken by the endpoints that read it.
    body: Option<ClientBody>,
    /// The body once it was read to its end.
    whole: Option<Whole>,
    labels: RequestLabels,
    /// Whose request it is, once that is known.
    access: Option<Arc<Access>>,
    trace: Arc<Trace>,
    guest: &'a Guest,
    /// What it may take of the memory for clients.
    share: Share,
    under_way: &'a UnderWay,
}

impl Exchange<'_> {
    /// The answer as it is sent: compressed, if that is wanted, and readable for pages that may read it.
    fn finished(&self, mut answer: HttpAnswer) -> HttpAnswer {
        let is_forwarded = answer.extensions().get::<IsForwarded>().is_some();
        if response::accepts_gzip(&self.parts.headers) && !is_forwarded {
            answer = response::compress(answer, &self.share);
        }
        if !self.guest.is_peer {
            let Config { web, listen, .. } = &self.shared.config;
            web.permit(&self.parts, listen, &mut answer);
        }
        answer
    }

    /// Counts and logs a request that has been answered.
    fn note(&self, answer: &HttpAnswer, began: Duration) {
        let shared = &self.shared;
        let elapsed = shared.clock().since(began);
        let status = answer.status().as_u16();
        let metrics = &shared.metrics;
        let labels = RequestLabels {
            status,
            ..self.labels
        };
        metrics.requests.count(labels, elapsed);
        let code = answer.extensions().get().map(|ErrorCode(code)| *code);
        if let Some(code) = code {
            metrics.http_errors.count(code);
        }
        let ended = EndedRequest {
            protocol: Protocol::Http,
            method: labels.name(),
            namespace: self.access.as_ref().map(|access| &access.namespace),
            code: code.unwrap_or_default(),
            severity: severity_of(answer.status()),
            began,
            elapsed,
            is_stream: false,
            trace: &self.trace,
        };
        shared.requests.note(shared, ended);
        tracing::debug!(
            method = self.parts.method.as_str(),
            path = logged_path(self.parts.uri.path()),
            status,
            duration_us = micros(elapsed),
            "HTTP request"
        );
    }

    /// Finds the endpoint. What is not about a namespace needs no token.
    async fn route(&mut self) -> Result<HttpAnswer> {
        // What a peer sends on has been looked at by that peer.
        if !self.guest.is_peer {
            let Config { web, listen, .. } = &self.shared.config;
            web.admit(&self.parts, listen)?;
            if let Some(answer) = web.preflight(&self.parts, listen) {
                return Ok(answer);
            }
        }
        match self.labels.endpoint {
            "/health" => Ok(response::json("{\"status\":\"ok\"}")),
            "/ready" => ready::answer(&self.shared).await,
            "/version" => Ok(response::json(format!("{{\"version\":\"{VERSION}\"}}"))),
            "/metrics" => metrics::serve(&self.shared).await,
            "/openapi.json" => {
                self.require_method(&[Method::GET, Method::HEAD])?;
                Ok(openapi::answer(&self.parts.headers))
            }
            CONSOLE_ENDPOINT => {
                self.require_method(&[Method::GET, Method::HEAD])?;
                console::answer(&self.shared, &self.parts)
            }
            OTHER_ENDPOINT => {
                let message = "Endpoint not found";
                Err(Failure::new(StatusCode::NOT_FOUND, "NOT_FOUND", message))
            }
            _ if self.guest.is_surplus => {
                let connections_max = self.shared.connections.max();
                Err(Failure::overloaded(format!(
                    "overloaded: the server takes {connections_max} connections at once"
                )))
            }
            _ => self.authenticate_and_answer().await,
        }
    }

    async fn authenticate_and_answer(&mut self) -> Result<HttpAnswer> {
        let query = QueryString::of(&self.parts.uri);
        let mut access =
            authenticate(&self.shared, &self.parts.headers, query, self.guest.is_peer).await?;
        access.trace = Some(Arc::clone(&self.trace));
        access.address = self.guest.address;
        let access = Arc::new(access);
        self.access = Some(Arc::clone(&access));
        self.guest.make_known();
        self.shared
            .enter(&self.share, &access.grant, self.guest.is_peer)?;
        let answer = self.answer_or_forward(&access).await;
        let answer = answer.unwrap_or_else(|failure| self.failed(&failure));
        let mut answer = self.until_revoked(answer, &access);
        if let Some(token) = &access.created {
            put_token(&mut answer, token);
        }
        Ok(answer)
    }

    /// The answer, which is cut off when its token does not count any more, if it takes a while.
    fn until_revoked(&self, answer: HttpAnswer, access: &Access) -> HttpAnswer {
        let (head, body) = answer.into_parts();
        let body = match body {
            HttpBody::Stream(chunks) => {
                let Shared {
                    visits, namespaces, ..
                } = &*self.shared;
                let visit = visits.begin(namespaces, &access.grant);
                HttpBody::Stream(visit.guard(chunks, || NOT_GRANTED.into()))
            }
            whole @ HttpBody::Whole(_) => whole,
        };
        HttpAnswer::from_parts(head, body)
    }

    async fn answer(&mut self, access: &Access) -> Result<HttpAnswer> {
        access.require(endpoint_need(self.labels.endpoint))?;
        match self.labels.endpoint {
            "/rpc" => {
                self.require_method(&[Method::POST])?;
                let body = self.whole_body().await?;
                let share = &self.share;
                rpc::answer(&self.shared, access, share, &body, &mut self.labels).await
            }
            "/dcb/read" => {
                self.require_method(&[Method::GET, Method::POST])?;
                let body = self.whole_body().await?;
                dcb::read(&self.shared, access, &self.share, &self.parts, &body).await
            }
            "/dcb/append" => {
                self.require_method(&[Method::POST])?;
                let body = self.whole_body().await?;
                dcb::append(&self.shared, access, &body).await
            }
            "/import" => {
                self.require_method(&[Method::POST])?;
                // The body stays where it is until it is known who reads it.
                let database = access.database(&self.shared).await?;
                let body = self.take_body()?;
                let (shared, share) = (&self.shared, &self.share);
                import::answer(shared, access, database, share, &self.parts, body).await
            }
            "/export" => {
                self.require_method(&[Method::GET])?;
                export::answer(&self.shared, access, &self.share, &self.parts).await
            }
            "/backup" => {
                self.require_method(&[Method::GET])?;
                backup::answer(&self.shared, access, &self.share, &self.parts).await
            }
            "/events" => {
                self.require_method(&[Method::GET])?;
                let (share, parts) = (&self.share, &self.parts);
                sse::answer(&self.shared, access, share, parts, sse::FeedKind::Event).await
            }
            _ => {
                let (share, parts) = (&self.share, &self.parts);
                sse::answer(&self.shared, access, share, parts, sse::FeedKind::Poke).await
            }
        }
    }

    /// Answers here if the namespace is here, and otherwise has its owner answer. While it moves, the owner
    /// is looked for, because nothing was done so far.
    async fn answer_or_forward(&mut self, access: &Access) -> Result<HttpAnswer> {
        let mut patience = Patience::new(self.shared.clock(), MOVE_PATIENCE);
        let mut sent_on = None;
        loop {
            let answer = self.answer(access).await;
            let Err(failure) = answer else { return answer };
            let shared = Arc::clone(&self.shared);
            let peers = shared.peers.as_ref().filter(|_| !self.guest.is_peer);
            let (Some(peers), Some(elsewhere)) = (peers, &failure.elsewhere) else {
                return Err(failure);
            };
            if sent_on.is_none() {
                sent_on = Some(self.make_forwarded()?);
            }
            let why = match (&elsewhere.owner, &sent_on) {
                (Some(owner), Some(request)) => {
                    match peers
                        .forward_to(elsewhere, owner, request, &self.share)
                        .await?
                    {
                        Ok(answer) => return Ok(answer.into_answer()),
                        Err(why) => why,
                    }
                }
                _ => "its node has no address".to_owned(),
            };
            if let Some(request) = &sent_on {
                self.body = request.unread_body();
            }
            if !patience.wait().await {
                return Err(failure.because(&why));
            }
        }
    }

    /// The request as other nodes get it.
    fn make_forwarded(&mut self) -> Result<ForwardedRequest> {
        let body = match (&self.whole, self.body.take()) {
            (None, Some(body)) if self.parts.method != Method::GET => {
                let body = RepeatableBody::new(body, self.share.for_request())?;
                ForwardedBody::Streamed(body)
            }
            (whole, _) => {
                let bytes = whole.as_ref().map(|whole| whole.bytes.clone());
                ForwardedBody::Whole(bytes.unwrap_or_default())
            }
        };
        ForwardedRequest::new(&self.parts, body)
    }

    /// The answer to a request that failed. A peer is told in a way of its own if nothing was done because
    /// the namespace is elsewhere.
    fn failed(&self, failure: &Failure) -> HttpAnswer {
        let mut answer = response::failure(failure);
        if let Some(elsewhere) = failure.elsewhere.as_ref().filter(|_| self.guest.is_peer) {
            put_wrong_node(&mut answer, elsewhere.owner.as_deref());
        }
        answer
    }

    fn take_body(&mut self) -> Result<BodyReader> {
        let body = self.body.take();
        let body = body.ok_or_else(|| Failure::internal("the body was read before"))?;
        BodyReader::new(&self.parts.headers, body, self.shared.config.body_timeout)
    }

    /// What every request takes of the memory for clients.
    fn reservation(&self) -> Result<Reservation> {
        let mut reservation = self.share.for_request();
        reservation.grow_to(REQUEST_BYTES)?;
        Ok(reservation)
    }

    /// Reads the whole body of a request whose answer follows soon.
    async fn whole_body(&mut self) -> Result<Bytes> {
        if let Some(whole) = &self.whole {
            return Ok(whole.bytes.clone());
        }
        let began = self.shared.clock().steady();
        let body = self.take_body()?.whole(self.reservation()?).await?;
        let received = self.shared.clock().since(began);
        self.trace.add(RequestStage::Receive, received);
        self.under_way.is_complete();
        Ok(self.whole.insert(body).bytes.clone())
    }

    fn require_method(&self, allowed: &[Method]) -> Result<()> {
        if allowed.contains(&self.parts.method) {
            return Ok(());
        }
        let names: Vec<&str> = allowed.iter().map(Method::as_str).collect();
        Err(Failure::method_not_allowed(&names))
    }
}

/// Tells a client in test mode which token opens the namespace that its request created.
fn put_token(answer: &mut HttpAnswer, token: &Token) {
    if let Ok(value) = HeaderValue::from_str(token.reveal()) {
        answer.headers_mut().insert("x-eventodb-token", value);
    }
}
