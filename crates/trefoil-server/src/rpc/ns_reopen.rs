//! `["ns.reopen", id]`
//!
//! Opens a namespace again, as it needs after an I/O error that made it refuse writes, and answers
//! `{"namespace"}`. Its subscriptions end. Needs the scope `admin` of that namespace, or the administrator of
//! the server.

use trefoil::Scope;

use super::Context;
use super::arguments::namespace_id;
use crate::error::Result;
use crate::json::{RpcCall, put_string};
use crate::response::{self, HttpAnswer};
use crate::service::blocking;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let id = namespace_id(call, "ns.reopen requires 1 argument: namespace ID")?.into_owned();
    context.access.require_of(&id, Scope::Admin)?;
    let (namespaces, wanted) = (context.shared.namespaces.clone(), id.clone());
    blocking(move || namespaces.reopen(&wanted)).await??;
    let mut out = b"{\"namespace\":".to_vec();
    put_string(&mut out, &id);
    out.push(b'}');
    Ok(response::json(out))
}
