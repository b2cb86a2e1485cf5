//! `cargo xtask bench subscribers`: what an append costs while many follow events of the same namespace.
//!
//! The subscribers are connections over server-sent events, or calls over gRPC. Either each follows a tag of
//! its own, and appends concern none or one of them, or all follow the same one. Wakes are counted by the
//! server.

mod crowd;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use trefoil::Token;

use crate::closed_loop::connect;
use crate::http::{get, parse, post};
use crate::latency::Latencies;
use crate::machine::Machine;
use crate::options::Options;
use crate::report::{Report, Row};
use crate::running::{Running, free_address};
use crate::usage::metric;
use crowd::{Crowd, Doors, Protocol};

/// Measures the processor time of an append with 0 to 10,000 subscribers.
///
/// One client appends one event at a time over HTTP. The server and this program need a file descriptor each
/// for a subscriber: raise the limit (`ulimit -n`) if it is below 12,000.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,

    #[command(flatten)]
    selection: Selection,
}

/// What is measured.
#[derive(Debug, Clone, Args)]
pub(crate) struct Selection {
    /// How many subscribers, one row each.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = COUNTS)]
    counts: Vec<usize>,

    /// How the subscribers subscribe.
    #[arg(long, value_enum, default_value_t = Protocol::Sse)]
    protocol: Protocol,
}

const COUNTS: [usize; 5] = [0, 10, 100, 1000, 10_000];
/// The server takes more connections than are needed: other protocols have a part to themselves.
const CONNECTIONS_MAX: &str = "16000";
/// A row takes this many times the time of a cell. By default these are 15 seconds, in which each connection is
/// told once that it is alive.
const WINDOWS: u32 = 5;
/// How many events are appended before that, and how long the server has then to become quiet.
const WARM_UP: usize = 500;
const SETTLE: Duration = Duration::from_secs(2);
/// The tag of events that nobody follows, and of those that all follow.
const NOBODY: &str = "nobody";
const EVERYBODY: &str = "everybody";

/// Whom an append concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Concerned {
    Nobody,
    One,
    Everybody,
}

impl Concerned {
    const EVERY: [Self; 3] = [Self::Nobody, Self::One, Self::Everybody];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Nobody => "Append that concerns no subscriber",
            Self::One => "Append that concerns one subscriber",
            Self::Everybody => "Append that concerns all subscribers",
        }
    }
}

/// What appends cost with so many subscribers.
#[derive(Debug, Clone)]
pub(crate) struct SubscribersCost {
    pub(crate) system: &'static str,
    pub(crate) concerned: Concerned,
    pub(crate) subscribers: usize,
    /// The processor time of the server, without what it takes to keep the connections alive.
    pub(crate) per_append: Duration,
    /// Until the append was answered.
    pub(crate) latencies: Latencies,
    /// How many subscribers were woken for an append, by the server's own account, if it counts them.
    pub(crate) wakes: Option<f64>,
}

/// Runs the measurement and prints it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { options, selection } = arguments;
    options.check()?;
    let machine = Machine::this();
    let mut report = Report::new(options.json);
    report.line(&machine.text());
    let costs = measure(options, selection)?;
    for concerned in Concerned::EVERY {
        let costs = costs.iter().filter(|cost| cost.concerned == concerned);
        let rows = costs.map(row).collect();
        report.table(concerned.title(), "us of the server", rows);
    }
    report.finish(&options.context(&machine))
}

fn row(cost: &SubscribersCost) -> Row {
    let name = format!("{}, {} subscribers", cost.system, cost.subscribers);
    let mut row = Row::new(name, cost.per_append.as_secs_f64() * 1e6);
    row.latency = Some(cost.latencies.percentiles());
    match cost.wakes {
        Some(wakes) => row.note(format!("{wakes:.2} wakes per append")),
        None => row.note("it does not count wakes"),
    }
}

/// Measures each number of subscribers with a new server.
pub(crate) fn measure(options: &Options, selection: &Selection) -> Result<Vec<SubscribersCost>> {
    let mut costs = Vec::new();
    for (system, program) in options.trefoils()? {
        for &subscribers in &selection.counts {
            for concerned in Concerned::EVERY {
                if subscribers == 0 && concerned != Concerned::Nobody {
                    continue;
                }
                let server = Server::start(&program, &options.dir)?;
                let (time, protocol) = (WINDOWS * options.time(), selection.protocol);
                let cost = server.measure((system, concerned, subscribers), protocol, time);
                costs.push(cost.with_context(|| format!("{system}, {subscribers} subscribers"))?);
            }
        }
    }
    Ok(costs)
}

