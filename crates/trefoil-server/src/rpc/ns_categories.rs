//! `["ns.categories"]`
//!
//! Answers the categories of the token's namespace, `[{"category", "messageCount",
//! "streamCount"}]`, in byte order of their names.

use trefoil::List;

use super::Context;
use crate::error::Result;
use crate::json::{RpcCall, put_number, put_string};
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, _: &RpcCall<'_>) -> Result<HttpAnswer> {
    let database = context.database().await?;
    let all = List::new(usize::MAX);
    let categories = database.categories_async(&all).await?;
    let mut out = vec![b'['];
    for category in categories {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"category\":");
        put_string(&mut out, &category.category);
        out.extend_from_slice(b",\"messageCount\":");
        put_number(&mut out, category.events);
        out.extend_from_slice(b",\"streamCount\":");
        put_number(&mut out, category.streams);
        out.push(b'}');
    }
    out.push(b']');
    Ok(response::json(out))
}
