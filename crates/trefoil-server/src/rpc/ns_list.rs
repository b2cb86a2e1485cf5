//! `["ns.list", {cursor?, prefix?, limit?}]`
//!
//! Answers `[{"createdAt", "description", "messageCount", "namespace"}]` by id: with `cursor` a page
//! after it, otherwise all of them, whatever the other options are, as in EventoDB. Only for the
//! administrator of the server. Counting opens every namespace that is listed, except where there are other
//! nodes: then `messageCount` is `null` for what is not open here.

use trefoil::{Error, List, NamespaceEntry, Namespaces};

use super::Context;
use super::arguments::lenient_list;
use crate::error::Result;
use crate::json::{RpcCall, fields, put_number, put_string, put_time};
use crate::response::{self, HttpAnswer};
use crate::service::blocking;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let asks_for_page =
        |options| fields(options, ["cursor"]).is_some_and(|[cursor]| cursor.is_some());
    let wanted = match call.argument(0).is_some_and(asks_for_page) {
        false => List::new(usize::MAX),
        true => lenient_list(call)?,
    };
    let namespaces = context.shared.namespaces.clone();
    let out = blocking(move || list(&namespaces, &wanted)).await?;
    Ok(response::json(out?))
}

fn list(namespaces: &Namespaces, wanted: &List) -> trefoil::Result<Vec<u8>> {
    let is_wanted = |entry: &NamespaceEntry| {
        let id = entry.id.as_str();
        id.starts_with(&wanted.prefix) && id > wanted.after.as_str()
    };
    let entries = namespaces.list()?.into_iter().filter(is_wanted);
    let mut out = vec![b'['];
    for entry in entries.take(wanted.limit) {
        let info = match namespaces.listed_counts(entry.id.as_str()) {
            // It was deleted meanwhile.
            Err(Error::NamespaceNotFound(_)) => continue,
            // Another node has it, of which this one did not know yet.
            Err(Error::NotOwner { .. }) => None,
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
        match info {
            Some(info) => put_number(&mut out, info.events),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"namespace\":");
        put_string(&mut out, entry.id.as_str());
        out.push(b'}');
    }
    out.push(b']');
    Ok(out)
}
