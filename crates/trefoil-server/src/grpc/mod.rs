//! Trefoil over gRPC: the API of UmaDB, version 1.
//!
//! ```text
//! connection   a socket, HTTP/2, perhaps TLS
//! call         one call: which method, whose namespace, what is counted
//! request      the message of a call, out of its body
//! body         the messages of an answer, and the status that ends them
//! status       errors as gRPC tells them
//! append       Append, decoded straight into a commit
//! read         Read, and subscribe: Subscribe
//! lookup       Head and GetTrackingInfo
//! health       grpc.health.v1
//! relay        calls whose namespace is on another node
//! batch        events as protobuf, written straight from what is stored
//! metadata     metadata as entries and as JSON
//! wire         the little of protobuf that this needs
//! ```
//!
//! Large messages are never built as values: an `AppendRequest` becomes a commit and events become
//! bytes. What is answered is described in `docs/grpc.md`.

mod append;
mod batch;
mod body;
mod call;
mod connection;
mod health;
mod lookup;
mod metadata;
mod read;
mod relay;
mod repetition;
mod request;
mod socket;
mod status;
mod subscribe;
mod wire;

pub(crate) use call::METHOD_NAMES;
pub(crate) use connection::serve;
pub(crate) use relay::GrpcPeers;
pub(crate) use status::CODE_NAMES;
#[cfg(test)]
pub(crate) use status::code_of;
