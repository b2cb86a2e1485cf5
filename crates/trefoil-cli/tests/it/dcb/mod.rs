//! Queries by type and tags and appends under conditions: the same tests over the library, HTTP and
//! gRPC, against the built binary where there is a server.

mod backend;
mod conformance;
mod groups;
mod grpc;
mod hostile;
mod library;
mod rpc;
mod scenarios;
mod shapes;
mod soak;
mod store;
mod words;
mod worlds;

pub(crate) use grpc::Grpc;
pub(crate) use store::{Fact, Store};
