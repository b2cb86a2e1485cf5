//! One request: which endpoint it is for, what it may touch, what is logged and counted.

use std::pin::pin;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use tokio_util::sync::CancellationToken;
use trefoil::{Clock, Database, NamespaceId, Namespaces, OpenDatabase, RequestStage, Token, Trace};

use crate::auth::{Access, authenticate};
use crate::body::{BodyReader, Whole, discard_in_background};
use crate::budget::{Budget, Reservation};
use crate::connection::UnderWay;
use crate::connections::{Connections, Guest, Protocol};
use crate::error::{Failure, Result};
use crate::limits::{LOGGED_PATH_BYTES, REQUEST_BYTES};
use crate::metrics::{CONSOLE_ENDPOINT, Metrics, OTHER_ENDPOINT, RequestLabels};
use crate::openings::Openings;
use crate::panics::caught;
use crate::query::QueryString;
use crate::requests::{EndedRequest, RequestLog, Severity, micros};
use crate::resp::RespClients;
use crate::response::{self, ErrorCode, HttpAnswer};
use crate::subscriptions::Subscriptions;
use crate::{Config, VERSION, console, dcb, export, import, metrics, openapi, ready, rpc, sse};

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
    openings: Arc<Openings>,
    /// Cancelled when the server is told to stop.
    pub(crate) leaving: CancellationToken,
    /// Cancelled when subscriptions have to end.
    pub(crate) closing: CancellationToken,
}

