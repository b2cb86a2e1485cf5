//! A client's connection to a store under measurement, whatever drives it.
//!
//! Requests are messages of the gRPC protocol that Trefoil and UmaDB share. Published clients
//! translate them into their own types first, as an application would.

use anyhow::Result;
use clap::ValueEnum;
use trefoil_grpc::{AppendRequest, ReadRequest};

use super::grpc::Grpc;
use super::resp::Resp;
use super::server::{Addresses, System};

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

/// The client that drives a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Driver {
    /// The client that applications use, unmodified: umadb-client, or tephra-client.
    Published,
    /// A gRPC client of this benchmark, which costs less.
    Lean,
    /// Transactions over RESP.
    Resp,
}

impl Driver {
    /// What the name of a store gets.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Published => "",
            Self::Lean => ", lean client",
            Self::Resp => ", RESP",
        }
    }
}

impl System {
    /// Whether a driver can speak to it.
    pub(crate) fn speaks(self, driver: Driver) -> bool {
        match self {
            Self::Umadb => driver != Driver::Resp,
            Self::Tephra => driver == Driver::Published,
            Self::Trefoil => true,
        }
    }

    /// The driver that costs least, for what is not measured.
    pub(crate) fn leanest(self) -> Driver {
        match self {
            Self::Tephra => Driver::Published,
            _ => Driver::Lean,
        }
    }

    /// The most threads that drive clients of this store.
    pub(crate) fn client_threads(self) -> usize {
        match self {
            // Its client blocks the thread.
            Self::Tephra => usize::MAX,
            _ => 1,
        }
    }
}

/// One connection, used by one client.
pub(crate) enum Connection {
    Grpc(Box<Grpc>),
    Resp(Resp),
    #[cfg(feature = "peers")]
    Umadb(Box<super::umadb::Umadb>),
    #[cfg(feature = "peers")]
    Tephra(super::tephra::Tephra),
}

impl Connection {
    pub(crate) async fn open(system: System, driver: Driver, addresses: Addresses) -> Result<Self> {
        let Addresses { store, resp, .. } = addresses;
        match (driver, system) {
            (Driver::Lean, _) => Ok(Self::Grpc(Box::new(Grpc::connect(store).await?))),
            (Driver::Resp, _) => Ok(Self::Resp(Resp::connect(resp).await?)),
            #[cfg(feature = "peers")]
            (Driver::Published, System::Tephra) => {
                Ok(Self::Tephra(super::tephra::Tephra::connect(store)?))
            }
            #[cfg(feature = "peers")]
            (Driver::Published, _) => {
                let umadb = super::umadb::Umadb::connect(store).await?;
                Ok(Self::Umadb(Box::new(umadb)))
            }
            #[cfg(not(feature = "peers"))]
            (Driver::Published, _) => {
                anyhow::bail!("published clients are not built in: --features peers")
            }
        }
    }

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
            Self::Umadb(umadb) => umadb.ask(request).await,
            #[cfg(feature = "peers")]
            Self::Tephra(tephra) => tephra.ask(request),
        }
    }
}
