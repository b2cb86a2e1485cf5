//! `["ns.list"]`
//!
//! Answers `[{"createdAt", "description", "messageCount", "namespace"}]` by id. Needs the token of
//! the default namespace. Counting opens every namespace.

use trefoil::{Error, Namespaces};

use super::Context;
use crate::error::Result;
use crate::json::{RpcCall, put_number, put_string, put_time};
use crate::response::{self, HttpAnswer};
use crate::service::blocking;

pub(super) async fn run(context: Context<'_>, _: &RpcCall<'_>) -> Result<HttpAnswer> {
    context.access.require_admin()?;
    let namespaces = context.shared.namespaces.clone();
    let out = blocking(move || list(&namespaces)).await?;
    Ok(response::json(out?))
}

fn list(namespaces: &Namespaces) -> trefoil::Result<Vec<u8>> {
    let mut out = vec![b'['];
    for entry in namespaces.list()? {
        let info = match namespaces.counts(entry.id.as_str()) {
            // It was deleted meanwhile.
            Err(Error::NamespaceNotFound(_)) => continue,
            counted => counted?,
        };
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"createdAt\":");
        put_time(&mut out, entry.created);
        out.extend_from_slice(b",\"description\":");
        put_string(&mut out, &entry.description);
        out.extend_from_slice(b",\"messageCount\":");
        put_number(&mut out, info.events);
        out.extend_from_slice(b",\"namespace\":");
        put_string(&mut out, entry.id.as_str());
        out.push(b'}');
    }
    out.push(b']');
    Ok(out)
}
