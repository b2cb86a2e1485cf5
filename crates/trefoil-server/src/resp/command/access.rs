//! `AUTH [namespace|default] token` and
//! `HELLO [2|3 [AUTH namespace|default token] [SETNAME name]]`: who the client is, and which version
//! of the protocol it speaks.
//!
//! The namespace is that of the token; one that is named besides must agree with it.

use bytes::Bytes;
use trefoil::{DEFAULT_NAMESPACE, NamespaceId, Reply, Token};

use super::super::encoder::RespVersion;
use super::super::session::Session;
use super::super::words::{ReplyResult, Words, error, syntax_error};
use super::client::name;
use crate::auth::admit;
use crate::error::Failure;

pub(in super::super) async fn authenticate(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    match words {
        [_, token] => become_owner(session, DEFAULT_NAMESPACE.as_bytes(), token).await?,
        [_, name, token] => become_owner(session, name, token).await?,
        _ => return Err(syntax_error()),
    }
    Ok(Reply::OK)
}

async fn become_owner(session: &mut Session, name: &[u8], token: &[u8]) -> ReplyResult<()> {
    let wrong = || error("WRONGPASS invalid username-password pair or user is disabled.");
    let token = std::str::from_utf8(token).ok();
    let shown = token.and_then(|text| Token::read(text).ok());
    let is_right = |namespace: &NamespaceId| {
        name == DEFAULT_NAMESPACE.as_bytes() || name == namespace.as_str().as_bytes()
    };
    let token = { shown.clone() }.ok_or_else(|| Failure::invalid("Invalid token format"));
    let admitted = admit(session.shared(), token, session.is_of_peer()).await;
    let Some(access) = admitted.ok().filter(|access| is_right(&access.namespace)) else {
        return Err(wrong());
    };
    if !session.enter(&access.grant)? {
        session.leave();
        return Err(wrong());
    }
    session.keep_token(shown);
    Ok(())
}

const NOT_AUTHENTICATED: &str = "NOAUTH HELLO must be called with the client already \
    authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to \
    authenticate the client and select the RESP protocol version at the same time";

pub(in super::super) async fn hello(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    let mut rest = Words::after(words, 1);
    let mut protocol = session.protocol();
    if !rest.is_empty() {
        let wrong = |_| error("ERR Protocol version is not an integer or out of range");
        protocol = match rest.integer().map_err(wrong)? {
            2 => RespVersion::Two,
            3 => RespVersion::Three,
            _ => return Err(error("NOPROTO unsupported protocol version")),
        };
    }
    let mut client_name = None;
    while let Some(option) = rest.next() {
        let option = String::from_utf8_lossy(option).into_owned();
        let wrong = |_| error(format!("ERR Syntax error in HELLO option '{option}'"));
        if option.eq_ignore_ascii_case("auth") {
            let owner = rest.word().map_err(wrong)?;
            become_owner(session, owner, rest.word().map_err(wrong)?).await?;
        } else if option.eq_ignore_ascii_case("setname") {
            client_name = Some(name(rest.word().map_err(wrong)?, "Client names")?);
        } else {
            return Err(wrong(Reply::Nil));
        }
    }
    if session.is_stranger() {
        return Err(error(NOT_AUTHENTICATED));
    }
    if let Some(name) = client_name {
        session.client.known.lock().name = name;
    }
    session.set_protocol(protocol);
    Ok(greeting(session))
}

/// The version of Redis whose clients find what they expect.
pub(super) const REDIS_VERSION: &str = "7.2.4";

fn greeting(session: &Session) -> Reply {
    let id = i64::try_from(session.client.id).unwrap_or(i64::MAX);
    let fields = [
        ("server", Reply::bulk("redis")),
        ("version", Reply::bulk(REDIS_VERSION)),
        ("proto", Reply::Integer(session.protocol().number())),
        ("id", Reply::Integer(id)),
        ("mode", Reply::bulk("standalone")),
        ("role", Reply::bulk("master")),
        ("modules", Reply::Array(Vec::new())),
    ];
    Reply::Map(
        fields
            .map(|(name, value)| (Reply::bulk(name), value))
            .into(),
    )
}
