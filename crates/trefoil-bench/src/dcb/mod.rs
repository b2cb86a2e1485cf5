//! `cargo xtask bench dcb`: queries and conditional appends over gRPC, beside UmaDB and Tephra.
//!
//! Every cell measures the stores one after the other, on the same disk and with the same load.

mod appends;
mod asking;
mod connection;
mod events;
mod growth;
mod grpc;
mod history;
mod load;
mod loaded;
mod resp;
mod server;
mod tags;
#[cfg(feature = "peers")]
mod tephra;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde_json::json;

use crate::machine::Machine;
use crate::report::{Report, Row, Target};
use crate::running::ServerProgram;
use events::Bodies;
use server::Installed;
pub(crate) use server::System;

/// Measures queries and conditional appends over gRPC, beside UmaDB and Tephra if they are given.
///
/// Starts each store as a server of its own with a new data directory and its default settings,
/// which are durable for all. Events have 256 bytes of data and the tag of one of 10,000 entities.
/// Appends are conditional on a tag and a type after the last known position of the entity. Reads
/// find 500,000 events. Then: what queries and conditions cost as the log grows, and what tags cost.
///
/// Trefoil and UmaDB are driven by the same code, with one connection per client and a thread per
/// core; Trefoil's appends over RESP, too, as transactions; Tephra by its own blocking client, with one thread per client (only in a build with
/// `--features peers`). Clients and server share the machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// Where to put the data of the stores; directories in it are made and removed.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    pub(crate) dir: PathBuf,

    #[command(flatten)]
    server: ServerProgram,

    /// The program `umadb`, to measure it too.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) umadb: Option<PathBuf>,

    /// The program `tephra-server`, to measure it too.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) tephra: Option<PathBuf>,

    /// How long each cell is measured, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 6.0)]
    pub(crate) seconds: f64,

    /// How many events the reads find.
    #[arg(long, value_name = "COUNT", default_value_t = 500_000)]
    pub(crate) events: u64,

    /// A look instead of a measurement: 1 second per cell and 100,000 events.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Only these cells.
    #[arg(long, value_name = "CELLS", value_enum, value_delimiter = ',')]
    pub(crate) cells: Vec<Cell>,

    /// Leaves out Trefoil itself.
    #[arg(long)]
    pub(crate) only_peers: bool,

    /// Prints one JSON document instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cell {
    /// Conditional appends of one event, 1 client.
    #[value(name = "append-1")]
    Append1,
    /// Conditional appends of one event, 16 clients.
    #[value(name = "append-16")]
    Append16,
    /// Conditional appends of one event, 64 clients.
    #[value(name = "append-64")]
    Append64,
    /// Conditional appends of 64 events, 16 clients.
    #[value(name = "batch-64")]
    Batch64,
    /// Unconditional appends of 1000 events, 1 client.
    #[value(name = "batch-1000")]
    Batch1000,
    /// Reads of all events of an entity, 16 clients.
    EntityReads,
    /// Reads of all events.
    Scan,
    /// The last event of a type that occurs once.
    RareType,
    /// A tag on half of all events and a tag on 20 of them.
    HotAndRare,
    /// The first answer after a kill.
    Ready,
    /// What queries and conditions cost as the log grows.
    Growth,
    /// Events with ten tags beside events with one.
    Tags,
}

/// What all cells need.
struct Bench {
    arguments: Arguments,
    /// The stores, Trefoil last.
    installed: Vec<Installed>,
    /// Trefoil over RESP, for appends.
    resp: Option<Installed>,
    bodies: Bodies,
    time: Duration,
    events: u64,
    progress: ProgressBar,
}

const UMADB: &str = "UmaDB";
const TEPHRA: &str = "Tephra";

/// What Trefoil aims for in a cell.
#[derive(Debug, Clone, Copy)]
enum Aim {
    TimesUmadb(f64),
    TimesTephra(f64),
    /// Times the better one of the two.
    TimesBetter(f64),
    /// The figure itself.
    AtMost(f64),
}

