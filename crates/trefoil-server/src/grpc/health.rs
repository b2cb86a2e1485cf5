//! `grpc.health.v1`: whether the server and its service answer.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use tonic::{Code, Status};
use trefoil_grpc::{HealthCheckRequest, HealthCheckResponse, ServingStatus, method};

use super::body::{GrpcAnswer, framed};
use super::request::Received;
use super::status::Result;
use crate::service::Shared;

/// Answers `Check`, and `Watch` until the server stops.
pub(super) fn answer(
    shared: &Arc<Shared>,
    request: &Received,
    is_watch: bool,
) -> Result<GrpcAnswer> {
    let HealthCheckRequest { service } = request.decode("HealthCheckRequest")?;
    if !["", method::SERVICE, method::HEALTH_SERVICE].contains(&service.as_str()) {
        let status = Status::new(Code::NotFound, "service not registered");
        return Err(Box::new(status));
    }
    if !is_watch {
        return Ok(GrpcAnswer::Whole(message(status(shared))));
    }
    let now = stream::iter([Ok(message(status(shared)))]);
    let closing = shared.closing.clone();
    let end = stream::once(async move {
        closing.cancelled_owned().await;
        Ok(message(ServingStatus::NotServing))
    });
    Ok(GrpcAnswer::stream(now.chain(end).boxed()))
}

fn status(shared: &Shared) -> ServingStatus {
    if shared.closing.is_cancelled() {
        ServingStatus::NotServing
    } else {
        ServingStatus::Serving
    }
}

fn message(status: ServingStatus) -> bytes::Bytes {
    framed(&HealthCheckResponse {
        status: status.into(),
    })
}
