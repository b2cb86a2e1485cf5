//! `Head` and `GetTrackingInfo`: a position each.

use trefoil::Database;
use trefoil_grpc::{HeadResponse, TrackingRequest, TrackingResponse};

use super::body::GrpcAnswer;
use super::request::Received;
use super::status::{Result, of_error};

/// The position of the last event.
pub(super) fn head(database: &Database) -> Result<GrpcAnswer> {
    let head = database.head().map_err(|error| of_error(&error))?;
    let position = Some(head).filter(|&head| head > 0);
    Ok(GrpcAnswer::message(&HeadResponse { position }))
}

/// The position that was last recorded for a source.
pub(super) async fn tracking(database: &Database, request: &Received) -> Result<GrpcAnswer> {
    let TrackingRequest { source } = request.decode("TrackingRequest")?;
    let position = match database.may_wait() {
        true => database.tracking_async(&source).await,
        false => database.tracking(&source),
    };
    let position = position.map_err(|error| of_error(&error))?;
    Ok(GrpcAnswer::message(&TrackingResponse { position }))
}
