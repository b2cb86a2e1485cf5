//! `cargo xtask bench resp`: Redis' data structures over RESP, beside Redis itself.
//!
//! Both servers run at the same time and are measured by turns, with the same bytes.

mod goals;
mod operation;
pub(crate) mod requests;
pub(crate) mod server;
pub(crate) mod wire;

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use crate::closed_loop::{ALL_DAY, Clients, Outcome};
use crate::machine::Machine;
use crate::report::{Report, Row, Target};
pub(crate) use operation::Operation;
use requests::{Requests, Sender};
use server::Server;
pub(crate) use server::{Installed, System};

/// Measures state over RESP, beside `redis-server` if it is installed.
///
/// Starts both on free ports with new data directories in the same place; Redis with `appendonly
/// yes` and `appendfsync always`, so that both have what they answered on disk. Measures SET, GET,
/// HINCRBY, BITFIELD SET and a seat's reservation as one MULTI/EXEC with 1, 50 and 200 clients that
/// each wait for their answers, one operation at a time and 16; then single reads and reservations
/// of one client. The ratio is that to Redis.
///
/// The two are measured by turns, so that a busy moment of the machine harms both. One thread per
/// four cores drives all clients; clients and servers share the machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// What is started, where, and how it is measured.
    #[command(flatten)]
    pub(crate) installed: Installed,

    /// How many clients, one table row each.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = [1, 50, 200])]
    pub(crate) clients: Vec<usize>,

    /// How many operations a client sends before it waits, one table each.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = [1, 16])]
    pub(crate) pipelines: Vec<usize>,

    /// Only these operations.
    #[arg(long, value_name = "OPERATIONS", value_enum, value_delimiter = ',')]
    pub(crate) cells: Vec<Operation>,

    /// Leaves out the goals for one client.
    #[arg(long)]
    pub(crate) no_goals: bool,
}

/// The most clients one run may use, and the most operations a client may have on their way.
const CLIENTS_MAX: usize = 10_000;
const PIPELINE_MAX: usize = 1_000;
/// How often the systems take turns in a cell.
const ROUNDS: u32 = 2;
/// The clients and the pipeline that write what is read later.
const PREPARING: (usize, usize) = (16, 64);

/// Runs the measurement and prints the report.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    check(arguments)?;
    let time = arguments.installed.time()?;
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(200));
    let machine = Machine::this();
    let mut servers = arguments.installed.start()?;
    let mut report = Report::new(arguments.installed.json);
    report.line(&machine.text());
    report.line(&arguments.installed.text(&servers));
    report.line("CPU: microseconds of the server per operation; in the note, of the client.");
    progress.set_message("keys");
    for server in &servers {
        send_once(server, &operation::preparation())?;
    }
    let bench = Bench {
        servers: &servers,
        time,
        progress: &progress,
    };
    bench.cells(arguments, &mut report)?;
    if !arguments.no_goals {
        goals::run(&bench, &mut report)?;
    }
    servers.iter_mut().try_for_each(Server::check)?;
    progress.finish_and_clear();
    report.finish(&json!({"machine": machine.json(), "secondsPerCell": time.as_secs_f64()}));
    Ok(())
}

fn check(arguments: &Arguments) -> Result<()> {
    let within = |counts: &[usize], most| counts.iter().all(|count| (1..=most).contains(count));
    ensure!(
        within(&arguments.clients, CLIENTS_MAX),
        "--clients must be 1 to {CLIENTS_MAX} each"
    );
    ensure!(
        within(&arguments.pipelines, PIPELINE_MAX),
        "--pipelines must be 1 to {PIPELINE_MAX} each"
    );
    Ok(())
}

/// Sends every operation once.
fn send_once(server: &Server, requests: &Requests) -> Result<()> {
    let (clients, pipeline) = PREPARING;
    let sender = |index| {
        Ok((
            server.connect()?,
            Sender::once(requests, index, clients, pipeline),
        ))
    };
    let connected: Result<Vec<_>> = (0..clients).map(sender).collect();
    Clients::new(connected?)?.run(ALL_DAY, || server.cpu())?;
    Ok(())
}

/// What all cells need.
struct Bench<'a> {
    servers: &'a [Server],
    time: Duration,
    progress: &'a ProgressBar,
}

