//! UmaDB's gRPC protocol, version 1: its messages, its names, and a client.
//!
//! The server is in `trefoil-server`; it reads and writes the large messages without building them.

#[cfg(feature = "client")]
mod client;
mod messages;
pub mod method;

#[cfg(feature = "client")]
pub use client::{Client, Connect, error_of};
pub use messages::{
    AppendCondition, AppendRequest, AppendResponse, ErrorResponse, ErrorType, Event, HeadRequest,
    HeadResponse, HealthCheckRequest, HealthCheckResponse, MetadataEntry, Query, QueryItem,
    ReadRequest, ReadResponse, SequencedEvent, ServingStatus, SubscribeRequest, SubscribeResponse,
    TrackingInfo, TrackingRequest, TrackingResponse,
};
#[cfg(feature = "client")]
pub use tonic::{Code, Status, Streaming};
