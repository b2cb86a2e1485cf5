//! The bulk load: the same events into every store, durable at the end, then compacted.

use std::path::Path;

use anyhow::Result;
use trefoil::Options;

use super::super::timing::Timing;
use super::super::{Bench, Subject};
use super::{CACHE_BYTES, Loaded, Store};
use crate::fjall_baseline::Fjall;
use crate::report::{Report, Row, Target};
use crate::system::System;
use crate::trefoil_engine::Trefoil;
use crate::workload::Workload;

/// Events per batch, the same for every store.
const BATCH: usize = 10_000;

/// How many events are appended to be read again when the store is opened.
const TAIL: usize = 100_000;

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<Vec<Loaded>> {
    let (mut rows, mut loaded) = (Vec::new(), Vec::new());
    if bench.measures(Subject::Fjall) {
        for (row, store) in [fjall(bench)?, fjall_with_one_sync(bench)?] {
            rows.push(row);
            loaded.push(store);
        }
    }
    if bench.measures(Subject::Sqlite) {
        sqlite(bench, &mut rows, &mut loaded)?;
    }
    if bench.measures(Subject::Trefoil) {
        for store in [
            Store::TrefoilCompressed,
            Store::TrefoilPlain,
            Store::TrefoilClientIds,
        ] {
            let (row, store) = trefoil(bench, store)?;
            rows.push(row);
            loaded.push(store);
        }
    }
    let title = format!("Bulk load of {} events, batches of {BATCH}", bench.events);
    report.table(&title, "events/s", rows);
    Ok(loaded)
}

/// Appends all events; making them is not timed.
fn append_all(bench: &Bench, workload: &mut Workload, system: &mut dyn System) -> Result<Timing> {
    let mut timing = Timing::new()?;
    while workload.generated() < bench.events {
        let length = (bench.events - workload.generated()).min(BATCH as u64) as usize;
        let mut events = workload.batch(length);
        timing.stretch(|timing| timing.time(length, || system.append(&mut events)))?;
    }
    Ok(timing)
}

fn fjall(bench: &Bench) -> Result<(Row, Loaded)> {
    bench.doing("bulk load: fjall");
    let directory = bench.fresh("fjall")?;
    let mut system = Fjall::open(&directory)?;
    let timing = append_all(bench, &mut Workload::new(&bench.pool), &mut system)?;
    system.settle()?;
    let row = timing.row(Store::Fjall.name()).note("one sync per batch");
    Ok((
        row,
        Loaded {
            store: Store::Fjall,
            directory,
            bytes: Some(system.bytes()),
        },
    ))
}

fn fjall_with_one_sync(bench: &Bench) -> Result<(Row, Loaded)> {
    bench.doing("bulk load: fjall, one sync");
    let directory = bench.fresh("fjall-compacted")?;
    let mut system = Fjall::open(&directory)?.without_sync_per_batch();
    let mut timing = append_all(bench, &mut Workload::new(&bench.pool), &mut system)?;
    timing.extra(|| system.sync())?;
    system.compact()?;
    let store = Store::FjallCompacted;
    let row = timing.row("fjall, one sync at the end");
    Ok((
        row,
        Loaded {
            store,
            directory,
            bytes: Some(system.bytes()),
        },
    ))
}

/// Loads with the defaults or never compressing, up to and including the last checkpoint.
fn trefoil(bench: &Bench, store: Store) -> Result<(Row, Loaded)> {
    bench.doing(format!("bulk load: {}", store.name()));
    let directory = bench.fresh(&store.name().replace([' ', ','], "-"))?;
    let mut workload = Workload::new(&bench.pool);
    if store == Store::TrefoilClientIds {
        workload = workload.with_client_ids();
    }
    let mut options = Options::default().with_cache_bytes(CACHE_BYTES);
    if store == Store::TrefoilPlain {
        options.plain_segments = usize::MAX;
    }
    let mut system = Trefoil::open(&directory, &options)?;
    let mut timing = append_all(bench, &mut workload, &mut system)?;
    timing.extra(|| Ok(system.database.checkpoint()?))?;
    system.close()?;

    let (name, note) = match store {
        Store::TrefoilCompressed => ("trefoil", "incl. last checkpoint; default options"),
        Store::TrefoilPlain => ("trefoil, never compressing", "incl. last checkpoint"),
        _ => (store.name(), "incl. last checkpoint; default options"),
    };
    let mut row = timing.row(name).note(note);
    if store == Store::TrefoilCompressed {
        row = row.target(Target::RatioAtLeast(12.0));
    }
    let bytes = compacted_bytes(&directory, &store.options())?;
    Ok((
        row,
        Loaded {
            store,
            directory,
            bytes: Some(bytes),
        },
    ))
}

/// Merges the index and compresses what may be compressed.
fn compacted_bytes(directory: &Path, options: &Options) -> Result<(u64, Option<u64>)> {
    let system = Trefoil::open(directory, options)?;
    system.database.compact()?;
    let bytes = system.bytes()?;
    system.close()?;
    Ok(bytes)
}

/// Appends events and closes without a checkpoint.
pub(super) fn append_tail(bench: &Bench, loaded: &Loaded) -> Result<()> {
    let mut system = Trefoil::open(&loaded.directory, &loaded.store.options())?;
    let mut workload = Workload::new(&bench.pool);
    for _ in 0..TAIL / BATCH {
        system.append(&mut workload.batch(BATCH))?;
    }
    system.close()
}

#[cfg(feature = "baselines")]
fn sqlite(bench: &Bench, rows: &mut Vec<Row>, loaded: &mut Vec<Loaded>) -> Result<()> {
    use crate::sqlite_baseline::Sqlite;
    bench.doing("bulk load: sqlite");
    let directory = bench.fresh("sqlite")?;
    let mut system = Sqlite::open(&directory)?;
    let timing = append_all(bench, &mut Workload::new(&bench.pool), &mut system)?;
    system.settle()?;
    let file = std::fs::metadata(directory.join("events.db"))?.len();
    rows.push(timing.row("sqlite").note("no tag index"));
    loaded.push(Loaded {
        store: Store::Sqlite,
        directory,
        bytes: Some((file, None)),
    });
    Ok(())
}

#[cfg(not(feature = "baselines"))]
fn sqlite(_: &Bench, rows: &mut Vec<Row>, _: &mut Vec<Loaded>) -> Result<()> {
    rows.push(super::super::sqlite_missing());
    Ok(())
}
