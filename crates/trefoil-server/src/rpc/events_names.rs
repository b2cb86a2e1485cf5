//! `["events.types", {prefix?, limit?, cursor?}]` and `["events.tags", {prefix?, limit?, cursor?}]`
//!
//! Answers a page of the types or tags that events have, `[{"name", "events", "globalPosition"}]`, in
//! byte order, after `cursor`: with how many events, and where the last one is. It goes beyond
//! EventoDB.

use trefoil::limits::STREAM_LIST_MAX;
use trefoil::{Database, List, NameInfo};

use super::Context;
use crate::error::{Failure, Result};
use crate::json::{RpcCall, present, put_number, put_string, text};
use crate::response::{self, HttpAnswer};
use crate::service::blocking;
use crate::strict;

/// How many names are listed if the client does not say.
const LIMIT_DEFAULT: usize = 100;

pub(super) async fn types(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let list = parse(call, "options")?;
    answer(context, move |database| database.types(&list)).await
}

pub(super) async fn tags(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let list = parse(call, "options")?;
    answer(context, move |database| database.tags(&list)).await
}

async fn answer(
    context: Context<'_>,
    names: impl FnOnce(&Database) -> trefoil::Result<Vec<NameInfo>> + Send + 'static,
) -> Result<HttpAnswer> {
    let database = context.database().await?;
    let names = blocking(move || names(&database)).await??;
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

fn parse(call: &RpcCall<'_>, what: &str) -> Result<List> {
    let Some(options) = present(call.argument(0)) else {
        return Ok(List::new(LIMIT_DEFAULT));
    };
    let [prefix, limit, cursor] = strict::object(options, what, ["prefix", "limit", "cursor"])?;
    let beginning = |value, name: &str| match present(value) {
        None => Ok(String::new()),
        Some(value) => text(value)
            .map(std::borrow::Cow::into_owned)
            .ok_or_else(|| Failure::invalid(format!("{name} must be a string"))),
    };
    let limit = match strict::optional_position(present(limit), "limit")? {
        None => LIMIT_DEFAULT,
        Some(limit) => usize::try_from(limit)
            .ok()
            .filter(|limit| (1..=STREAM_LIST_MAX).contains(limit))
            .ok_or_else(|| {
                Failure::invalid(format!("limit must be between 1 and {STREAM_LIST_MAX}"))
            })?,
    };
    let list = List::new(limit).with_prefix(beginning(prefix, "prefix")?);
    Ok(list.after(beginning(cursor, "cursor")?))
}
