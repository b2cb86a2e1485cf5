//! `cargo xtask bench resp`: Redis' data structures over RESP, beside Redis and Valkey.
//!
//! All servers run at the same time and are measured by turns, with the same bytes.

mod goals;
mod operation;
pub(crate) mod requests;
pub(crate) mod server;
pub(crate) mod wire;

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use indicatif::ProgressBar;

use crate::closed_loop::{ALL_DAY, Clients};
use crate::machine::Machine;
use crate::options::{Options, TREFOIL, check_clients};
use crate::outcome::{Figure, by_turns};
use crate::report::{Report, Row, Target};
pub(crate) use operation::Operation;
use requests::{Requests, Sender};
use server::{REDIS, Server, System, VALKEY};
pub(crate) use server::{ask, open};
pub(crate) use wire::put_command;

/// Measures state over RESP, beside `redis-server` and `valkey-server` if they are there.
///
/// Starts them on free ports with new data directories in the same place; Redis and Valkey with
/// `appendonly yes` and `appendfsync always`, so that all have what they answered on disk. Measures
/// SET, GET, HINCRBY, HSET, BITFIELD SET on maps of 50,000 seats, and a seat's reservation as one
/// MULTI/EXEC, of clients that each wait for their answers, one operation at a time and 16; then
/// single reads and reservations of one client, and the memory of each server.
///
/// They are measured by turns, so that a busy moment of the machine harms all. One thread per four
/// cores drives all clients; clients and servers share the machine.
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
    /// Only these systems.
    #[arg(long, value_name = "SYSTEMS", value_enum, value_delimiter = ',')]
    systems: Vec<System>,

    /// How many clients, one cell each.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = [1, 50, 200])]
    clients: Vec<usize>,

    /// How many operations a client sends before it waits, one cell each.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = [1, 16])]
    pipelines: Vec<usize>,

    /// Only these operations.
    #[arg(long, value_name = "OPERATIONS", value_enum, value_delimiter = ',')]
    cells: Vec<Operation>,

    /// Leaves out the goals for one client.
    #[arg(long)]
    no_goals: bool,

    /// Clients of operations that are measured one at a time only.
    #[arg(skip)]
    more_clients: Vec<usize>,
}

impl Selection {
    /// What the summary of all protocols needs.
    pub(crate) fn summary() -> Self {
        Self {
            systems: Vec::new(),
            clients: vec![1, 50],
            pipelines: vec![1, 16],
            // One more fills only Trefoil with events, which would then count as its memory.
            cells: Operation::ALL
                .into_iter()
                .filter(|operation| !operation.has_events())
                .collect(),
            no_goals: true,
            more_clients: vec![16, 64, 256, 1000],
        }
    }
}

/// The most operations a client may have on their way.
const PIPELINE_MAX: usize = 1_000;
/// The clients and the pipeline that write what is read later.
const PREPARING: (usize, usize) = (16, 64);

/// Runs the measurement and prints the report.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { options, selection } = arguments;
    let machine = Machine::this();
    let mut report = Report::new(options.json);
    report.line(&machine.text());
    measure(options, selection, &mut report)?;
    report.finish(&options.context(&machine))
}

/// Measures what is selected.
pub(crate) fn measure(options: &Options, selection: &Selection, report: &mut Report) -> Result<()> {
    options.check()?;
    check_clients(&selection.clients)?;
    let is_possible = |count: &usize| (1..=PIPELINE_MAX).contains(count);
    ensure!(
        selection.pipelines.iter().all(is_possible),
        "--pipelines must be 1 to {PIPELINE_MAX} each"
    );
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(200));
    let mut servers = Server::start_all(options, &selection.systems, report)?;
    report.line("CPU: microseconds of the server and of the clients per operation.");
    progress.set_message("keys");
    for server in &servers {
        send_once(server, &operation::preparation())?;
    }
    let bench = Bench {
        servers: &servers,
        time: options.time(),
        rounds: options.rounds(),
        progress: &progress,
    };
    report.part("State over RESP");
    bench.cells(selection, report)?;
    report.table("Memory after this load", "MiB", memory(&servers));
    if !selection.no_goals {
        report.part("Single operations over RESP");
        goals::run(&bench, report)?;
    }
    let mut servers = servers.iter_mut();
    servers.try_for_each(|server| server.running.check())?;
    progress.finish_and_clear();
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
    Clients::new(connected?)?.run(ALL_DAY, || server.usage())?;
    Ok(())
}

/// What all cells need.
struct Bench<'a> {
    servers: &'a [Server],
    time: Duration,
    rounds: u32,
    progress: &'a ProgressBar,
}

