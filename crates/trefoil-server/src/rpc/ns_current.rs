//! `["ns.current"]`
//!
//! Answers `{"namespace", "admin"}`: whose token this is, which one that its owner chose does not say,
//! and whether it administers all namespaces. It goes beyond EventoDB.

use super::Context;
use crate::error::Result;
use crate::json::{ObjectWriter, RpcCall};
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, _: &RpcCall<'_>) -> Result<HttpAnswer> {
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    object.text("namespace", context.access.namespace.as_str());
    let is_admin = context.access.grant.is_server_admin();
    object.flag("admin", is_admin);
    object.end();
    Ok(response::json(out))
}
