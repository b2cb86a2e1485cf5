//! `GET /ready`: whether the server can do its work. (`/health` only says that it is alive.)
//!
//! It listens, or it would not answer; the default namespace must be open and take writes, or be on another
//! node, and the disk must have room. A node of a cluster needs its lease, and a clock that agrees with the storage's. A server that is being stopped is
//! not ready, from the first moment on, while it still answers. One tenant in trouble does not count.
//! Everybody may ask, so the answer names nothing but the part that is missing.

use hyper::StatusCode;
use hyper::header::HeaderValue;
use trefoil::{DEFAULT_NAMESPACE, NamespaceId, Trace};

use crate::error::Result;
use crate::response::{self, HttpAnswer, HttpBody};
use crate::service::Shared;

/// With less room than this on its disk a server is not ready: the next segment of a small log takes
/// as much.
const FREE_BYTES_MIN: u64 = 8 * 1024 * 1024;

pub(crate) async fn answer(shared: &Shared) -> Result<HttpAnswer> {
    let Some(reason) = missing(shared).await else {
        return Ok(response::json("{\"status\":\"ready\"}"));
    };
    let body = format!("{{\"status\":\"not ready\",\"reason\":\"{reason}\"}}");
    Ok(response::answer(
        StatusCode::SERVICE_UNAVAILABLE,
        HeaderValue::from_static("application/json"),
        HttpBody::Whole(body.into()),
    ))
}

/// What keeps the server from being ready.
async fn missing(shared: &Shared) -> Option<&'static str> {
    if shared.leaving.is_cancelled() {
        return Some("stopping");
    }
    if shared.namespaces.check_ready().is_err() {
        return Some("lease");
    }
    let cluster = shared.namespaces.cluster();
    if cluster.is_some_and(|cluster| cluster.stats().is_clock_off) {
        return Some("clock");
    }
    let is_writable = match NamespaceId::new(DEFAULT_NAMESPACE) {
        Ok(id) => match shared.database(&id, &Trace::default(), false).await {
            Ok(database) => database.refuses_writes().is_none(),
            Err(failure) => failure.code == "WRONG_NODE",
        },
        Err(_) => false,
    };
    if !is_writable {
        return Some("storage");
    }
    let is_full = match shared.namespaces.free_bytes() {
        Ok(free) => free.is_some_and(|free| free < FREE_BYTES_MIN),
        Err(_) => true,
    };
    is_full.then_some("disk")
}
