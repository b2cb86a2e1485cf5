//! `cargo xtask bench http`: the server from outside, in a closed loop of 1, 16 and 64 clients.
//!
//! A client sends its next request when the last one was answered. The raw limit of the disk is
//! measured in the same run: group commit must lift the writes of many clients above it.

pub(crate) mod client;
mod operation;
mod response;
mod server;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use crate::latency::Latencies;
use crate::machine::Machine;
use crate::raw::RawFile;
use crate::report::{Report, Row, Target};
use crate::running::ServerProgram;
use crate::workload::{Pool, Workload, encode};
use client::Until;
use operation::Operation;
use server::Server;
pub(crate) use server::post;

/// Measures the server over HTTP with 1, 16 and 64 clients that each wait for their answer.
///
/// Starts a server on a free port with a new data directory, or uses a running one (`--url`).
/// Measures single durable writes, reads of 100 events of a stream and of a category, the last event
/// and the version of a stream, with percentiles of latency and the CPU time that the server spends
/// per request. Beside the writes stands the raw limit: append one event to a preallocated file and
/// fdatasync.
///
/// Few threads drive all clients, because client and server share the machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// Where to put the data of the server and the file of the raw limit; both are removed.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    pub(crate) dir: PathBuf,

    #[command(flatten)]
    server: ServerProgram,

    /// How long each cell is measured, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 8.0)]
    pub(crate) seconds: f64,

    /// A look instead of a measurement: 1 second per cell.
    #[arg(long)]
    pub(crate) quick: bool,

    /// How many clients, one table row each.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = [1, 16, 64])]
    pub(crate) clients: Vec<usize>,

    /// Only these operations.
    #[arg(long, value_name = "OPERATIONS", value_enum, value_delimiter = ',')]
    pub(crate) cells: Vec<Operation>,

    /// A running server, for example http://localhost:8080; events are written to it.
    #[arg(long, value_name = "URL", requires = "token")]
    pub(crate) url: Option<String>,

    /// The token of a namespace of that server.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "TREFOIL_TOKEN",
        hide_env_values = true
    )]
    pub(crate) token: Option<String>,

    /// Prints one JSON document instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The most clients one run may use.
const CLIENTS_MAX: usize = 10_000;
/// At this many clients group commit must have lifted writes above the raw rate by [`LIFT`].
const MANY_CLIENTS: usize = 64;
const LIFT: f64 = 4.0;

/// Runs the measurement and prints the report.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let time = time_per_cell(&arguments)?;
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(200));

    let machine = Machine::this();
    let mut report = Report::new(arguments.json);
    report.line(&machine.text());
    report.line("CPU: microseconds of the server per request; in the note, of the client.");
    let pool = Pool::new();
    progress.set_message("raw limit");
    let mut raw = raw_limit(&arguments.dir, &pool, time)?;
    progress.set_message("server");
    let server = Server::start_or_use(&arguments)?;
    prepare(&pool, &server)?;
    let cells = arguments.cells;
    let wanted = |operation: &Operation| cells.is_empty() || cells.contains(operation);
    for operation in Operation::ALL.into_iter().filter(wanted) {
        let requests = operation.requests(&pool, &server)?;
        let mut rows = Vec::new();
        for clients in &arguments.clients {
            progress.set_message(format!("{}: {clients} clients", operation.title()));
            rows.push(measure(&server, *clients, time, &requests)?);
        }
        if operation == Operation::Write {
            // Before and after the writes, the better one counts: a busy moment must not lower it.
            let again = raw_limit(&arguments.dir, &pool, time)?;
            if again.figure > raw.figure {
                raw = again;
            }
            compare(&mut rows, &arguments.clients, &raw);
            rows.insert(0, raw.clone());
        }
        rows.push(Row::missing(
            "expected by two key-value designs",
            operation.expected(),
        ));
        report.table(operation.title(), "requests/s", rows);
    }
    server.stop()?;
    progress.finish_and_clear();
    report.finish(&json!({"machine": machine.json(), "secondsPerCell": time.as_secs_f64()}));
    Ok(())
}

/// How long a cell takes, after a check of the numbers that were given.
fn time_per_cell(arguments: &Arguments) -> Result<Duration> {
    let seconds = if arguments.quick {
        1.0
    } else {
        arguments.seconds
    };
    ensure!(
        seconds > 0.0 && seconds <= 3600.0,
        "--seconds must be above 0 and at most 3600"
    );
    let possible = |count: &usize| (1..=CLIENTS_MAX).contains(count);
    ensure!(
        arguments.clients.iter().all(possible),
        "--clients must be 1 to {CLIENTS_MAX} each"
    );
    Ok(Duration::from_secs_f64(seconds))
}

fn measure(server: &Server, clients: usize, time: Duration, requests: &[Vec<u8>]) -> Result<Row> {
    client::drive(server, clients, requests, Until::After(time / 8))?;
    let outcome = client::drive(server, clients, requests, Until::After(time))?;
    let plural = if clients == 1 { "client" } else { "clients" };
    Ok(outcome.row(format!("{clients} {plural}")))
}

/// Fills in the ratios to the raw rate, and the target of the row with many clients.
fn compare(rows: &mut [Row], clients: &[usize], raw: &Row) {
    for (row, clients) in rows.iter_mut().zip(clients) {
        row.ratio = row.figure.zip(raw.figure).map(|(rate, raw)| rate / raw);
        row.target = (*clients == MANY_CLIENTS).then_some(Target::RatioAtLeast(LIFT));
    }
}

/// Writes the events that the reads will find, each exactly once.
fn prepare(pool: &Pool, server: &Server) -> Result<()> {
    let requests = operation::preparation(pool, server);
    client::drive(server, MANY_CLIENTS, &requests, Until::EachOnce)
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
    let mut row = Row::new("raw, one writer", rate).ratio(1.0);
    row.latency = Some(latencies.percentiles());
    Ok(row.note("append one event + fdatasync"))
}
