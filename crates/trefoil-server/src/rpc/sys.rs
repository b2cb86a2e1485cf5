//! `["sys.version"]` answers the version; `["sys.health"]` answers
//! `{"backend", "connections", "status"}`.

use super::Context;
use crate::VERSION;
use crate::error::Result;
use crate::json::Call;
use crate::response::{self, Answer};

pub(super) async fn version(_: Context<'_>, _: &Call<'_>) -> Result<Answer> {
    Ok(response::json(format!("\"{VERSION}\"")))
}

pub(super) async fn health(context: Context<'_>, _: &Call<'_>) -> Result<Answer> {
    let connections = context.shared.connections.count();
    Ok(response::json(format!(
        "{{\"backend\":\"trefoil\",\"connections\":{connections},\"status\":\"ok\"}}"
    )))
}
