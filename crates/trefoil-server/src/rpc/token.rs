//! The tokens of a namespace. Each method takes one object; without `namespace` it is about that of the
//! token. They need the scope `admin` of the namespace, or the administrator of the server, and go beyond
//! EventoDB.
//!
//! ```text
//! ["token.create", {name, namespace?, scopes?, streams?, keys?, expires? | expiresIn?, token?}]
//! ["token.list", {namespace?}]
//! ["token.rotate", {name, namespace?, overlap?, token?}]
//! ["token.revoke", {name, namespace?}]
//! ```
//!
//! A token is shown once, by the call that makes it. `expiresIn` and `overlap` are in seconds.

use std::time::Duration;

use serde_json::value::RawValue;
use trefoil::limits::TOKEN_PREFIXES_MAX;
use trefoil::{
    DEFAULT_NAMESPACE, MAIN_TOKEN, Namespaces, NewToken, Permission, SERVER_TOKEN, Scope, Scopes,
    Timestamp, TokenEntry,
};

use super::Context;
use super::audit::AuditedCall;
use super::ns_create::token_option;
use crate::error::{Failure, Result};
use crate::json::{ObjectWriter, RpcCall, present, put_array, put_string, put_time, text};
use crate::response::{self, HttpAnswer};
use crate::strict;

/// The named fields of the one argument; `None` for those that are missing or `null`.
fn fields<'a, const N: usize>(
    call: &RpcCall<'a>,
    method: &str,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N]> {
    match present(call.argument(0)) {
        None => Ok([None; N]),
        Some(argument) => Ok(strict::object(argument, method, names)?.map(present)),
    }
}

/// Returns the namespace that is meant, if who asks administers it.
fn administered(
    context: &Context<'_>,
    method: &str,
    namespace: Option<&RawValue>,
) -> Result<String> {
    let namespace = match namespace {
        None => context.access.namespace.to_string(),
        named => strict::name(named, &format!("{method}.namespace"))?,
    };
    context.access.require_of(&namespace, Scope::Admin)?;
    Ok(namespace)
}

/// Refuses everybody but the administrator of the server if a token is one of his.
pub(super) fn protect_server(context: &Context<'_>, namespace: &str, name: &str) -> Result<()> {
    match namespace == DEFAULT_NAMESPACE && [MAIN_TOKEN, SERVER_TOKEN].contains(&name) {
        true => context.access.require_server_admin(),
        false => Ok(()),
    }
}

pub(super) async fn create(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let method = "token.create";
    let names = [
        "name",
        "namespace",
        "scopes",
        "streams",
        "keys",
        "expires",
        "expiresIn",
        "token",
    ];
    let [
        name,
        namespace,
        scopes,
        streams,
        keys,
        expires,
        expires_in,
        token,
    ] = fields(call, method, names)?;
    let namespace = administered(&context, method, namespace)?;
    let name = strict::name(name, "token.create.name")?;
    protect_server(&context, &namespace, &name)?;
    let permission = Permission {
        scopes: match scopes {
            None => Scopes::ALL,
            scopes => parse_scopes(scopes)?,
        },
        streams: strict::texts(streams, "token.create.streams", TOKEN_PREFIXES_MAX)?,
        keys: strict::texts(keys, "token.create.keys", TOKEN_PREFIXES_MAX)?,
    };
    let mut new = NewToken::new(name, permission);
    new.expires = parse_expiry(expires, expires_in, context.shared.clock().now())?;
    new.token = token_option(token)?;
    let audited = AuditedCall::new(&context, method, &namespace).with_details(|object| {
        object.text("name", &new.name);
        put_permission(object, &new.permission);
        put_optional_time(object, "expires", new.expires);
    });
    let id = namespace.clone();
    let create = move |namespaces: &Namespaces| namespaces.create_token(&id, new);
    let (entry, token) = audited.run(&context, create).await?;
    let mut out = Vec::new();
    put_token(&mut out, &namespace, &entry, Some(token.reveal()));
    Ok(response::json(out))
}

fn parse_scopes(scopes: Option<&RawValue>) -> Result<Scopes> {
    let names = strict::texts(scopes, "token.create.scopes", Scope::EVERY.len())?;
    let scopes = names.iter().map(|name| Scope::parse(name));
    Ok(scopes.collect::<trefoil::Result<Scopes>>()?)
}

