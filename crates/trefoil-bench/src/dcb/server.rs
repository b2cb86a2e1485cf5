//! The stores under measurement as server processes: how each is started, asked and restarted.
//!
//! Every store keeps its defaults, which are durable for all: an append is answered after its sync.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use clap::ValueEnum;
use trefoil_grpc::ReadRequest;

use super::connection::{Connection, Driver, Request};
use super::load::current_thread;
use crate::place::Place;
use crate::running::{Running, free_address};

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum System {
    /// UmaDB, over gRPC.
    Umadb,
    /// Tephra, over its own protocol.
    Tephra,
    /// This database.
    Trefoil,
}

/// A store to measure, and the program that serves it.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) system: System,
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    /// Only Trefoil has a choice.
    pub(crate) place: Place,
}

/// The addresses on which a store answers; only Trefoil has more than one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    pub(crate) store: SocketAddr,
    pub(crate) resp: SocketAddr,
    pub(crate) http: SocketAddr,
}

/// A store that runs on data of its own.
pub(crate) struct Server {
    pub(crate) store: Store,
    addresses: Addresses,
    pub(crate) running: Running,
}

impl Server {
    /// Starts a store without any events.
    pub(crate) fn start(store: &Store, directory: &Path) -> Result<Self> {
        let addresses = Addresses {
            store: free_address()?,
            resp: free_address()?,
            http: free_address()?,
        };
        let mut server = Self {
            store: store.clone(),
            addresses,
            running: start(store, directory, addresses)?,
        };
        server.wait_for_an_answer()?;
        Ok(server)
    }

    /// Starts a store that has ended on the same data and waits for its first answer.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        self.running.start_again()?;
        self.wait_for_an_answer()
    }

    pub(crate) fn wait_for_an_answer(&mut self) -> Result<()> {
        let Self {
            store,
            addresses,
            running,
        } = self;
        // Its connections are closed when this returns: a store that is asked to end may wait for that.
        let runtime = current_thread()?;
        // The published client waits 50 ms when it cannot connect.
        let driver = store.system.leanest();
        running.wait_until(|| {
            let answer = async {
                let mut connection = Connection::open(store.system, driver, *addresses).await?;
                connection.ask(Request::Read(last_event())).await
            };
            runtime.block_on(answer).is_ok()
        })
    }

    /// Returns where Trefoil speaks HTTP.
    pub(crate) fn http(&self) -> SocketAddr {
        self.addresses.http
    }

    pub(crate) async fn connect(&self, driver: Driver) -> Result<Connection> {
        Connection::open(self.store.system, driver, self.addresses).await
    }
}

fn start(store: &Store, directory: &Path, addresses: Addresses) -> Result<Running> {
    let Store {
        system,
        program,
        place,
        ..
    } = store;
    let address = addresses.store.to_string();
    match system {
        System::Umadb => Running::start(directory, |data| {
            let mut command = Command::new(program);
            command.arg("--db-path").arg(data);
            command.args(["--listen", &address]);
            command
        }),
        System::Tephra => Running::start(directory, |data| {
            let mut command = Command::new(program);
            command.arg("--data-dir").arg(data);
            command.args(["--bind", &address, "--log", "error"]);
            command
        }),
        System::Trefoil => {
            let ports = [
                ("grpc-port", addresses.store.port()),
                ("resp-port", addresses.resp.port()),
            ];
            Running::trefoil_in(place, program, directory, addresses.http, &ports)
        }
    }
}

fn last_event() -> ReadRequest {
    ReadRequest {
        backwards: Some(true),
        limit: Some(1),
        ..ReadRequest::default()
    }
}
