//! The servers under measurement: Redis, Valkey and Trefoil, each on a data directory of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use super::wire::{parse, put_command};
use crate::closed_loop::connect;
use crate::options::Options;
use crate::report::Report;
use crate::running::{Running, free_address};
use crate::usage::Usage;

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum System {
    /// `redis-server` with `appendonly yes` and `appendfsync always`.
    Redis,
    /// `valkey-server` with the same.
    Valkey,
    /// This database.
    Trefoil,
}

pub(crate) const REDIS: &str = "Redis";
pub(crate) const VALKEY: &str = "Valkey";
/// Peers, their names, and the programs that serve them.
const PEERS: [(System, &str, &str); 2] = [
    (System::Redis, REDIS, "redis-server"),
    (System::Valkey, VALKEY, "valkey-server"),
];

/// A server that runs on data of its own.
pub(crate) struct Server {
    pub(crate) system: System,
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    /// Where it speaks HTTP, if it does.
    pub(crate) http: Option<SocketAddr>,
    pub(crate) running: Running,
}

impl Server {
    /// Starts the servers that are wanted: all that are installed, if none is named.
    pub(crate) fn start_all(
        options: &Options,
        systems: &[System],
        report: &Report,
    ) -> Result<Vec<Self>> {
        let is_wanted = |system| systems.is_empty() || systems.contains(&system);
        let mut servers = Vec::new();
        for (system, name, program) in PEERS {
            if !is_wanted(system) {
                continue;
            }
            let program = options.peer(program)?;
            let Some((program, version)) = program.and_then(|program| {
                let version = version(&program)?;
                Some((program, version))
            }) else {
                report.line(&format!("{name} is not installed."));
                continue;
            };
            report.line(&format!(
                "{name} {version} with appendonly yes and appendfsync always."
            ));
            servers.push(Self::peer(system, name, &program, &options.dir)?);
        }
        if is_wanted(System::Trefoil) {
            for (name, program) in options.trefoils()? {
                servers.push(Self::trefoil(name, &program, &options.dir)?);
            }
        }
        Ok(servers)
    }

    fn trefoil(name: &'static str, program: &Path, directory: &Path) -> Result<Self> {
        let (address, http) = (free_address()?, free_address()?);
        let ports = [("resp-port", address.port())];
        let running = Running::trefoil(program, directory, http, &ports)?;
        let server = Self {
            system: System::Trefoil,
            name,
            address,
            http: Some(http),
            running,
        };
        server.ready()
    }

    fn peer(system: System, name: &'static str, program: &Path, directory: &Path) -> Result<Self> {
        let address = free_address()?;
        let running = Running::start(directory, |data| {
            let mut command = Command::new(program);
            command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
            command.args(["--appendonly", "yes", "--appendfsync", "always"]);
            command.args(["--save", "", "--daemonize", "no", "--loglevel", "warning"]);
            command.arg("--dir").arg(data);
            command
        })?;
        let server = Self {
            system,
            name,
            address,
            http: None,
            running,
        };
        server.ready()
    }

    fn ready(mut self) -> Result<Self> {
        let address = self.address;
        let waited = self.running.wait_until(|| open(address).is_ok());
        waited.with_context(|| format!("cannot start {}", self.name))?;
        Ok(self)
    }

    /// A connection that was answered once.
    pub(crate) fn connect(&self) -> Result<TcpStream> {
        open(self.address)
    }

    /// What the server has used so far.
    pub(crate) fn usage(&self) -> Usage {
        self.running.usage()
    }
}

/// Connects, and waits for the first answer.
pub(crate) fn open(address: SocketAddr) -> Result<TcpStream> {
    let mut socket = connect(address)?;
    let mut request = Vec::new();
    put_command(&mut request, &[b"PING"]);
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

/// The version of an installed server, in its own words.
fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut words = text.split_whitespace();
    Some(words.find_map(|word| word.strip_prefix("v="))?.to_owned())
}
