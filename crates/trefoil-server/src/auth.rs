//! Whose namespace a request may touch.
//!
//! The token is the `token` of the query string or a bearer token. It names its namespace, or was
//! brought along by the user and is found by its hash. In test mode its secret is not
//! checked, a missing one stands for the default namespace, and a namespace that does not exist is
//! created. What it permits, [`Grant`] says: scopes, and prefixes of streams and keys. The server's own
//! token and the main token of the default namespace administer all namespaces.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{self, HeaderMap};
use trefoil::limits::TOKEN_BYTES_MIN;
use trefoil::{
    DEFAULT_NAMESPACE, Error, Grant, NamespaceId, NewNamespace, OpenDatabase, Scope, Token,
    TokenError, Trace,
};

use crate::error::{Failure, Result};
use crate::need::Need;
use crate::query::QueryString;
use crate::service::{Shared, blocking};

/// What a request may touch.
#[derive(Debug)]
pub(crate) struct Access {
    /// The namespace of the token.
    pub(crate) namespace: NamespaceId,
    /// What the token permits.
    pub(crate) grant: Arc<Grant>,
    /// The token of the namespace, if this request made it exist.
    pub(crate) created: Option<Token>,
    /// Whether a peer has sent the request on.
    pub(crate) is_from_peer: bool,
    /// Where the request comes from, if that is known.
    pub(crate) address: Option<SocketAddr>,
    /// What is told how long the stages of the request take, if somebody wants to know.
    pub(crate) trace: Option<Arc<Trace>>,
}

impl Access {
    fn of(grant: Arc<Grant>) -> Self {
        Self {
            namespace: grant.namespace().clone(),
            grant,
            created: None,
            is_from_peer: false,
            address: None,
            trace: None,
        }
    }

    /// Returns the database of the namespace.
    pub(crate) async fn database(&self, shared: &Shared) -> Result<OpenDatabase> {
        match &self.trace {
            Some(trace) => {
                let database = shared.database(&self.namespace, trace, self.is_from_peer);
                Ok(database.await?.traced(trace))
            }
            None => {
                let trace = Trace::default();
                { shared.database(&self.namespace, &trace, self.is_from_peer) }.await
            }
        }
    }

    /// Refuses what the token does not permit, as far as that can be told by what is asked for.
    pub(crate) fn require(&self, need: Need) -> Result<()> {
        match need {
            Need::Server => self.require_server_admin(),
            need => Ok(need.check(&self.grant)?),
        }
    }

    /// Refuses everybody but the administrator of the server.
    pub(crate) fn require_server_admin(&self) -> Result<()> {
        if self.grant.is_server_admin() {
            return Ok(());
        }
        let message = "Only the token of the server or of the default namespace may do this";
        Err(Failure::unauthorized(message, self.namespace.as_str()))
    }

    /// Refuses everybody but the administrator of the server and, with this scope, the namespace itself.
    pub(crate) fn require_of(&self, namespace: &str, scope: Scope) -> Result<()> {
        if self.grant.is_server_admin() {
            return Ok(());
        }
        if self.namespace.as_str() != namespace {
            return Err(unknown(namespace));
        }
        self.grant.require(scope)?;
        Ok(self.grant.require_unconfined()?)
    }
}

/// Finds out what the sender of these headers may touch.
pub(crate) async fn authenticate(
    shared: &Shared,
    headers: &HeaderMap,
    query: QueryString<'_>,
    is_from_peer: bool,
) -> Result<Access> {
    let token = find_token(headers, query)
        .and_then(|text| Token::read(&text).map_err(|error| invalid_token(&error)));
    admit(shared, token, is_from_peer).await
}

/// Returns what a client with this token, or without one, may use.
pub(crate) async fn admit(
    shared: &Shared,
    token: Result<Token>,
    is_from_peer: bool,
) -> Result<Access> {
    let admitted = match token {
        token if shared.config.test_mode => authenticate_leniently(shared, token.ok()).await,
        token => authenticate_strictly(shared, &token?, is_from_peer).await,
    };
    admitted.map(|access| Access {
        is_from_peer,
        ..access
    })
}