fn parse_expiry(
    expires: Option<&RawValue>,
    expires_in: Option<&RawValue>,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let wrong = || Failure::invalid("token.create.expires must be an RFC 3339 time");
    let seconds = strict::optional_position(expires_in, "token.create.expiresIn")?;
    match (expires, seconds) {
        (None, None) => Ok(None),
        (Some(time), None) => {
            let time = text(time).and_then(|time| Timestamp::parse(&time));
            Ok(Some(time.ok_or_else(wrong)?))
        }
        (None, Some(seconds)) => {
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            let expires = seconds.saturating_mul(1_000_000_000);
            Ok(Some(Timestamp(now.0.saturating_add(expires))))
        }
        (Some(_), Some(_)) => Err(Failure::invalid(
            "token.create.expires and token.create.expiresIn exclude each other",
        )),
    }
}

pub(super) async fn list(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let method = "token.list";
    let [namespace] = fields(call, method, ["namespace"])?;
    let namespace = administered(&context, method, namespace)?;
    // There are few of them.
    let tokens = context.shared.namespaces.tokens(&namespace)?;
    let mut out = Vec::new();
    put_array(&mut out, &tokens, |out, entry| {
        put_token(out, &namespace, entry, None);
    });
    Ok(response::json(out))
}

pub(super) async fn rotate(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let method = "token.rotate";
    let names = ["name", "namespace", "overlap", "token"];
    let [name, namespace, overlap, token] = fields(call, method, names)?;
    let namespace = administered(&context, method, namespace)?;
    let name = strict::name(name, "token.rotate.name")?;
    protect_server(&context, &namespace, &name)?;
    let overlap = strict::optional_position(overlap, "token.rotate.overlap")?;
    let overlap = Duration::from_secs(overlap.unwrap_or(0));
    let token = token_option(token)?;
    let audited = AuditedCall::new(&context, method, &namespace).with_details(|object| {
        object.text("name", &name);
        object.number("overlap", overlap.as_secs());
    });
    let (id, wanted) = (namespace.clone(), name.clone());
    let replace = move |namespaces: &Namespaces| {
        let token = namespaces.replace_token(&id, &wanted, token, overlap)?;
        Ok((token, namespaces.tokens(&id)?))
    };
    let (token, tokens) = audited.run(&context, replace).await?;
    let mut out = Vec::new();
    match tokens.iter().find(|entry| entry.name == name) {
        Some(entry) => put_token(&mut out, &namespace, entry, Some(token.reveal())),
        // It was revoked meanwhile.
        None => return Err(trefoil::Error::TokenNotFound(name).into()),
    }
    Ok(response::json(out))
}

pub(super) async fn revoke(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let method = "token.revoke";
    let [name, namespace] = fields(call, method, ["name", "namespace"])?;
    let namespace = administered(&context, method, namespace)?;
    let name = strict::name(name, "token.revoke.name")?;
    protect_server(&context, &namespace, &name)?;
    let audited = AuditedCall::new(&context, method, &namespace);
    let audited = audited.with_details(|object| object.text("name", &name));
    let (id, wanted) = (namespace.clone(), name.clone());
    let revoke = move |namespaces: &Namespaces| namespaces.revoke_token(&id, &wanted);
    audited.run(&context, revoke).await?;
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    object.text("namespace", &namespace);
    object.text("name", &name);
    object.end();
    Ok(response::json(out))
}

/// What is known of a token, and the token itself if it is to be shown.
fn put_token(out: &mut Vec<u8>, namespace: &str, entry: &TokenEntry, token: Option<&str>) {
    let mut object = ObjectWriter::begin(out);
    object.text("namespace", namespace);
    object.text("name", &entry.name);
    if let Some(token) = token {
        object.text("token", token);
    }
    put_permission(&mut object, &entry.permission);
    put_time(object.field("created"), entry.created);
    put_optional_time(&mut object, "expires", entry.expires);
    put_optional_time(&mut object, "lastUsed", entry.last_used);
    put_optional_time(&mut object, "previousExpires", entry.previous_expires);
    object.flag("server", entry.is_server);
    object.end();
}

fn put_permission(object: &mut ObjectWriter<'_>, permission: &Permission) {
    let Permission {
        scopes,
        streams,
        keys,
    } = permission;
    put_array(object.field("scopes"), scopes.iter(), |out, scope| {
        put_string(out, scope.name());
    });
    for (name, prefixes) in [("streams", streams), ("keys", keys)] {
        put_array(object.field(name), prefixes, |out, prefix| {
            put_string(out, prefix);
        });
    }
}

fn put_optional_time(object: &mut ObjectWriter<'_>, name: &str, time: Option<Timestamp>) {
    match time {
        Some(time) => put_time(object.field(name), time),
        None => object.json(name, "null"),
    }
}
