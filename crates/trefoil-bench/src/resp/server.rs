//! The servers under measurement: Trefoil and Redis, each on a data directory of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use super::wire::{parse, put_command};
use crate::closed_loop::connect;
use crate::running::{self, Running, ServerProgram};

/// A server under measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum System {
    /// `redis-server` with `appendonly yes` and `appendfsync always`.
    Redis,
    /// This database.
    Trefoil,
}

impl System {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Trefoil => "trefoil",
        }
    }
}

/// A server that runs on data of its own.
pub(crate) struct Server {
    pub(crate) system: System,
    pub(crate) address: SocketAddr,
    /// Where it speaks HTTP, if it does, and the token for it.
    pub(crate) http: Option<(SocketAddr, String)>,
    running: Running,
}

impl Server {
    /// Starts the servers that are wanted. Redis is left out if it is not installed and nobody
    /// asked for it.
    pub(crate) fn start_all(
        systems: &[System],
        redis: &Path,
        trefoil: &ServerProgram,
        directory: &Path,
    ) -> Result<Vec<Self>> {
        let is_wanted = |system| systems.is_empty() || systems.contains(&system);
        let mut servers = Vec::new();
        if is_wanted(System::Redis) {
            if version(redis).is_some() {
                servers.push(Self::redis(redis, directory)?);
            } else if !systems.is_empty() {
                bail!("{} cannot be run: give --redis", redis.display());
            }
        }
        if is_wanted(System::Trefoil) {
            servers.push(Self::trefoil(&trefoil.program()?, directory)?);
        }
        Ok(servers)
    }

    fn trefoil(program: &Path, directory: &Path) -> Result<Self> {
        let token = running::random_token()?;
        let (address, http) = (local(running::free_port()?), local(running::free_port()?));
        let running = Running::start(directory, |data| {
            let mut command = running::serve(program, data, &token);
            command.args(["--port", &http.port().to_string()]);
            command.args(["--resp-port", &address.port().to_string()]);
            Ok(command)
        })?;
        let http = Some((http, token.reveal().to_owned()));
        Self::ready(System::Trefoil, address, http, running)
    }

    fn redis(program: &Path, directory: &Path) -> Result<Self> {
        let address = local(running::free_port()?);
        let running = Running::start(directory, |data| {
            let mut command = Command::new(program);
            command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
            command.args(["--appendonly", "yes", "--appendfsync", "always"]);
            command.args(["--save", "", "--daemonize", "no", "--loglevel", "warning"]);
            command.arg("--dir").arg(data);
            Ok(command)
        })?;
        Self::ready(System::Redis, address, None, running)
    }

    fn ready(
        system: System,
        address: SocketAddr,
        http: Option<(SocketAddr, String)>,
        running: Running,
    ) -> Result<Self> {
        let mut server = Self {
            system,
            address,
            http,
            running,
        };
        let token = server.http.as_ref().map(|(_, token)| token.as_str());
        let is_ready = || open(address, token).is_ok();
        server.running.wait_until(is_ready)?;
        Ok(server)
    }

    /// A connection that has shown who it is.
    pub(crate) fn connect(&self) -> Result<TcpStream> {
        let token = self.http.as_ref().map(|(_, token)| token.as_str());
        open(self.address, token)
    }

    /// The CPU time that the server has used so far.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        self.running.cpu()
    }

    /// An error if the server has ended by itself.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.running.check()
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Connects, and waits for the first answer.
fn open(address: SocketAddr, token: Option<&str>) -> Result<TcpStream> {
    let mut socket = connect(address)?;
    let mut request = Vec::new();
    match token {
        Some(token) => put_command(&mut request, &[b"AUTH", token.as_bytes()]),
        None => put_command(&mut request, &[b"PING"]),
    }
    ask(&mut socket, &request, 1)?;
    Ok(socket)
}

/// Sends a request that gets `replies` replies, none of them an error; returns them as they came.
pub(crate) fn ask(socket: &mut TcpStream, request: &[u8], replies: usize) -> Result<Vec<u8>> {
    socket.write_all(request)?;
    let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
    let (mut count, mut read) = (0, 0);
    while count < replies {
        let length = socket.read(&mut buffer)?;
        ensure!(length > 0, "the server closed a connection");
        received.extend_from_slice(&buffer[..length]);
        while let Some((reply, length)) = parse(&received[read..])? {
            reply.check()?;
            read += length;
            count += 1;
        }
    }
    Ok(received)
}

/// The version of an installed Redis, in its own words.
pub(crate) fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let words = text.split_whitespace();
    let version = words.into_iter().find_map(|word| word.strip_prefix("v="))?;
    Some(version.to_owned())
}

/// The options that say what is started, where, and how it is measured.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Installed {
    /// Where to put the data of the servers; directories in it are made and removed.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    pub(crate) dir: PathBuf,

    #[command(flatten)]
    server: ServerProgram,

    /// The program that serves Redis; if it is not there, it is not measured.
    #[arg(long, value_name = "PROGRAM", default_value = "redis-server")]
    pub(crate) redis: PathBuf,

    /// Only these systems.
    #[arg(long, value_name = "SYSTEMS", value_enum, value_delimiter = ',')]
    pub(crate) systems: Vec<System>,

    /// How long each cell is measured, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 4.0)]
    seconds: f64,

    /// A look instead of a measurement: 1 second per cell.
    #[arg(long)]
    quick: bool,

    /// Prints one JSON document instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Installed {
    /// Returns how long each cell is measured.
    pub(crate) fn time(&self) -> Result<Duration> {
        let seconds = if self.quick { 1.0 } else { self.seconds };
        ensure!(
            seconds > 0.0 && seconds <= 3600.0,
            "--seconds must be above 0 and at most 3600"
        );
        Ok(Duration::from_secs_f64(seconds))
    }

    /// Starts what is wanted.
    pub(crate) fn start(&self) -> Result<Vec<Server>> {
        Server::start_all(&self.systems, &self.redis, &self.server, &self.dir)
            .context("cannot start a server")
    }

    /// Who is measured, for the report.
    pub(crate) fn text(&self, servers: &[Server]) -> String {
        let has_redis = servers.iter().any(|server| server.system == System::Redis);
        match version(&self.redis).filter(|_| has_redis) {
            Some(version) => {
                format!("Redis {version} with appendonly yes and appendfsync always.")
            }
            None => "Redis is not measured.".to_owned(),
        }
    }
}
