//! `cargo xtask bench engine`: the library in this process beside raw writes, fjall and SQLite.
//!
//! Every cell runs the systems one after the other on the same disk, each in a directory of its
//! own, with the same events. Making events and opening stores is not timed.

mod appends;
mod curve;
mod loaded;
mod timing;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde_json::json;
use tempfile::TempDir;

use crate::machine::Machine;
use crate::report::Report;
use crate::workload::Pool;

/// Measures the library in this process, beside the raw limit of the disk and two baselines.
///
/// Durable appends of about 324 bytes each, two tags, 100,000 streams in 50 categories, in batches
/// of 1, 10, 100 and 1000; a bulk load; warm reads of streams and categories from plain and from
/// compressed segments; bytes on disk; the time to open. The baselines are fjall with six puts per
/// event and one sync per batch, and SQLite (only in a build with `--features baselines`).
///
/// Tables go to standard output, progress to standard error. Compare figures within one run: they
/// depend on the disk and on what else the machine does.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// Where to put the stores under measurement; a directory in it is made and removed.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    pub(crate) dir: PathBuf,

    /// How long each cell is measured, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 8.0)]
    pub(crate) seconds: f64,

    /// How many events the bulk load writes and the reads then find.
    #[arg(long, value_name = "COUNT", default_value_t = 2_000_000)]
    pub(crate) events: u64,

    /// A look instead of a measurement: 1 second per cell and 200,000 events.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Only these cells.
    #[arg(long, value_name = "CELLS", value_enum, value_delimiter = ',')]
    pub(crate) cells: Vec<Cell>,

    /// Only these systems; raw writes are always measured beside appends.
    #[arg(long, value_name = "SYSTEMS", value_enum, value_delimiter = ',')]
    pub(crate) systems: Vec<Subject>,

    /// Measures, instead of the cells, how appends and reads of Trefoil change as the log grows.
    #[arg(long)]
    pub(crate) curve: bool,

    /// The number of events at which the curve ends.
    #[arg(long, value_name = "COUNT", default_value_t = 20_000_000)]
    pub(crate) curve_max: u64,

    /// Compresses segments and merges the index before each point of the curve is read.
    #[arg(long)]
    pub(crate) curve_compressed: bool,

    /// Prints one JSON document instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cell {
    /// Durable appends of one event.
    #[value(name = "append-1")]
    Append1,
    /// Durable appends of 10 events.
    #[value(name = "append-10")]
    Append10,
    /// Durable appends of 100 events.
    #[value(name = "append-100")]
    Append100,
    /// Durable appends of 1000 events.
    #[value(name = "append-1000")]
    Append1000,
    /// The bulk load.
    Bulk,
    /// Warm reads of 100 events of a stream.
    StreamReads,
    /// Warm reads of 1000 events of a category.
    CategoryReads,
    /// Bytes per event on disk and in the index.
    Size,
    /// The time to open a loaded store.
    Open,
}

/// A system under measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// Everything in an LSM tree.
    Fjall,
    /// Everything in a relational table.
    Sqlite,
    /// This database.
    Trefoil,
}

/// What all cells need.
struct Bench {
    directory: TempDir,
    pool: Pool,
    seconds: Duration,
    events: u64,
    arguments: Arguments,
    progress: ProgressBar,
}

impl Bench {
    fn new(arguments: Arguments) -> Result<Self> {
        let seconds = if arguments.quick {
            1.0
        } else {
            arguments.seconds
        };
        ensure!(
            seconds > 0.0 && seconds <= 3600.0,
            "--seconds must be above 0 and at most 3600"
        );
        let events = if arguments.quick {
            200_000
        } else {
            arguments.events
        };
        ensure!(
            events >= loaded::EVENTS_MIN,
            "--events must be at least {}",
            loaded::EVENTS_MIN
        );
        let directory = tempfile::Builder::new()
            .prefix("trefoil-bench-")
            .tempdir_in(&arguments.dir)
            .with_context(|| format!("cannot use --dir {}", arguments.dir.display()))?;
        let progress = ProgressBar::new_spinner();
        progress.enable_steady_tick(Duration::from_millis(200));
        Ok(Self {
            directory,
            pool: Pool::new(),
            seconds: Duration::from_secs_f64(seconds),
            events,
            arguments,
            progress,
        })
    }

    /// Whether a cell was asked for: all are if none is named.
    fn wants(&self, cell: Cell) -> bool {
        self.arguments.cells.is_empty() || self.arguments.cells.contains(&cell)
    }

    /// Whether a system was asked for: all are if none is named.
    fn measures(&self, system: Subject) -> bool {
        self.arguments.systems.is_empty() || self.arguments.systems.contains(&system)
    }

    /// Says what is being done.
    fn doing(&self, what: impl Into<String>) {
        self.progress.set_message(what.into());
    }

    /// A new directory for one store.
    fn fresh(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory.path().join(name);
        std::fs::create_dir(&path)?;
        Ok(path)
    }
}

/// Removes the directory of a store that is no longer needed, so that it does not fill the disk.
fn discard(directory: &Path) -> Result<()> {
    std::fs::remove_dir_all(directory)
        .with_context(|| format!("cannot remove {}", directory.display()))
}

/// What stands where SQLite's figures would.
#[cfg(not(feature = "baselines"))]
fn sqlite_missing() -> crate::report::Row {
    crate::report::Row::missing("sqlite", "not built in: --features baselines")
}

/// Runs the measurement and prints the report.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let bench = Bench::new(arguments)?;
    let machine = Machine::this();
    let mut report = Report::new(bench.arguments.json);
    report.line(&machine.text());
    if bench.arguments.curve {
        curve::run(&bench, &mut report)?;
    } else {
        appends::run(&bench, &mut report)?;
        loaded::run(&bench, &mut report)?;
    }
    bench.progress.finish_and_clear();
    let context = json!({
        "machine": machine.json(),
        "secondsPerCell": bench.seconds.as_secs_f64(),
        "events": bench.events,
    });
    report.finish(&context)
}
