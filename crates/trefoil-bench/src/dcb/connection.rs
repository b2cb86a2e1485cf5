//! A client's connection to a store under measurement, whatever protocol the store speaks.
//!
//! Requests are messages of the gRPC protocol that Trefoil and UmaDB share, and both are driven by
//! the same code: what the client costs is then the same for both. Tephra has a protocol of its own;
//! its published client translates.

use anyhow::Result;
use trefoil_grpc::{AppendRequest, ReadRequest};

use super::grpc::Grpc;
use super::resp::Resp;

/// What is asked of a store.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Append(AppendRequest),
    Read(ReadRequest),
}

/// A response of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The position of the last event that was appended.
    Appended(u64),
    /// The condition of an append was not met.
    Refused,
    /// All events of a read have come.
    Read(Found),
}

/// What a read found; `bytes` shows that every body was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Found {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

/// One connection, used by one client.
pub(crate) enum Connection {
    Grpc(Box<Grpc>),
    Resp(Resp),
    #[cfg(feature = "peers")]
    Tephra(super::tephra::Tephra),
}

impl Connection {
    pub(crate) async fn ask(&mut self, request: Request) -> Result<Answer> {
        match self {
            Self::Grpc(grpc) => match request {
                Request::Append(append) => grpc.append(&append).await,
                Request::Read(read) => grpc.read(&read).await.map(Answer::Read),
            },
            Self::Resp(resp) => match request {
                Request::Append(append) => resp.append(&append).await,
                Request::Read(read) => resp.read(&read).await.map(Answer::Read),
            },
            #[cfg(feature = "peers")]
            Self::Tephra(tephra) => tephra.ask(request),
        }
    }
}