impl Bench<'_> {
    fn cells(&self, arguments: &Arguments, report: &mut Report) -> Result<()> {
        let cells = &arguments.cells;
        let is_wanted = |operation: &Operation| cells.is_empty() || cells.contains(operation);
        // What the reservation without an event reached, to compare the other one with.
        let mut plain = Vec::new();
        for operation in Operation::ALL.into_iter().filter(is_wanted) {
            let requests = operation.requests();
            for pipeline in &arguments.pipelines {
                let mut rows = Vec::new();
                for clients in &arguments.clients {
                    let title = format!("{}: {clients} x {pipeline}", operation.title());
                    self.progress.set_message(title);
                    let cell = Cell {
                        operation,
                        clients: *clients,
                        pipeline: *pipeline,
                    };
                    let mut measured = self.cell(cell, &requests)?;
                    if operation == Operation::Reserve {
                        let trefoil = measured.last().and_then(|row| row.figure);
                        plain.push(((*clients, *pipeline), trefoil));
                    }
                    if operation.has_events() {
                        let find = |(of, _): &&(_, _)| *of == (*clients, *pipeline);
                        let base = plain.iter().find(find).and_then(|(_, figure)| *figure);
                        compare_events(&mut measured, base);
                    }
                    rows.append(&mut measured);
                }
                let title = match pipeline {
                    1 => format!("{}, one at a time", operation.title()),
                    _ => format!("{}, pipelines of {pipeline}", operation.title()),
                };
                report.table(&title, "operations/s", rows);
            }
        }
        Ok(())
    }

    /// Measures the systems that can do it by turns.
    fn cell(&self, cell: Cell, requests: &Requests) -> Result<Vec<Row>> {
        let able =
            |server: &&Server| !cell.operation.has_events() || server.system == System::Trefoil;
        let servers: Vec<&Server> = self.servers.iter().filter(able).collect();
        let outcomes = self.by_turns(&servers, requests, cell.clients, cell.pipeline)?;
        let name = |system: System| match cell.clients {
            1 => format!("{}, 1 client", system.name()),
            clients => format!("{}, {clients} clients", system.name()),
        };
        let rows = servers.iter().zip(&outcomes);
        let mut rows: Vec<Row> = rows
            .map(|(server, outcome)| outcome.row(name(server.system)))
            .collect();
        if let [redis, trefoil] = rows.as_mut_slice() {
            redis.ratio = Some(1.0);
            trefoil.ratio = trefoil
                .figure
                .zip(redis.figure)
                .map(|(own, base)| own / base);
            trefoil.target = cell.target();
        }
        Ok(rows)
    }

    /// What each of the servers reaches; they take turns.
    fn by_turns(
        &self,
        servers: &[&Server],
        requests: &Requests,
        clients: usize,
        pipeline: usize,
    ) -> Result<Vec<Outcome>> {
        let mut measured = Vec::new();
        for server in servers {
            let sender = |index| {
                let sender = Sender::endless(requests, index, clients, pipeline);
                Ok((server.connect()?, sender))
            };
            let connected: Result<Vec<_>> = (0..clients).map(sender).collect();
            let mut clients = Clients::new(connected?)?;
            clients.run(self.time / 8, || server.cpu())?;
            measured.push((clients, Outcome::new()?));
        }
        for _ in 0..ROUNDS {
            for (server, (clients, outcome)) in servers.iter().zip(&mut measured) {
                outcome.add(&clients.run(self.time / ROUNDS, || server.cpu())?)?;
            }
        }
        Ok(measured.into_iter().map(|(_, outcome)| outcome).collect())
    }
}

/// Who does what.
#[derive(Debug, Clone, Copy)]
struct Cell {
    operation: Operation,
    clients: usize,
    pipeline: usize,
}

impl Cell {
    /// The ratio to Redis that is aimed for: without pipelines, writes of many clients gain most by
    /// sharing syncs.
    fn target(self) -> Option<Target> {
        let times = match (self.operation.is_write(), self.clients) {
            (false, _) => 0.8,
            (true, 1) => 1.0,
            (true, _) => 1.3,
        };
        (self.pipeline == 1).then_some(Target::RatioAtLeast(times))
    }
}

/// The share of reservations per second that must be left when each appends an event.
const EVENT_SHARE: f64 = 0.8;

/// Compares reservations that append events with those that do not.
fn compare_events(rows: &mut [Row], plain: Option<f64>) {
    for row in rows {
        row.ratio = row.figure.zip(plain).map(|(with, without)| with / without);
        row.target = Some(Target::TimesAtLeast(EVENT_SHARE, "without the event"));
    }
}