impl Bench<'_> {
    fn cells(&self, selection: &Selection, report: &mut Report) -> Result<()> {
        let cells = &selection.cells;
        let is_wanted = |operation: &Operation| cells.is_empty() || cells.contains(operation);
        // What the reservation without an event reached, to compare the other one with.
        let mut plain = Vec::new();
        for operation in Operation::ALL.into_iter().filter(is_wanted) {
            let requests = operation.requests();
            for shape in shapes(selection, operation) {
                let cell = Cell { operation, shape };
                self.progress.set_message(cell.title());
                let mut rows = self.cell(cell, &requests)?;
                if operation == Operation::Reserve {
                    let trefoil = rows.iter().find(|row| row.system == TREFOIL);
                    plain.push((shape, trefoil.and_then(|row| row.figure)));
                }
                if operation.has_events() {
                    let base = plain.iter().find(|(of, _)| *of == shape);
                    compare_events(&mut rows, base.and_then(|(_, figure)| *figure));
                }
                report.table(&cell.title(), "operations/s", rows);
            }
        }
        Ok(())
    }

    /// Measures the systems that can do it by turns.
    fn cell(&self, cell: Cell, requests: &Requests) -> Result<Vec<Row>> {
        let has_events = cell.operation.has_events();
        let able = |server: &&Server| !has_events || server.system == System::Trefoil;
        let servers: Vec<&Server> = self.servers.iter().filter(able).collect();
        let figure = Figure::UnitsPerSecond;
        let mut rows = self.by_turns(&servers, requests, cell.shape, figure)?;
        for row in rows.iter_mut().filter(|row| row.system == TREFOIL) {
            row.targets.extend(cell.target());
        }
        Ok(rows)
    }

    /// What each of the servers reaches; they take turns.
    fn by_turns(
        &self,
        servers: &[&Server],
        requests: &Requests,
        shape: (usize, usize),
        figure: Figure,
    ) -> Result<Vec<Row>> {
        let (count, pipeline) = shape;
        let mut driven = Vec::new();
        for server in servers {
            let sender = |index| {
                let sender = Sender::endless(requests, index, count, pipeline);
                Ok((server.connect()?, sender))
            };
            let connected: Result<Vec<_>> = (0..count).map(sender).collect();
            let mut clients = Clients::new(connected?)?;
            clients.run(self.time / 8, || server.usage())?;
            driven.push((*server, clients));
        }
        let rounds = by_turns(&mut driven, self.rounds, |(server, clients)| {
            clients.run(self.time, || server.usage())
        })?;
        let rows = servers.iter().zip(rounds);
        rows.map(|(server, rounds)| rounds.row(server.name, figure))
            .collect()
    }
}

/// The clients and pipelines with which an operation is measured.
fn shapes(selection: &Selection, operation: Operation) -> Vec<(usize, usize)> {
    let pipelines = selection.pipelines.iter();
    let pairs = pipelines.flat_map(|pipeline| {
        let clients = selection.clients.iter();
        clients.map(|clients| (*clients, *pipeline))
    });
    let is_first = matches!(
        operation,
        Operation::Set | Operation::Get | Operation::Reserve
    );
    let more = selection.more_clients.iter().filter(|_| is_first);
    pairs.chain(more.map(|clients| (*clients, 1))).collect()
}

/// What is done, by how many clients, in pipelines of how many.
#[derive(Debug, Clone, Copy)]
struct Cell {
    operation: Operation,
    shape: (usize, usize),
}

impl Cell {
    fn title(self) -> String {
        let operation = self.operation.title();
        match self.shape {
            (1, 1) => format!("{operation}, 1 client"),
            (clients, 1) => format!("{operation}, {clients} clients"),
            (1, pipeline) => format!("{operation}, 1 client, pipelines of {pipeline}"),
            (clients, pipeline) => {
                format!("{operation}, {clients} clients, pipelines of {pipeline}")
            }
        }
    }

    /// What Trefoil aims for, most of it beside the better one of Redis and Valkey.
    fn target(self) -> Option<Target> {
        let times = match (self.operation, self.shape) {
            (Operation::Get, (50, 16)) => return Some(Target::AtLeast(1_000_000.0)),
            (Operation::Reserve, (1, 1)) | (Operation::Bitfield, (50, 1)) => 1.2,
            (Operation::Set | Operation::Reserve, (50, 1)) => 1.3,
            (_, (_, 1)) => 1.0,
            _ => return None,
        };
        Some(Target::Times(times, &[REDIS, VALKEY]))
    }
}

/// The share of reservations per second that must be left when each appends an event.
const EVENT_SHARE: f64 = 0.8;

/// Compares reservations that append events with those that do not.
fn compare_events(rows: &mut [Row], plain: Option<f64>) {
    for row in rows {
        row.ratio = row.figure.zip(plain).map(|(with, without)| with / without);
        row.targets = vec![Target::RatioAtLeast(EVENT_SHARE)];
    }
}

/// The most MiB that Trefoil may have then.
const MEMORY_MAX: f64 = 150.0;

fn memory(servers: &[Server]) -> Vec<Row> {
    let row = |server: &Server| {
        server.running.settle();
        let row = server.running.memory_row(server.name);
        match server.name == TREFOIL {
            true => row.target(Target::AtMost(MEMORY_MAX)),
            false => row,
        }
    };
    servers.iter().map(row).collect()
}
