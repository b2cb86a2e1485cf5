//! `["sys.version"]` answers the version; `["sys.health"]` answers
//! `{"backend", "connections", "status"}`. If namespaces take no writes before they are opened again,
//! the status is `degraded` and `"refusingWrites"` lists them: all for the token of the default
//! namespace, and for another token its own.

use trefoil::NamespaceId;

use super::Context;
use crate::VERSION;
use crate::error::Result;
use crate::json::{RpcCall, put_string};
use crate::response::{self, HttpAnswer};

pub(super) async fn version(_: Context<'_>, _: &RpcCall<'_>) -> Result<HttpAnswer> {
    Ok(response::json(format!("\"{VERSION}\"")))
}

pub(super) async fn health(context: Context<'_>, _: &RpcCall<'_>) -> Result<HttpAnswer> {
    let connections = context.shared.connections.count();
    let refusing = context.shared.namespaces.refusing_writes().into_iter();
    let refusing: Vec<NamespaceId> = refusing
        .map(|(id, _)| id)
        .filter(|id| context.access.grant.is_server_admin() || context.access.namespace == *id)
        .collect();
    let mut out = format!("{{\"backend\":\"trefoil\",\"connections\":{connections}").into_bytes();
    if refusing.is_empty() {
        out.extend_from_slice(b",\"status\":\"ok\"}");
        return Ok(response::json(out));
    }
    out.extend_from_slice(b",\"refusingWrites\":[");
    for (index, id) in refusing.iter().enumerate() {
        out.extend_from_slice(if index > 0 { b"," } else { b"" });
        put_string(&mut out, id.as_str());
    }
    out.extend_from_slice(b"],\"status\":\"degraded\"}");
    Ok(response::json(out))
}
