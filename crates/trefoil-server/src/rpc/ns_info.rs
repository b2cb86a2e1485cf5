//! `["ns.info", id]`
//!
//! Answers `{"createdAt", "description", "lastActivity", "messageCount", "metadata", "namespace",
//! "settings", "streamCount"}`, and `"refusesWrites"`, the reason, if it takes no writes before it is
//! opened again. Needs the scope `read` of that namespace, or the administrator of the server.

use trefoil::{Scope, Trace};

use super::Context;
use super::arguments::namespace_id;
use super::ns_settings::settings_json;
use crate::error::Result;
use crate::json::{RpcCall, put_number, put_string, put_time};
use crate::response::{self, HttpAnswer};
use crate::service::blocking;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let id = namespace_id(call, "ns.info requires 1 argument: namespace ID")?.into_owned();
    context.access.require_of(&id, Scope::Read)?;
    let namespaces = context.shared.namespaces.clone();
    let entry = namespaces.entry(&id)?;
    let refusing = namespaces.refusing_writes();
    let info = match namespaces.opened(&entry.id) {
        Some(database) => database.info_async().await?,
        // What was counted here before may have changed on another node.
        None if namespaces.cluster().is_some() => {
            let (trace, is_from_peer) = (Trace::default(), context.access.is_from_peer);
            let database = { context.shared.database(&entry.id, &trace, is_from_peer) }.await?;
            database.info_async().await?
        }
        None => blocking(move || namespaces.counts(&id)).await??,
    };
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"createdAt\":");
    put_time(&mut out, entry.created);
    out.extend_from_slice(b",\"description\":");
    put_string(&mut out, &entry.description);
    out.extend_from_slice(b",\"lastActivity\":");
    match info.last_activity {
        Some(time) => put_time(&mut out, time),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"messageCount\":");
    put_number(&mut out, info.events);
    out.extend_from_slice(b",\"metadata\":");
    out.extend_from_slice(entry.metadata.as_deref().unwrap_or("null").as_bytes());
    out.extend_from_slice(b",\"namespace\":");
    put_string(&mut out, entry.id.as_str());
    out.extend_from_slice(b",\"settings\":");
    out.extend_from_slice(settings_json(&entry.settings)?.as_bytes());
    out.extend_from_slice(b",\"streamCount\":");
    put_number(&mut out, info.streams);
    if let Some((_, reason)) = refusing.into_iter().find(|(id, _)| *id == entry.id) {
        out.extend_from_slice(b",\"refusesWrites\":");
        put_string(&mut out, &reason);
    }
    out.push(b'}');
    Ok(response::json(out))
}
