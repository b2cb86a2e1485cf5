//! `["ns.streams", {prefix?, limit?, cursor?}]`
//!
//! Answers a page of the streams of the token's namespace, `[{"lastActivity", "stream",
//! "version"}]`, in byte order of their names, after `cursor`. The prefix is taken literally.

use super::Context;
use super::arguments::lenient_list;
use crate::error::Result;
use crate::json::{RpcCall, put_number, put_string, put_time};
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let list = lenient_list(call)?;
    context.access.grant.require_streams_with(&list.prefix)?;
    let database = context.database().await?;
    let streams = database.streams_async(&list).await?;
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
