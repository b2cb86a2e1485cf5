//! `cargo xtask bench http`: the server from outside, in a closed loop of 1 to 1000 clients.
//!
//! A client sends its next request when the last one was answered. The raw limit of the disk is
//! measured in the same run: group commit must lift the writes of many clients above it.

pub(crate) mod client;
mod operation;
mod response;
mod server;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use indicatif::ProgressBar;

use crate::latency::Latencies;
use crate::machine::Machine;
use crate::options::{Options, TREFOIL, check_clients};
use crate::outcome::{Figure, by_turns};
use crate::raw::RawFile;
use crate::report::{Report, Row, Target};
use crate::workload::{Pool, Workload, encode};
use client::{Until, drive};
pub(crate) use client::{ask, get};
use operation::Operation;
pub(crate) use response::parse;
use server::Server;
pub(crate) use server::{post, post_as};

/// Measures the server over HTTP with 1 to 1000 clients that each wait for their answer.
///
/// Starts a server on a free port with a new data directory. Measures single durable writes, reads
/// of 100 events of a stream and of a category, the last event and the version of a stream, with
/// percentiles of latency and the processor time per request. Beside the writes stands the raw
/// limit: append one event to a preallocated file and fdatasync.
///
/// Few threads drive all clients, because client and server share the machine.
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
    /// How many clients, one cell each.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = CLIENTS)]
    clients: Vec<usize>,

    /// Only these operations.
    #[arg(long, value_name = "OPERATIONS", value_enum, value_delimiter = ',')]
    cells: Vec<Operation>,
}

const CLIENTS: [usize; 5] = [1, 16, 64, 256, 1000];
/// At this many clients group commit must have lifted writes above the raw rate by [`LIFT`].
const MANY_CLIENTS: usize = 64;
const LIFT: f64 = 4.0;
const RAW: &str = "raw disk, one writer";

impl Selection {
    /// What the summary of all protocols needs.
    pub(crate) fn summary() -> Self {
        Self {
            clients: CLIENTS.into(),
            cells: vec![Operation::Write, Operation::StreamGet],
        }
    }
}

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
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(200));
    let pool = Pool::new();
    let mut servers = Vec::new();
    for (name, program) in options.trefoils()? {
        let server = Server::start(name, &program, &options.dir)?;
        prepare(&pool, &server)?;
        servers.push(server);
    }
    report.part("Requests over HTTP");
    report.line("CPU: microseconds of the server and of the clients per request.");
    let cells = &selection.cells;
    let wanted = |operation: &Operation| cells.is_empty() || cells.contains(operation);
    for operation in Operation::ALL.into_iter().filter(wanted) {
        for clients in &selection.clients {
            let title = title(operation, *clients);
            progress.set_message(title.clone());
            let mut rows = Vec::new();
            if operation == Operation::Write {
                rows.push(raw_limit(&options.dir, &pool, options.time())?);
            }
            rows.extend(cell(options, &pool, &mut servers, operation, *clients)?);
            report.table(&title, "requests/s", rows);
        }
    }
    let mut servers = servers.iter_mut();
    servers.try_for_each(|server| server.running.check())?;
    progress.finish_and_clear();
    Ok(())
}

fn title(operation: Operation, clients: usize) -> String {
    let plural = if clients == 1 { "client" } else { "clients" };
    format!("{}, {clients} {plural}", operation.title())
}

fn cell(
    options: &Options,
    pool: &Pool,
    servers: &mut [Server],
    operation: Operation,
    clients: usize,
) -> Result<Vec<Row>> {
    let rounds = by_turns(servers, options.rounds(), |server| {
        let (time, requests) = (options.time(), operation.requests(pool, server)?);
        drive(server, clients, &requests, Until::After(time / 8))?;
        drive(server, clients, &requests, Until::After(time))
    })?;
    let rows = servers.iter().zip(rounds).map(|(server, rounds)| {
        let row = rounds.row(server.name, Figure::UnitsPerSecond)?;
        let is_lifted = operation == Operation::Write && clients == MANY_CLIENTS;
        Ok(match is_lifted && server.name == TREFOIL {
            true => row.target(Target::Times(LIFT, &[RAW])),
            false => row,
        })
    });
    rows.collect()
}

/// Writes the events that the reads will find, each exactly once.
fn prepare(pool: &Pool, server: &Server) -> Result<()> {
    let requests = operation::preparation(pool, server);
    drive(server, MANY_CLIENTS, &requests, Until::EachOnce)
        .context("cannot write the events to be read")?;
    Ok(())
}

/// One event at a time into a preallocated, already written file, with fdatasync.
fn raw_limit(directory: &Path, pool: &Pool, time: Duration) -> Result<Row> {
    let directory = tempfile::Builder::new()
        .prefix("trefoil-bench-")
        .tempdir_in(directory)
        .with_context(|| format!("cannot use --dir {}", directory.display()))?;
    let mut file = RawFile::written(directory.path())?;
    let mut records = Vec::new();
    for event in Workload::new(pool).batch(4096) {
        let mut record = Vec::new();
        encode(&event, 0, 0, 0, &mut record);
        records.push(record);
    }
    let mut latencies = Latencies::new()?;
    let (begin, mut appended) = (Instant::now(), 0_u64);
    for record in records.iter().cycle() {
        let before = Instant::now();
        file.append(record)?;
        latencies.record(before.elapsed());
        appended += 1;
        if begin.elapsed() >= time {
            break;
        }
    }
    let rate = appended as f64 / begin.elapsed().as_secs_f64();
    let mut row = Row::new(RAW, rate);
    row.latency = Some(latencies.percentiles());
    Ok(row.note("append one event + fdatasync"))
}
