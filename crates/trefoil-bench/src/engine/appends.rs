//! Durable appends in batches of 1, 10, 100 and 1000 to a store that starts empty.

use std::path::Path;

use anyhow::Result;
use trefoil::{NewEvent, Options};

use super::timing::Timing;
use super::{Bench, Cell, Subject, discard};
use crate::fjall_baseline::Fjall;
use crate::raw::RawFile;
use crate::report::{BASELINE, Report, Row, Target};
use crate::system::System;
use crate::trefoil_engine::Trefoil;
use crate::workload::{Workload, encode};

/// The cells: batch and the ratio to fjall to reach.
const CELLS: [(Cell, usize, f64); 4] = [
    (Cell::Append1, 1, 1.2),
    (Cell::Append10, 10, 2.0),
    (Cell::Append100, 100, 4.0),
    (Cell::Append1000, 1000, 6.0),
];

/// About how many events are made ahead, outside the timed section.
const EVENTS_AHEAD: usize = 4096;

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    for (cell, batch, target) in CELLS {
        if bench.wants(cell) {
            let rows = rows(bench, batch, target)?;
            report.table(&format!("Durable appends, batch {batch}"), "events/s", rows);
        }
    }
    Ok(())
}

fn rows(bench: &Bench, batch: usize, target: f64) -> Result<Vec<Row>> {
    let mut rows = vec![raw(bench, batch)?];
    if bench.measures(Subject::Fjall) {
        rows.push(measured(bench, batch, BASELINE, |path| {
            Ok(Box::new(Fjall::open(path)?))
        })?);
    }
    if bench.measures(Subject::Sqlite) {
        rows.push(sqlite(bench, batch)?);
    }
    if bench.measures(Subject::Trefoil) {
        let row = measured(bench, batch, "trefoil", |path| {
            Ok(Box::new(Trefoil::open(path, &Options::default())?))
        })?;
        rows.push(row.target(Target::RatioAtLeast(target)));
    }
    Ok(rows)
}

/// Appends until the time is up.
fn measured(
    bench: &Bench,
    batch: usize,
    name: &str,
    open: impl FnOnce(&Path) -> Result<Box<dyn System>>,
) -> Result<Row> {
    bench.doing(format!("append {batch}: {name}"));
    let directory = bench.fresh(name)?;
    let mut system = open(&directory)?;
    let row = timed(bench, batch, |events| system.append(events))?.row(name);
    drop(system);
    discard(&directory)?;
    Ok(row)
}

fn timed(
    bench: &Bench,
    batch: usize,
    mut append: impl FnMut(&mut Vec<NewEvent>) -> Result<()>,
) -> Result<Timing> {
    let mut workload = Workload::new(&bench.pool);
    let mut timing = Timing::new()?;
    while timing.elapsed < bench.seconds {
        let ahead = EVENTS_AHEAD.div_ceil(batch);
        let mut batches: Vec<_> = (0..ahead).map(|_| workload.batch(batch)).collect();
        timing.stretch(|timing| {
            for events in &mut batches {
                timing.time(batch, || append(events))?;
            }
            Ok(())
        })?;
    }
    Ok(timing)
}

/// The same bytes, already encoded, into one file.
fn raw(bench: &Bench, batch: usize) -> Result<Row> {
    bench.doing(format!("append {batch}: raw"));
    let directory = bench.fresh("raw")?;
    let timing = raw_timing(bench, &directory, batch)?;
    discard(&directory)?;
    Ok(timing
        .row("raw")
        .note("write + fdatasync, preallocated and already written file"))
}

fn raw_timing(bench: &Bench, directory: &Path, batch: usize) -> Result<Timing> {
    let mut file = RawFile::written(directory)?;
    let mut workload = Workload::new(&bench.pool);
    let mut timing = Timing::new()?;
    while timing.elapsed < bench.seconds {
        let ahead = EVENTS_AHEAD.div_ceil(batch);
        let records: Vec<_> = (0..ahead).map(|_| record(&workload.batch(batch))).collect();
        timing.stretch(|timing| {
            for record in &records {
                timing.time(batch, || file.append(record))?;
            }
            Ok(())
        })?;
    }
    Ok(timing)
}

/// The bytes of a batch of events.
pub(super) fn record(events: &[NewEvent]) -> Vec<u8> {
    let mut record = Vec::new();
    for event in events {
        encode(event, 0, 0, 0, &mut record);
    }
    record
}

#[cfg(feature = "baselines")]
fn sqlite(bench: &Bench, batch: usize) -> Result<Row> {
    use crate::sqlite_baseline::Sqlite;
    measured(bench, batch, "sqlite", |path| {
        Ok(Box::new(Sqlite::open(path)?))
    })
}

#[cfg(not(feature = "baselines"))]
fn sqlite(_: &Bench, _: usize) -> Result<Row> {
    Ok(super::sqlite_missing())
}