async fn authenticate_strictly(
    shared: &Shared,
    token: &Token,
    is_from_peer: bool,
) -> Result<Access> {
    if let Some(grant) = shared.namespaces.admit(token) {
        return Ok(Access::of(grant));
    }
    if is_from_peer {
        // The peer knows the token, so it was made a moment ago, or was replaced.
        let namespaces = shared.namespaces.clone();
        blocking(move || namespaces.catch_up()).await??;
        if let Some(grant) = shared.namespaces.admit(token) {
            return Ok(Access::of(grant));
        }
    }
    Err(refused(token))
}

/// Why a token does not open anything.
fn refused(token: &Token) -> Failure {
    match (token.namespace(), Token::parse(token.reveal())) {
        (Some(namespace), _) => unknown(namespace),
        // It is long enough to be one that a user has chosen.
        (None, _) if token.reveal().len() >= TOKEN_BYTES_MIN => {
            let text = "no namespace has this token; tokens that the server makes begin with 'ns_'";
            unauthenticated("Unknown token").with_text("error", text)
        }
        (None, Err(error)) => invalid_token(&error),
        (None, Ok(_)) => unknown(DEFAULT_NAMESPACE),
    }
}

fn invalid_token(error: &TokenError) -> Failure {
    unauthenticated("Invalid token format").with_text("error", &error.to_string())
}

fn unauthenticated(message: &str) -> Failure {
    Failure::new(StatusCode::UNAUTHORIZED, "AUTH_INVALID_TOKEN", message)
}

fn unknown(namespace: &str) -> Failure {
    Failure::unauthorized("Token not authorized for namespace", namespace)
}

fn find_token<'a>(headers: &'a HeaderMap, query: QueryString<'a>) -> Result<Cow<'a, str>> {
    let required = |message| Failure::new(StatusCode::UNAUTHORIZED, "AUTH_REQUIRED", message);
    if let Some(token) = query.get("token") {
        return Ok(token);
    }
    let header = headers.get(header::AUTHORIZATION);
    let value = header
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    match value.strip_prefix("Bearer ") {
        _ if value.is_empty() => Err(required("Authorization header required")),
        None if value == "Bearer" => Err(required("Token required")),
        None => Err(required("Authorization header must use Bearer scheme")),
        Some(token) if token.trim().is_empty() => Err(required("Token required")),
        Some(token) => Ok(Cow::Borrowed(token)),
    }
}

async fn authenticate_leniently(shared: &Shared, token: Option<Token>) -> Result<Access> {
    // A token that is right permits what it does elsewhere.
    if let Some(grant) = token
        .as_ref()
        .and_then(|token| shared.namespaces.admit(token))
    {
        return Ok(Access::of(grant));
    }
    // An unknown token that names no namespace is like none.
    let token = token.filter(|token| token.namespace().is_some());
    let name = token.as_ref().and_then(Token::namespace);
    let name = name.unwrap_or(DEFAULT_NAMESPACE);
    let namespace = NamespaceId::new(name).map_err(|_| unknown(name))?;
    let anybody = || Access::of(shared.namespaces.admit_anybody(&namespace));
    if shared.namespaces.entry(name).is_ok() {
        return Ok(anybody());
    }
    let namespaces = shared.namespaces.clone();
    let description = "Auto-created in test mode".to_owned();
    let new = NewNamespace {
        description,
        token,
        ..NewNamespace::default()
    };
    let id = namespace.clone();
    match blocking(move || namespaces.create(&id, new)).await? {
        Ok((_, token)) => Ok(Access {
            created: Some(token),
            ..anybody()
        }),
        // Another request was faster.
        Err(Error::NamespaceExists(_)) => Ok(anybody()),
        Err(error) => Err(error.into()),
    }
}
