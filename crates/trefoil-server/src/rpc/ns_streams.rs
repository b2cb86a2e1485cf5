//! `["ns.streams", {prefix?, limit?, cursor?}]`
//!
//! Answers a page of the streams of the token's namespace, `[{"lastActivity", "stream",
//! "version"}]`, in byte order of their names, after `cursor`. The prefix is taken literally.

use trefoil::List;
use trefoil::limits::STREAM_LIST_MAX;

use super::Context;
use super::arguments::{number_option, options, text_option};
use crate::error::{Failure, Result};
use crate::json::{RpcCall, put_number, put_string, put_time};
use crate::response::{self, HttpAnswer};
use crate::service::blocking;

/// How many streams are listed if the client does not say.
const LIMIT_DEFAULT: usize = 100;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let list = parse(call)?;
    let database = context.database().await?;
    let streams = blocking(move || database.streams(&list)).await??;
    let mut out = vec![b'['];
    for stream in streams {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"lastActivity\":");
        put_time(&mut out, stream.last_activity.whole_seconds());
        out.extend_from_slice(b",\"stream\":");
        put_string(&mut out, &stream.stream);
        out.extend_from_slice(b",\"version\":");
        put_number(&mut out, stream.version);
        out.push(b'}');
    }
    out.push(b']');
    Ok(response::json(out))
}

fn parse(call: &RpcCall<'_>) -> Result<List> {
    let [prefix, limit, cursor] = options(call.argument(0), ["prefix", "limit", "cursor"])?;
    let limit = match number_option(limit, "limit")? {
        None => LIMIT_DEFAULT,
        Some(limit) => usize::try_from(limit)
            .ok()
            .filter(|limit| (1..=STREAM_LIST_MAX).contains(limit))
            .ok_or_else(|| {
                Failure::invalid(format!("limit must be between 1 and {STREAM_LIST_MAX}"))
            })?,
    };
    let prefix = text_option(prefix, "prefix")?.unwrap_or_default();
    let cursor = text_option(cursor, "cursor")?.unwrap_or_default();
    Ok(List::new(limit).with_prefix(prefix).after(cursor))
}
