//! `["ns.delete", id]`
//!
//! Deletes a namespace with everything in it and answers `{"deletedAt", "messagesDeleted",
//! "namespace"}`. Needs the scope `admin` of that namespace, or the administrator of the server. The default
//! namespace itself stays: nobody could administer the others without it.

use trefoil::{DEFAULT_NAMESPACE, NamespaceId, Namespaces, Scope};

use super::Context;
use super::arguments::namespace_id;
use super::audit::AuditedCall;
use crate::error::{Failure, Result};
use crate::json::{RpcCall, put_number, put_string, put_time};
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let id = namespace_id(call, "ns.delete requires 1 argument: namespace ID")?.into_owned();
    context.access.require_of(&id, Scope::Admin)?;
    if id == DEFAULT_NAMESPACE {
        return Err(Failure::invalid("the default namespace cannot be deleted"));
    }
    let audited = AuditedCall::new(&context, "ns.delete", &id);
    let wanted = id.clone();
    let delete = move |namespaces: &Namespaces| namespaces.delete(&wanted);
    let deleted = audited.run_freeing(&context, delete).await?;
    if let Ok(id) = NamespaceId::new(&id) {
        context.shared.requests.slow.remove(&id);
    }
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(b"{\"deletedAt\":");
    put_time(&mut out, context.shared.namespaces.clock().now());
    out.extend_from_slice(b",\"messagesDeleted\":");
    put_number(&mut out, deleted);
    out.extend_from_slice(b",\"namespace\":");
    put_string(&mut out, &id);
    out.push(b'}');
    Ok(response::json(out))
}
