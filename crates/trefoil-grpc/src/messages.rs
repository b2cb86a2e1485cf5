//! The messages of the protocol; `proto/umadb.v1.proto` says what their fields mean.
//!
//! They are written by hand, as prost would generate them, so that a build needs no compiler for
//! protobuf. A test compares them with the `.proto` file.

use bytes::Bytes;

/// A key and a value of an event's metadata.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MetadataEntry {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// An event.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Event {
    /// The type.
    #[prost(string, tag = "1")]
    pub event_type: String,
    /// The tags.
    #[prost(string, repeated, tag = "2")]
    pub tags: Vec<String>,
    /// The body.
    #[prost(bytes = "bytes", tag = "3")]
    pub data: Bytes,
    /// The id that the client gave, or nothing.
    #[prost(string, tag = "4")]
    pub uuid: String,
    /// Keys and values, in order.
    #[prost(message, repeated, tag = "5")]
    pub metadata: Vec<MetadataEntry>,
}

/// A position in another log.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TrackingInfo {
    /// Which log.
    #[prost(string, tag = "1")]
    pub source: String,
    /// The position in it.
    #[prost(uint64, tag = "2")]
    pub position: u64,
}

/// An event that was stored.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SequencedEvent {
    /// Its position.
    #[prost(uint64, tag = "1")]
    pub position: u64,
    /// The event itself.
    #[prost(message, optional, tag = "2")]
    pub event: Option<Event>,
    /// The position in another log that was recorded with it.
    #[prost(message, optional, tag = "3")]
    pub tracking_info: Option<TrackingInfo>,
}

/// One alternative of a query.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct QueryItem {
    /// The types, one of which the event must have.
    #[prost(string, repeated, tag = "1")]
    pub types: Vec<String>,
    /// The tags, all of which the event must have.
    #[prost(string, repeated, tag = "2")]
    pub tags: Vec<String>,
}

/// Which events are meant.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Query {
    /// The alternatives.
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<QueryItem>,
}

/// What must not be there for an append to be made.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct AppendCondition {
    /// The events that must not be there; all if there is no query.
    #[prost(message, optional, tag = "1")]
    pub fail_if_events_match: Option<Query>,
    /// Events up to this position do not count.
    #[prost(uint64, optional, tag = "2")]
    pub after: Option<u64>,
}

/// A request to read.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ReadRequest {
    /// Which events; all if there is no query.
    #[prost(message, optional, tag = "1")]
    pub query: Option<Query>,
    /// Where to begin, inclusive.
    #[prost(uint64, optional, tag = "2")]
    pub start: Option<u64>,
    /// Whether the newest come first.
    #[prost(bool, optional, tag = "3")]
    pub backwards: Option<bool>,
    /// At most how many events.
    #[prost(uint32, optional, tag = "4")]
    pub limit: Option<u32>,
    /// No longer served.
    #[prost(bool, optional, tag = "5")]
    pub subscribe: Option<bool>,
    /// At most how many events in one response.
    #[prost(uint32, optional, tag = "6")]
    pub batch_size: Option<u32>,
}

/// A part of what was read.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ReadResponse {
    /// The events.
    #[prost(message, repeated, tag = "1")]
    pub events: Vec<SequencedEvent>,
    /// Up to where the reader knows all there is to know.
    #[prost(uint64, optional, tag = "2")]
    pub head: Option<u64>,
}

/// A request to follow events.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SubscribeRequest {
    /// Which events; all if there is no query.
    #[prost(message, optional, tag = "1")]
    pub query: Option<Query>,
    /// Where to begin, exclusive.
    #[prost(uint64, optional, tag = "2")]
    pub after: Option<u64>,
    /// At most how many events in one response.
    #[prost(uint32, optional, tag = "3")]
    pub batch_size: Option<u32>,
}

/// The next events of a subscription.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SubscribeResponse {
    /// The events.
    #[prost(message, repeated, tag = "1")]
    pub events: Vec<SequencedEvent>,
}

/// A request to append.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct AppendRequest {
    /// The events.
    #[prost(message, repeated, tag = "1")]
    pub events: Vec<Event>,
    /// The condition.
    #[prost(message, optional, tag = "2")]
    pub condition: Option<AppendCondition>,
    /// A position in another log to record.
    #[prost(message, optional, tag = "3")]
    pub tracking_info: Option<TrackingInfo>,
}

/// What was appended.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct AppendResponse {
    /// The position of the last event; 0 if there was none.
    #[prost(uint64, tag = "1")]
    pub position: u64,
}

/// A request for the position of the last event.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct HeadRequest {}

/// The position of the last event.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct HeadResponse {
    /// The position; `None` if there are no events.
    #[prost(uint64, optional, tag = "1")]
    pub position: Option<u64>,
}

/// A request for a recorded position.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TrackingRequest {
    /// Which log.
    #[prost(string, tag = "1")]
    pub source: String,
}

/// A recorded position.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct TrackingResponse {
    /// The position; `None` if none was recorded.
    #[prost(uint64, optional, tag = "1")]
    pub position: Option<u64>,
}

/// What the details of a failed call hold.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ErrorResponse {
    /// What is wrong.
    #[prost(string, tag = "1")]
    pub message: String,
    /// Which kind of error it is.
    #[prost(enumeration = "ErrorType", tag = "2")]
    pub error_type: i32,
}

/// The kinds of errors that clients tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ErrorType {
    /// The store could not do it.
    Io = 0,
    /// The request could not be read.
    Serialization = 1,
    /// A condition did not hold.
    Integrity = 2,
    /// Stored bytes are damaged.
    Corruption = 3,
    /// The server failed.
    Internal = 4,
    /// The token is missing or wrong.
    Authentication = 5,
    /// The request breaks a rule.
    InvalidArgument = 6,
}

/// A request of `grpc.health.v1`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HealthCheckRequest {
    /// The name of a service; empty for the server as a whole.
    #[prost(string, tag = "1")]
    pub service: String,
}

/// An answer of `grpc.health.v1`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct HealthCheckResponse {
    /// How the service is.
    #[prost(enumeration = "ServingStatus", tag = "1")]
    pub status: i32,
}

/// How a service is, as `grpc.health.v1` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ServingStatus {
    /// Nobody knows.
    Unknown = 0,
    /// It answers.
    Serving = 1,
    /// It does not answer, or not for long.
    NotServing = 2,
    /// There is no such service.
    ServiceUnknown = 3,
}