impl Bench {
    fn new(arguments: Arguments) -> Result<Self> {
        let (seconds, events) = if arguments.quick {
            (1.0, 100_000)
        } else {
            (arguments.seconds, arguments.events)
        };
        ensure!(
            seconds > 0.0 && seconds <= 3600.0,
            "--seconds must be above 0 and at most 3600"
        );
        ensure!(
            events > 0 && events.is_multiple_of(loaded::EVENTS_STEP),
            "--events must be a multiple of {}",
            loaded::EVENTS_STEP
        );
        let installed = installed(&arguments)?;
        let progress = ProgressBar::new_spinner();
        progress.enable_steady_tick(Duration::from_millis(200));
        Ok(Self {
            resp: installed
                .last()
                .filter(|last| last.system == System::Trefoil)
                .map(Installed::over_resp),
            installed,
            bodies: Bodies::new(),
            time: Duration::from_secs_f64(seconds),
            events,
            progress,
            arguments,
        })
    }

    /// Whether a cell was asked for: all are if none is named.
    fn wants(&self, cell: Cell) -> bool {
        self.arguments.cells.is_empty() || self.arguments.cells.contains(&cell)
    }

    /// Says what is being done.
    fn doing(&self, what: impl Into<String>) {
        self.progress.set_message(what.into());
    }

    /// The rows of stores, one after the other.
    fn each<'a>(
        &self,
        title: &str,
        installed: impl IntoIterator<Item = &'a Installed>,
        row: impl Fn(&Installed) -> Result<Row>,
    ) -> Result<Vec<Row>> {
        let row = |installed: &Installed| {
            self.doing(format!("{title}: {}", installed.system.name()));
            row(installed)
        };
        installed.into_iter().map(row).collect()
    }

    /// Fills in the ratios to what the aim speaks of, and the aim.
    fn compare(&self, mut rows: Vec<Row>, aim: Aim) -> Vec<Row> {
        let figure = |system: System| {
            let row = rows.iter().find(|row| row.system == system.name());
            row.and_then(|row| row.figure)
        };
        let (umadb, tephra) = (figure(System::Umadb), figure(System::Tephra));
        let (base, target) = match aim {
            Aim::TimesUmadb(times) => (umadb, Target::TimesAtLeast(times, UMADB)),
            Aim::TimesTephra(times) => (tephra, Target::TimesAtLeast(times, TEPHRA)),
            Aim::TimesBetter(times) => {
                let better = umadb.into_iter().chain(tephra).reduce(f64::max);
                (better, Target::TimesAtLeast(times, "the better one"))
            }
            Aim::AtMost(bound) => (umadb, Target::AtMost(bound)),
        };
        for row in &mut rows {
            row.ratio = row.figure.zip(base).map(|(figure, base)| figure / base);
        }
        for row in rows.iter_mut().filter(|row| is_trefoil(row)) {
            row.target = Some(target);
            for (peer, name) in [(umadb, UMADB), (tephra, TEPHRA)] {
                if let Some((figure, peer)) = row.figure.zip(peer) {
                    row.note
                        .push_str(&format!(", {:.2}x {name}", figure / peer));
                }
            }
        }
        rows
    }
}

/// Whether a row is one of Trefoil.
fn is_trefoil(row: &Row) -> bool {
    row.system.starts_with(System::Trefoil.name())
}

fn installed(arguments: &Arguments) -> Result<Vec<Installed>> {
    let trefoil = match arguments.only_peers {
        true => None,
        false => Some(arguments.server.program()?),
    };
    let programs = [
        (System::Umadb, arguments.umadb.clone()),
        (System::Tephra, arguments.tephra.clone()),
        (System::Trefoil, trefoil),
    ];
    let given = programs
        .into_iter()
        .filter_map(|(system, program)| program.map(|program| Installed { system, program }));
    Ok(given.collect())
}

/// Runs the measurement and prints the report.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let bench = Bench::new(arguments)?;
    let machine = Machine::this();
    let mut report = Report::new(bench.arguments.json);
    report.line(&machine.text());
    report
        .line("CPU: microseconds of the server per event or request; in the note, of the client.");
    appends::run(&bench, &mut report)?;
    loaded::run(&bench, &mut report)?;
    growth::run(&bench, &mut report)?;
    tags::run(&bench, &mut report)?;
    bench.progress.finish_and_clear();
    let context = json!({
        "machine": machine.json(),
        "secondsPerCell": bench.time.as_secs_f64(),
        "events": bench.events,
    });
    report.finish(&context);
    Ok(())
}
