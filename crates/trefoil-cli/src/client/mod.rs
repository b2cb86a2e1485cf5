//! A client of a running server: requests over HTTP, and errors as the server tells them.

mod connection;
mod event;
mod metrics;
mod server;
mod sse;
mod tls;

use connection::ChosenServer;
pub(crate) use connection::{Address, AuthorityFile, ConnectionArguments, is_encrypted};
pub(crate) use event::{EventRow, ShownEvent, StreamRow};
pub(crate) use metrics::{MetricLabels, MetricsReading};
pub(crate) use server::NamespaceInfo;
pub(crate) use sse::SseFrames;

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::Response;
use ureq::{Agent, Body};

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of a text that is read whole.
const TEXT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The most bytes of an error's text that are shown.
const ERROR_BYTES_MAX: u64 = 64 * 1024;

/// A server that answered with an error.
#[derive(Debug, thiserror::Error)]
#[error("{message} ({code})")]
pub(crate) struct ServerError {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) details: Option<serde_json::Value>,
}

/// A client with a token.
pub(crate) struct HttpClient {
    agent: Agent,
    url: String,
    token: String,
}

/// Parameters of a query string.
pub(crate) type QueryPairs<'a> = &'a [(&'a str, &'a str)];

impl HttpClient {
    /// A client of a server that shows it a token.
    fn new(server: &ChosenServer) -> anyhow::Result<Self> {
        let ChosenServer { url, token, .. } = server;
        // A file that is not needed cannot be in the way.
        let authorities = match is_encrypted(url)? {
            true => server.authorities.as_ref(),
            false => None,
        };
        let config = Agent::config_builder()
            .tls_config(tls::config(authorities)?)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .user_agent(concat!("trefoil/", env!("CARGO_PKG_VERSION")));
        Ok(Self {
            agent: config.build().into(),
            url: url.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
        })
    }

    /// A client of a server that is named on the command line, besides the one that it is about.
    pub(crate) fn of(url: &str, token: &str, ca: Option<&Path>) -> anyhow::Result<Self> {
        let source = "the command line".to_owned();
        Self::new(&ChosenServer {
            url: url.to_owned(),
            url_source: source.clone(),
            token: token.to_owned(),
            token_source: source,
            authorities: ca.map(|path| AuthorityFile {
                path: path.to_owned(),
                source: "--ca",
            }),
        })
    }

    /// Calls a method: the request is `[method, argument, …]`.
    pub(crate) fn call<T: DeserializeOwned>(&self, request: &impl Serialize) -> anyhow::Result<T> {
        let body = serde_json::to_vec(request)?;
        let mut answer = Vec::new();
        self.post("/rpc", &[], &body)?
            .into_reader()
            .read_to_end(&mut answer)?;
        serde_json::from_slice(&answer).context("the server's answer is not what was expected")
    }

    /// Sends a body and returns that of the answer.
    pub(crate) fn post(
        &self,
        path: &str,
        query: QueryPairs<'_>,
        body: &[u8],
    ) -> anyhow::Result<Body> {
        let request = self.agent.post(format!("{}{path}", self.url));
        let request = request.header("Authorization", self.authorization());
        let request = request.header("Content-Type", "application/json");
        let request = request.query_pairs(query.iter().copied());
        self.accept(request.send(body))
    }

    /// Asks for a body that may be endless. `last_seen` is the position to go on after.
    pub(crate) fn get(
        &self,
        path: &str,
        query: QueryPairs<'_>,
        last_seen: Option<u64>,
    ) -> anyhow::Result<Body> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let mut request = request.header("Authorization", self.authorization());
        if let Some(position) = last_seen {
            request = request.header("Last-Event-ID", position);
        }
        self.accept(request.query_pairs(query.iter().copied()).call())
    }

    /// Asks for a body of bytes, which nobody compresses on the way.
    pub(crate) fn download(&self, path: &str, query: QueryPairs<'_>) -> anyhow::Result<Body> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let request = request.header("Authorization", self.authorization());
        let request = request.header("Accept-Encoding", "identity");
        self.accept(request.query_pairs(query.iter().copied()).call())
    }

    /// Where the server is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Whether the server is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.url.split_once("://").map_or("", |(_, rest)| rest);
        ["127.", "localhost", "[::1]"]
            .iter()
            .any(|local| host.starts_with(local))
    }

    fn authorization(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// The token that it shows. Never print it.
    fn token(&self) -> &str {
        &self.token
    }

    /// The text at a path that anybody may read.
    fn text(&self, path: &str) -> anyhow::Result<String> {
        let answer = self.agent.get(format!("{}{path}", self.url)).call();
        read_text(self.accept(answer)?)
    }

    /// The same, whatever the status is.
    fn text_of_any_status(&self, path: &str) -> anyhow::Result<String> {
        read_text(self.ask(path)?.into_body())
    }

    /// The header `Date` of an answer.
    fn date(&self, path: &str) -> anyhow::Result<Option<String>> {
        let answer = self.ask(path)?;
        let date = answer.headers().get("date");
        Ok(date.and_then(|date| date.to_str().ok()).map(str::to_owned))
    }

    fn ask(&self, path: &str) -> anyhow::Result<Response<Body>> {
        let answer = self.agent.get(format!("{}{path}", self.url)).call();
        answer.with_context(|| self.cannot_reach())
    }

    fn cannot_reach(&self) -> String {
        format!("cannot reach the server at {}", self.url)
    }

    fn accept(&self, answer: Result<Response<Body>, ureq::Error>) -> anyhow::Result<Body> {
        let answer = answer.with_context(|| self.cannot_reach())?;
        let status = answer.status();
        let body = answer.into_body();
        if status.is_success() {
            return Ok(body);
        }
        Err(server_error(status.as_u16(), body).into())
    }
}

fn read_text(body: Body) -> anyhow::Result<String> {
    let text = std::io::read_to_string(body.into_reader().take(TEXT_BYTES_MAX));
    text.context("the server's answer cannot be read")
}

/// The error in `{"error": {"code", "message"}}`, or whatever else the server said.
fn server_error(status: u16, body: Body) -> ServerError {
    #[derive(serde::Deserialize)]
    struct Answer {
        error: Told,
    }
    #[derive(serde::Deserialize)]
    struct Told {
        code: String,
        message: String,
        details: Option<serde_json::Value>,
    }
    let mut text = Vec::new();
    // An answer that cannot be read leaves the status, which says enough.
    let _ = body
        .into_reader()
        .take(ERROR_BYTES_MAX)
        .read_to_end(&mut text);
    match serde_json::from_slice::<Answer>(&text) {
        Ok(Answer { error }) => ServerError {
            status,
            code: error.code,
            message: error.message,
            details: error.details,
        },
        Err(_) => ServerError {
            status,
            code: format!("HTTP {status}"),
            message: String::from_utf8_lossy(&text).trim().to_owned(),
            details: None,
        },
    }
}
