//! The stores under measurement as server processes: how each is started, asked and restarted.
//!
//! Every store keeps its defaults, which are durable for all: an append is answered after its sync.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::ValueEnum;
use tokio::runtime::Runtime;
use trefoil::Token;
use trefoil_grpc::ReadRequest;

use super::connection::{Connection, Request};
use super::grpc::Grpc;
use super::load::current_thread;
use super::resp::Resp;
use crate::running::{self, Running};

/// A store under measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum System {
    /// UmaDB, over gRPC.
    Umadb,
    /// Tephra, over its own protocol.
    Tephra,
    /// This database, over gRPC.
    Trefoil,
    /// This database, over RESP.
    TrefoilResp,
}

impl System {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Umadb => "umadb",
            Self::Tephra => "tephra",
            Self::Trefoil => "trefoil",
            Self::TrefoilResp => "trefoil-resp",
        }
    }

    /// The most threads that drive clients of this store.
    pub(crate) fn client_threads(self) -> usize {
        match self {
            // Its client blocks the thread.
            Self::Tephra => usize::MAX,
            _ => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// A store and the program that serves it.
#[derive(Debug, Clone)]
pub(crate) struct Installed {
    pub(crate) system: System,
    pub(crate) program: PathBuf,
}

impl Installed {
    /// The same program, over RESP.
    pub(crate) fn over_resp(&self) -> Self {
        Self {
            system: System::TrefoilResp,
            program: self.program.clone(),
        }
    }

    fn command(&self, data: &Path, address: SocketAddr, token: &Token) -> Result<Command> {
        let mut command = Command::new(&self.program);
        let address_text = address.to_string();
        match self.system {
            System::Umadb => {
                command.arg("--db-path").arg(data);
                command.args(["--listen", &address_text]);
            }
            System::Tephra => {
                command.arg("--data-dir").arg(data);
                command.args(["--bind", &address_text, "--log", "error"]);
            }
            System::Trefoil | System::TrefoilResp => {
                command = running::serve(&self.program, data, token);
                let port = running::free_port()?;
                command.args(["--port", &port.to_string()]);
                let is_resp = self.system == System::TrefoilResp;
                command.arg(if is_resp {
                    "--resp-port"
                } else {
                    "--grpc-port"
                });
                command.arg(address.port().to_string());
            }
        }
        Ok(command)
    }
}

/// A store that runs on data of its own.
pub(crate) struct Server {
    system: System,
    address: SocketAddr,
    token: Token,
    running: Running,
    /// For the first answer.
    runtime: Runtime,
}

/// A store has settled when it uses less than this share of a core...
const IDLE_SHARE: f64 = 0.03;
/// ... over this time; it gets at most so long.
const IDLE_TIME: Duration = Duration::from_millis(500);
const SETTLE_MAX: Duration = Duration::from_secs(60);

impl Server {
    /// Starts a store without any events.
    pub(crate) fn start(installed: &Installed, directory: &Path) -> Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], running::free_port()?));
        let token = running::random_token()?;
        let running = Running::start(directory, |data| installed.command(data, address, &token))?;
        let mut server = Self {
            system: installed.system,
            address,
            token,
            running,
            runtime: current_thread()?,
        };
        server.wait_for_an_answer()?;
        Ok(server)
    }

    /// Kills the store, starts it on the same data, and says how long its first answer took.
    pub(crate) fn restart(&mut self) -> Result<Duration> {
        self.running.kill()?;
        let begin = Instant::now();
        self.running.start_again()?;
        self.wait_for_an_answer()?;
        Ok(begin.elapsed())
    }

    fn wait_for_an_answer(&mut self) -> Result<()> {
        let Self {
            system,
            address,
            token,
            running,
            runtime,
        } = self;
        running.wait_until(|| {
            let answer = async {
                let mut connection = connect(*system, *address, token).await?;
                connection.ask(Request::Read(last_event())).await
            };
            runtime.block_on(answer).is_ok()
        })
    }

    pub(crate) async fn connect(&self) -> Result<Connection> {
        connect(self.system, self.address, &self.token).await
    }

    pub(crate) fn system(&self) -> System {
        self.system
    }

    /// The CPU time that the store has used so far.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        self.running.cpu()
    }

    /// Waits until work in the background is done.
    pub(crate) fn settle(&self) {
        let begin = Instant::now();
        while begin.elapsed() < SETTLE_MAX {
            let before = self.cpu();
            std::thread::sleep(IDLE_TIME);
            let used = self.cpu().zip(before).map(|(after, before)| after - before);
            if used.is_none_or(|used| used < IDLE_TIME.mul_f64(IDLE_SHARE)) {
                return;
            }
        }
    }

    /// An error if the store has ended by itself.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.running.check()
    }
}

async fn connect(system: System, address: SocketAddr, token: &Token) -> Result<Connection> {
    let token = match system {
        System::Trefoil => Some(token.reveal()),
        System::Umadb => None,
        System::TrefoilResp => {
            let resp = Resp::connect(address, token.reveal()).await?;
            return Ok(Connection::Resp(resp));
        }
        #[cfg(feature = "peers")]
        System::Tephra => {
            return Ok(Connection::Tephra(super::tephra::Tephra::connect(address)?));
        }
        #[cfg(not(feature = "peers"))]
        System::Tephra => anyhow::bail!("Tephra's client is not built in: --features peers"),
    };
    let grpc = Grpc::connect(address, token).await?;
    Ok(Connection::Grpc(Box::new(grpc)))
}

fn last_event() -> ReadRequest {
    ReadRequest {
        backwards: Some(true),
        limit: Some(1),
        ..ReadRequest::default()
    }
}
