//! `["ns.create", id, {description?, token?, metadata?, settings?: {cacheShare?, warm?, quotas?}}]`
//!
//! Creates a namespace and answers `{"createdAt", "namespace", "token"}`. The token is shown this
//! once. Only for the administrator of the server.

use serde_json::value::RawValue;
use trefoil::{NamespaceId, NamespaceSettings, Namespaces, NewNamespace, Token};

use super::Context;
use super::arguments::{namespace_id, options, text_option};
use super::audit::AuditedCall;
use super::ns_settings::SettingsChange;
use crate::error::{Failure, Result};
use crate::json::{RpcCall, is_object, put_string, put_time};
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let (id, new) = parse(call)?;
    let audited = AuditedCall::new(&context, "ns.create", id.as_str());
    let create = move |namespaces: &Namespaces| namespaces.create(&id, new);
    let (entry, token) = audited.run(&context, create).await?;
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"createdAt\":");
    put_time(&mut out, entry.created);
    out.extend_from_slice(b",\"namespace\":");
    put_string(&mut out, entry.id.as_str());
    out.extend_from_slice(b",\"token\":");
    put_string(&mut out, token.reveal());
    out.push(b'}');
    Ok(response::json(out))
}

fn parse(call: &RpcCall<'_>) -> Result<(NamespaceId, NewNamespace)> {
    let id = namespace_id(call, "ns.create requires at least 1 argument: namespace ID")?;
    let [description, token, metadata, settings] = options(
        call.argument(1),
        ["description", "token", "metadata", "settings"],
    )?;
    let description = text_option(description, "options.description")?.unwrap_or_default();
    let token = token_option(token)?;
    if metadata.is_some_and(|metadata| !is_object(metadata)) {
        return Err(Failure::invalid("options.metadata must be an object"));
    }
    let new = NewNamespace {
        description: description.into_owned(),
        token,
        metadata: metadata.map(|metadata| metadata.get().to_owned()),
        settings: parse_settings(settings)?,
    };
    Ok((NamespaceId::new(&id)?, new))
}

fn parse_settings(settings: Option<&RawValue>) -> Result<NamespaceSettings> {
    let mut made = NamespaceSettings::default();
    if let Some(settings) = settings {
        SettingsChange::parse(settings, "options.settings")?.apply(&mut made);
    }
    Ok(made)
}

/// The option `token`: a token of the namespace `id`. An empty one counts as missing.
pub(super) fn token_option(token: Option<&RawValue>) -> Result<Option<Token>> {
    let token = text_option(token, "options.token")?.filter(|token| !token.is_empty());
    let token = token.map(|token| Token::read(&token)).transpose();
    token.map_err(|error| Failure::invalid(format!("Invalid token format: {error}")))
}