impl Shared {
    pub(crate) fn new(config: Config, namespaces: Namespaces) -> Self {
        let budget = Budget::new(config.client_memory_max);
        Self {
            connections: Connections::new(config.connections_max, Arc::clone(&budget)),
            requests: RequestLog::new(config.slow_after),
            config,
            budget,
            metrics: Metrics::new(namespaces.clock().now()),
            resp: RespClients::new(namespaces.commands(), namespaces.clock().clone()),
            subscriptions: Subscriptions::default(),
            openings: Openings::new(),
            namespaces,
            leaving: CancellationToken::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Returns the clock of all namespaces.
    pub(crate) fn clock(&self) -> &Clock {
        self.namespaces.clock()
    }

    /// Returns the database of a namespace. Opening it may take a while, so that happens elsewhere.
    pub(crate) async fn database(&self, id: &NamespaceId, trace: &Trace) -> Result<OpenDatabase> {
        if let Some(database) = self.namespaces.opened(id) {
            return Ok(database);
        }
        let began = self.clock().steady();
        let opened = self.openings.open(&self.namespaces, id).await;
        trace.add(RequestStage::Open, self.clock().since(began));
        Ok(opened?)
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
    let mut exchange = Exchange {
        shared,
        parts,
        body: Some(body),
        labels,
        access: None,
        trace: Arc::default(),
        guest,
        under_way,
    };
    let answer = caught(pin!(exchange.route())).await;
    let answer = answer.unwrap_or_else(|panicked| Err(panicked.into()));
    let mut answer = answer.unwrap_or_else(|failure| response::failure(&failure));
    let Exchange {
        shared,
        parts,
        body,
        labels,
        access,
        trace,
        ..
    } = exchange;
    if let Some(body) = body {
        discard_in_background(body);
    }
    if response::accepts_gzip(&parts.headers) {
        answer = response::compress(answer, &guest.share);
    }
    let Config { web, listen, .. } = &shared.config;
    web.permit(&parts, listen, &mut answer);
    let elapsed = shared.clock().since(began);
    let status = answer.status().as_u16();
    let metrics = &shared.metrics;
    let labels = RequestLabels { status, ..labels };
    metrics.requests.count(labels, elapsed);
    let code = answer.extensions().get().map(|ErrorCode(code)| *code);
    if let Some(code) = code {
        metrics.http_errors.count(code);
    }
    let ended = EndedRequest {
        protocol: Protocol::Http,
        method: labels.name(),
        namespace: access.as_ref().map(|access| &access.namespace),
        code: code.unwrap_or_default(),
        severity: severity_of(answer.status()),
        began,
        elapsed,
        is_stream: false,
        trace: &trace,
    };
    shared.requests.note(&shared, ended);
    tracing::debug!(
        method = parts.method.as_str(),
        path = logged_path(parts.uri.path()),
        status,
        duration_us = micros(elapsed),
        "HTTP request"
    );
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
    body: Option<Incoming>,
    labels: RequestLabels,
    /// Whose request it is, once that is known.
    access: Option<Arc<Access>>,
    trace: Arc<Trace>,
    guest: &'a Guest,
    under_way: &'a UnderWay,
}

impl Exchange<'_> {
    /// Finds the endpoint. What is not about a namespace needs no token.
    async fn route(&mut self) -> Result<HttpAnswer> {
        let Config { web, listen, .. } = &self.shared.config;
        web.admit(&self.parts, listen)?;
        if let Some(answer) = web.preflight(&self.parts, listen) {
            return Ok(answer);
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
        let mut access = authenticate(&self.shared, &self.parts.headers, query).await?;
        access.trace = Some(Arc::clone(&self.trace));
        let access = Arc::new(access);
        self.access = Some(Arc::clone(&access));
        self.guest.make_known();
        self.guest.share.enter(&access.namespace);
        let answer = self.answer(&access).await;
        let mut answer = answer.unwrap_or_else(|failure| response::failure(&failure));
        if let Some(token) = &access.created {
            put_token(&mut answer, token);
        }
        Ok(answer)
    }

    async fn answer(&mut self, access: &Access) -> Result<HttpAnswer> {
        match self.labels.endpoint {
            "/rpc" => {
                self.require_method(&[Method::POST])?;
                let body = self.whole_body().await?;
                let share = &self.guest.share;
                rpc::answer(&self.shared, access, share, &body.bytes, &mut self.labels).await
            }
            "/dcb/read" => {
                self.require_method(&[Method::GET, Method::POST])?;
                let body = self.take_body()?.whole(self.reservation()?).await?;
                dcb::read(
                    &self.shared,
                    access,
                    &self.guest.share,
                    &self.parts,
                    &body.bytes,
                )
                .await
            }
            "/dcb/append" => {
                self.require_method(&[Method::POST])?;
                let body = self.whole_body().await?;
                dcb::append(&self.shared, access, &body.bytes).await
            }
            "/import" => {
                self.require_method(&[Method::POST])?;
                let body = self.take_body()?;
                let share = &self.guest.share;
                import::answer(&self.shared, access, share, &self.parts, body).await
            }
            "/export" => {
                self.require_method(&[Method::GET])?;
                export::answer(&self.shared, access, &self.guest.share, &self.parts).await
            }
            "/events" => {
                self.require_method(&[Method::GET])?;
                sse::answer(
                    &self.shared,
                    access,
                    self.guest,
                    &self.parts,
                    sse::FeedKind::Event,
                )
                .await
            }
            _ => {
                sse::answer(
                    &self.shared,
                    access,
                    self.guest,
                    &self.parts,
                    sse::FeedKind::Poke,
                )
                .await
            }
        }
    }

    fn take_body(&mut self) -> Result<BodyReader> {
        let body = self.body.take();
        let body = body.ok_or_else(|| Failure::internal("the body was read before"))?;
        BodyReader::new(&self.parts.headers, body, self.shared.config.body_timeout)
    }

    /// What every request takes of the memory for clients.
    fn reservation(&self) -> Result<Reservation> {
        let mut reservation = self.guest.share.for_request();
        reservation.grow_to(REQUEST_BYTES)?;
        Ok(reservation)
    }

    /// Reads the whole body of a request whose answer follows soon.
    async fn whole_body(&mut self) -> Result<Whole> {
        let began = self.shared.clock().steady();
        let body = self.take_body()?.whole(self.reservation()?).await?;
        let received = self.shared.clock().since(began);
        self.trace.add(RequestStage::Receive, received);
        self.under_way.is_complete();
        Ok(body)
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
