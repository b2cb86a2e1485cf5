//! How the cost of an append and of a read changes as one log grows from 100,000 events to many.

use anyhow::{Result, ensure};
use trefoil::Options;

use super::appends::record;
use super::loaded::measure_reads;
use super::timing::Timing;
use super::{Bench, discard};
use crate::raw::RawFile;
use crate::report::{Report, Row, Target};
use crate::system::{Kind, System};
use crate::trefoil_engine::Trefoil;
use crate::workload::Workload;

const POINTS: [u64; 8] = [
    100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000,
];
const BATCH: usize = 1000;
/// How much a cost may grow over the whole curve.
const GROWTH_MAX: f64 = 1.5;
/// How long the writer may wait for anything but its own sync, at p99.9.
const WAIT_MILLIS_MAX: f64 = 50.0;
/// The same streams are read at every point: those that are long enough at the first.
const HOT_STREAMS: usize = 16;
/// How many batches are written raw at each point.
const RAW_BATCHES: usize = 64;

/// The rows of the three tables.
#[derive(Default)]
struct Rows {
    appends: Vec<Row>,
    streams: Vec<Row>,
    categories: Vec<Row>,
}

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let arguments = &bench.arguments;
    ensure!(
        arguments.curve_max >= POINTS[0],
        "--curve-max must be at least {}",
        POINTS[0]
    );
    let compressed = arguments.curve_compressed;
    let plain_segments = if compressed { 0 } else { usize::MAX };
    let options = Options::default().with_plain_segments(plain_segments);
    let directory = bench.fresh("curve")?;
    let mut system = Trefoil::open(&directory, &options)?;
    let mut workload = Workload::new(&bench.pool);
    let mut rows = Rows::default();
    for point in POINTS
        .into_iter()
        .filter(|point| *point <= arguments.curve_max)
    {
        let name = format!("{point} events");
        bench.doing(format!("curve: appending up to {name}"));
        let appended = append_up_to(point, &mut workload, &mut system)?;
        let raw = write_raw(bench)?.micros_per_event();
        let note = format!("raw write + fdatasync then: {raw:.2}");
        rows.appends.push(appended.cost_row(&name).note(note));
        if compressed {
            system.database.compact()?;
        }
        bench.doing(format!("curve: reading at {name}"));
        for (kind, rows) in [
            (Kind::Stream, &mut rows.streams),
            (Kind::Category, &mut rows.categories),
        ] {
            let reads = workload.reads(HOT_STREAMS);
            rows.push(measure_reads(bench, &system, kind, reads)?.cost_row(&name));
        }
    }
    let wait = waits(&system)?;
    system.close()?;
    discard(&directory)?;
    print(rows, wait, compressed, report);
    Ok(())
}

fn append_up_to(point: u64, workload: &mut Workload, system: &mut Trefoil) -> Result<Timing> {
    let mut timing = Timing::new()?;
    while workload.generated() < point {
        let mut events = workload.batch(BATCH);
        timing.stretch(|timing| timing.time(BATCH, || system.append(&mut events)))?;
    }
    Ok(timing)
}

/// Writes the bytes of some batches to a new file as fast as the machine takes them now: some disks
/// become slower the more was written, and some virtual machines the more memory is in use.
fn write_raw(bench: &Bench) -> Result<Timing> {
    let directory = bench.fresh("raw")?;
    let mut file = RawFile::reserved(&directory)?;
    let record = record(&Workload::new(&bench.pool).batch(BATCH));
    let mut timing = Timing::new()?;
    for _ in 0..RAW_BATCHES {
        timing.time(BATCH, || file.append(&record))?;
    }
    discard(&directory)?;
    Ok(timing)
}

fn waits(system: &Trefoil) -> Result<Row> {
    let waits = system.database.stats()?.staging;
    let millis = |fraction| waits.quantile(fraction) as f64 / 1e6;
    let note = format!("p50 {:.3} ms, p99 {:.2} ms", millis(0.5), millis(0.99));
    let row = Row::new("trefoil, p99.9", millis(0.999));
    Ok(row.target(Target::AtMost(WAIT_MILLIS_MAX)).note(note))
}

fn print(rows: Rows, wait: Row, compressed: bool, report: &mut Report) {
    let segments = if compressed { "compressed" } else { "plain" };
    let tables = [
        (
            format!("Durable appends in batches of {BATCH} as the log grows"),
            rows.appends,
        ),
        (
            format!("Warm reads of 100 events of a stream, {segments} segments"),
            rows.streams,
        ),
        (
            format!("Warm reads of 1000 events of a category, {segments} segments"),
            rows.categories,
        ),
    ];
    for (title, rows) in tables {
        report.table(&title, "us/event", growth(rows));
    }
    report.table(
        "What the writer waits for besides its own sync, per group",
        "ms",
        vec![wait],
    );
}

/// Fills in the ratios to the first point.
fn growth(mut rows: Vec<Row>) -> Vec<Row> {
    let first = rows.first().and_then(|row| row.figure).unwrap_or(f64::NAN);
    for row in &mut rows {
        row.ratio = row.figure.map(|figure| figure / first);
    }
    if let Some(last) = rows.last_mut() {
        last.targets.push(Target::RatioAtMost(GROWTH_MAX));
    }
    rows
}
