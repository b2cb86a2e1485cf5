//! `cargo xtask bench size`: what a namespace, a connection, a million events and a million keys cost in
//! memory, on disk and in time. Each is measured with a server of its own.

mod server;

use std::fmt::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use fastrand::Rng;
use serde_json::{Value, json};

use crate::body;
use crate::machine::Machine;
use crate::options::beside;
use crate::resp::{ask, put_command};
use server::{ServerSize, SizedServer};

/// Measures what a server needs for namespaces, connections, events and keys.
///
/// Prints a table in Markdown. Takes a few minutes, with --quick one. Each connection needs two file
/// descriptors: raise the limit (`ulimit -n`) if it is below 4,096.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// Where the server has its data; directories in it are made and removed.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    dir: PathBuf,

    /// The program `trefoil` to measure [default: the one beside this program].
    #[arg(long, value_name = "PROGRAM")]
    trefoil: Option<PathBuf>,

    /// A look instead of a measurement: a tenth of everything.
    #[arg(long)]
    quick: bool,
}

const NAMESPACES: usize = 200;
const CONNECTIONS: usize = 1000;
const MANY: usize = 1_000_000;
/// How many events or keys are written with one request.
const AT_ONCE: usize = 1000;
/// How many events a stream has.
const PER_STREAM: usize = 100;
const VALUE_BYTES: usize = 64;
const SEED: u64 = 0x7369_7a65;

/// What is measured.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Namespaces,
    Http,
    Grpc,
    Resp,
    Events,
    Keys,
}

impl Subject {
    const ALL: [Self; 6] = [
        Self::Namespaces,
        Self::Http,
        Self::Grpc,
        Self::Resp,
        Self::Events,
        Self::Keys,
    ];

    /// How many there are, and what they are called in the table.
    fn measured(self) -> (usize, &'static str) {
        match self {
            Self::Namespaces => (NAMESPACES, "open namespaces with one event each"),
            Self::Http => (CONNECTIONS, "idle connections over HTTP"),
            Self::Grpc => (CONNECTIONS, "idle connections over gRPC"),
            Self::Resp => (CONNECTIONS, "idle connections over RESP"),
            Self::Events => (
                MANY,
                "events in streams of 100, about 250 bytes of data, a tag",
            ),
            Self::Keys => (MANY, "keys with values of 64 bytes"),
        }
    }

    /// Makes so many of them. What is returned keeps them.
    fn make(self, server: &SizedServer, count: usize) -> Result<Vec<TcpStream>> {
        match self {
            Self::Namespaces => namespaces(server, count).map(|()| Vec::new()),
            Self::Events => events(server, count).map(|()| Vec::new()),
            Self::Keys => keys(server, count).map(|()| Vec::new()),
            Self::Http => (0..count).map(|_| server.connect_http()).collect(),
            Self::Grpc => (0..count).map(|_| server.connect_grpc()).collect(),
            Self::Resp => (0..count).map(|_| server.connect_resp()).collect(),
        }
    }

    /// Whether they are there after a restart.
    fn stays(self) -> bool {
        matches!(self, Self::Events | Self::Keys)
    }
}

/// Runs the measurement and prints it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let program = match &arguments.trefoil {
        Some(program) => program.clone(),
        None => beside("trefoil")?,
    };
    ensure!(program.is_file(), "{} is not there", program.display());
    println!("{}\n", Machine::this().text());
    println!(
        "| | memory, MiB | on disk, MiB | made in, s | started again in, ms | memory then, MiB |\n\
         |---|---:|---:|---:|---:|---:|"
    );
    for (number, subject) in Subject::ALL.into_iter().enumerate() {
        let mut server = SizedServer::start(&program, &arguments.dir)?;
        let empty = server.size()?;
        if number == 0 {
            println!("{}", row("a server with nothing", &empty, None, None));
        }
        let (count, name) = subject.measured();
        let count = if arguments.quick { count / 10 } else { count };
        let begin = Instant::now();
        let kept = subject
            .make(&server, count)
            .with_context(|| format!("{name} cannot be measured"))?;
        let took = begin.elapsed();
        let more = server.size()?.without(&empty);
        drop(kept);
        let restart = match subject.stays() {
            true => Some(server.restart()?),
            false => None,
        };
        println!(
            "{}",
            row(&format!("{count} {name}"), &more, Some(took), restart)
        );
    }
    Ok(())
}

/// A line of the table.
fn row(
    name: &str,
    size: &ServerSize,
    took: Option<Duration>,
    restart: Option<(Duration, ServerSize)>,
) -> String {
    let mut text = format!("| {name} | {:.1} | {:.1} |", size.memory, size.disk);
    let _ = match took {
        Some(took) => write!(text, " {:.1} |", took.as_secs_f64()),
        None => write!(text, " |"),
    };
    let _ = match restart {
        Some((took, size)) => write!(text, " {} | {:.1} |", took.as_millis(), size.memory),
        None => write!(text, " | |"),
    };
    text
}

fn namespaces(server: &SizedServer, count: usize) -> Result<()> {
    for number in 0..count {
        let created = server.rpc(None, &json!(["ns.create", format!("size-{number}")]))?;
        let token = created["token"].as_str().context("there is no token")?;
        let event = json!({"type": "Opened", "data": {"number": number}});
        server.rpc(Some(token), &json!(["stream.write", "account-1", event]))?;
    }
    let open = server.metric("trefoil_namespaces_open")?;
    ensure!(open >= count as u64, "only {open} namespaces are open");
    Ok(())
}

fn events(server: &SizedServer, count: usize) -> Result<()> {
    let mut random = Rng::with_seed(SEED);
    for first in (0..count).step_by(AT_ONCE) {
        let mut event = |number: usize| -> Result<Value> {
            let (event_type, data) = body::generate(&mut random);
            let data: Value = serde_json::from_slice(&data)?;
            let entity = number / PER_STREAM;
            Ok(
                json!({"stream": format!("entity-{entity}"), "type": event_type, "data": data,
                "tags": [format!("entity:{entity}")]}),
            )
        };
        let events: Result<Vec<Value>> = (first..first + AT_ONCE).map(&mut event).collect();
        server.rpc(None, &json!(["commit", {"events": events?}]))?;
    }
    Ok(())
}

fn keys(server: &SizedServer, count: usize) -> Result<()> {
    let mut random = Rng::with_seed(SEED);
    let mut socket = server.connect_resp()?;
    for first in (0..count).step_by(AT_ONCE) {
        let mut request = Vec::new();
        for number in first..first + AT_ONCE {
            let value: String = (0..VALUE_BYTES).map(|_| random.alphanumeric()).collect();
            let key = format!("key:{number}");
            put_command(&mut request, &[b"SET", key.as_bytes(), value.as_bytes()]);
        }
        ask(&mut socket, &request, AT_ONCE)?;
    }
    Ok(())
}