/// A server under measurement.
struct Server {
    doors: Doors,
    running: Running,
}

impl Server {
    fn start(program: &Path, directory: &Path) -> Result<Self> {
        let doors = Doors {
            http: free_address()?,
            grpc: free_address()?,
        };
        let mut running = Running::start(directory, |data| {
            let mut command = Command::new(program);
            command.args(["dev", "--log-level", "error", "--resp-port", "off"]);
            command.args(["--connections-max", CONNECTIONS_MAX]);
            command.args(["--port", &doors.http.port().to_string()]);
            command.args(["--grpc-port", &doors.grpc.port().to_string()]);
            command.arg("--data-dir").arg(data);
            command
        })?;
        running.wait_until(|| get(doors.http, "/health").is_ok())?;
        Ok(Self { doors, running })
    }

    fn measure(
        &self,
        (system, concerned, subscribers): (&'static str, Concerned, usize),
        protocol: Protocol,
        time: Duration,
    ) -> Result<SubscribersCost> {
        let tag = |number: usize| match concerned {
            Concerned::Everybody => EVERYBODY.to_owned(),
            Concerned::Nobody | Concerned::One => format!("own{number}"),
        };
        let tag_of = |number: usize| match concerned {
            Concerned::Nobody => NOBODY.to_owned(),
            Concerned::One | Concerned::Everybody => tag(number % subscribers.max(1)),
        };
        let concerns = match concerned {
            Concerned::Nobody => 0,
            Concerned::One => 1,
            Concerned::Everybody => subscribers,
        };
        let token = Token::development();
        let tags = (0..subscribers).map(tag).collect();
        let crowd = Crowd::connect(self.doors, token.reveal(), protocol, tags)?;
        let mut appender = Appender::new(self.doors.http)?;
        for _ in 0..WARM_UP {
            appender.append(NOBODY)?;
        }
        std::thread::sleep(SETTLE);
        let before = self.cpu()?;
        std::thread::sleep(time);
        let idle = (self.cpu()? - before).div_f64(time.as_secs_f64());
        appender.latencies = Latencies::new()?;
        let (before, wakes_before, begin) = (self.cpu()?, self.wakes()?, Instant::now());
        let mut appends = 0;
        while begin.elapsed() < time {
            appender.append(&tag_of(appends))?;
            appends += 1;
            crowd.wait_for((appends * concerns) as u64)?;
        }
        let idle = idle.mul_f64(begin.elapsed().as_secs_f64());
        let used = (self.cpu()? - before).saturating_sub(idle);
        ensure!(
            crowd.received() == (appends * concerns) as u64,
            "subscribers were told what does not concern them"
        );
        crowd.leave()?;
        let wakes = self.wakes()?.zip(wakes_before);
        Ok(SubscribersCost {
            system,
            concerned,
            subscribers,
            per_append: used.div_f64(appends as f64),
            latencies: appender.latencies,
            wakes: wakes.map(|(after, before)| (after - before) as f64 / appends as f64),
        })
    }

    /// The processor time that it has used so far.
    fn cpu(&self) -> Result<Duration> {
        self.running.usage().cpu.context("/proc does not say")
    }

    fn wakes(&self) -> Result<Option<u64>> {
        let metrics = String::from_utf8(get(self.doors.http, "/metrics")?)?;
        Ok(metric(&metrics, "trefoil_subscription_wakes_total"))
    }
}

/// Appends one event at a time.
struct Appender {
    address: SocketAddr,
    socket: TcpStream,
    buffer: Vec<u8>,
    latencies: Latencies,
}

impl Appender {
    fn new(address: SocketAddr) -> Result<Self> {
        Ok(Self {
            address,
            socket: connect(address)?,
            buffer: vec![0; 16 * 1024],
            latencies: Latencies::new()?,
        })
    }

    /// Appends an event with this tag.
    fn append(&mut self, tag: &str) -> Result<()> {
        let call = format!(
            r#"["commit",{{"events":[{{"stream":"a-1","type":"T","data":{{}},"tags":["{tag}"]}}]}}]"#
        );
        let request = post(self.address, &call);
        let begin = Instant::now();
        self.socket.write_all(&request)?;
        let mut received = 0;
        loop {
            let length = self.socket.read(&mut self.buffer[received..])?;
            ensure!(length > 0, "the server closed a connection");
            received += length;
            if let Some(response) = parse(&self.buffer[..received])? {
                ensure!(response.status == 200, "an append was refused");
                self.latencies.record(begin.elapsed());
                return Ok(());
            }
        }
    }
}
