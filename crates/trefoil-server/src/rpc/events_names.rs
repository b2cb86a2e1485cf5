//! `["events.types", {prefix?, limit?, cursor?}]` and `["events.tags", {prefix?, limit?, cursor?}]`
//!
//! Answers a page of the types or tags that events have, `[{"name", "events", "globalPosition"}]`, in
//! byte order, after `cursor`: with how many events, and where the last one is. It goes beyond
//! EventoDB.

use trefoil::{Database, NameInfo};

use super::Context;
use super::arguments::strict_list;
use crate::error::Result;
use crate::json::{RpcCall, put_number, put_string};
use crate::response::{self, HttpAnswer};

pub(super) async fn types(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let list = strict_list(call)?;
    answer(context, move |database| database.types(&list)).await
}

pub(super) async fn tags(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let list = strict_list(call)?;
    answer(context, move |database| database.tags(&list)).await
}

async fn answer(
    context: Context<'_>,
    names: impl FnOnce(&Database) -> trefoil::Result<Vec<NameInfo>> + Send + 'static,
) -> Result<HttpAnswer> {
    let database = context.database().await?;
    let names = database.elsewhere(names).await?;
    let mut out = vec![b'['];
    for name in names {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"name\":");
        put_string(&mut out, &name.name);
        out.extend_from_slice(b",\"events\":");
        put_number(&mut out, name.events);
        out.extend_from_slice(b",\"globalPosition\":");
        put_number(&mut out, name.last_position);
        out.push(b'}');
    }
    out.push(b']');
    Ok(response::json(out))
}
