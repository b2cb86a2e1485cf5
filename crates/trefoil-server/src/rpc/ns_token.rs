//! `["ns.token", id, {token?}]`
//!
//! Gives a namespace another main token, `token` or a random one, and answers `{"namespace", "token"}`.
//! The token is shown this once, and the one before opens nothing any more. Needs the scope `admin` of
//! that namespace, or the administrator of the server.

use trefoil::{MAIN_TOKEN, Namespaces, Scope};

use super::Context;
use super::arguments::{namespace_id, options};
use super::audit::AuditedCall;
use super::ns_create::token_option;
use super::token::protect_server;
use crate::error::Result;
use crate::json::{RpcCall, put_string};
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let missing = "ns.token requires at least 1 argument: namespace ID";
    let id = namespace_id(call, missing)?.into_owned();
    context.access.require_of(&id, Scope::Admin)?;
    protect_server(&context, &id, MAIN_TOKEN)?;
    let [token] = options(call.argument(1), ["token"])?;
    let token = token_option(token)?;
    let audited = AuditedCall::new(&context, "ns.token", &id);
    let wanted = id.clone();
    let rotate = move |namespaces: &Namespaces| namespaces.rotate_token(&wanted, token);
    let token = audited.run(&context, rotate).await?;
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(b"{\"namespace\":");
    put_string(&mut out, &id);
    out.extend_from_slice(b",\"token\":");
    put_string(&mut out, token.reveal());
    out.push(b'}');
    Ok(response::json(out))
}
