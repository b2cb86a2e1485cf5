//! A bulk load, and what can be measured of a loaded store: reads, size, the time to open.

mod load;
mod reads;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use trefoil::Options;

pub(super) use reads::measure as measure_reads;

use super::{Bench, Cell, discard};
use crate::fjall_baseline::Fjall;
use crate::report::{BASELINE, Report, Row, Target};
#[cfg(feature = "baselines")]
use crate::sqlite_baseline::Sqlite;
use crate::system::{Kind, System};
use crate::trefoil_engine::Trefoil;
use crate::workload::CATEGORY_READ_SPAN;

/// Fewer events leave no stream and no category long enough to be read.
pub(super) const EVENTS_MIN: u64 = 2 * CATEGORY_READ_SPAN;

/// The cache that every store gets for its reads.
const CACHE_BYTES: u64 = 256 * 1024 * 1024;

/// A loaded store that is closed at the moment.
struct Loaded {
    store: Store,
    directory: PathBuf,
    /// Bytes on disk and bytes of the index among them, after compaction and compression.
    bytes: Option<(u64, Option<u64>)>,
}

/// A store and the way it was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    /// In the state that it reaches by itself.
    Fjall,
    /// Loaded with one sync, then compacted by force.
    FjallCompacted,
    #[cfg(feature = "baselines")]
    Sqlite,
    /// With segments that are never compressed.
    TrefoilPlain,
    /// With the defaults, then every full segment compressed.
    TrefoilCompressed,
    /// As above, with ids that the client gave.
    TrefoilClientIds,
}

impl Store {
    fn name(self) -> &'static str {
        match self {
            Self::Fjall => BASELINE,
            Self::FjallCompacted => "fjall, major compaction",
            #[cfg(feature = "baselines")]
            Self::Sqlite => "sqlite",
            Self::TrefoilPlain => "trefoil, plain segments",
            Self::TrefoilCompressed => "trefoil, compressed segments",
            Self::TrefoilClientIds => "trefoil, ids from clients",
        }
    }

    /// The options with which Trefoil is opened after the load.
    fn options(self) -> Options {
        let plain_segments = if self == Self::TrefoilPlain {
            usize::MAX
        } else {
            0
        };
        Options::default()
            .with_plain_segments(plain_segments)
            .with_cache_bytes(CACHE_BYTES)
    }
}

impl Loaded {
    fn open(&self) -> Result<Box<dyn System>> {
        Ok(match self.store {
            Store::Fjall | Store::FjallCompacted => Box::new(Fjall::open(&self.directory)?),
            #[cfg(feature = "baselines")]
            Store::Sqlite => Box::new(Sqlite::open(&self.directory)?),
            _ => Box::new(Trefoil::open(&self.directory, &self.store.options())?),
        })
    }
}

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let cells = [
        Cell::Bulk,
        Cell::StreamReads,
        Cell::CategoryReads,
        Cell::Size,
        Cell::Open,
    ];
    if !cells.into_iter().any(|cell| bench.wants(cell)) {
        return Ok(());
    }
    let loaded = load::run(bench, report)?;
    if bench.wants(Cell::Size) {
        size(bench, &loaded, report);
    }
    if bench.wants(Cell::StreamReads) {
        reads::run(bench, &loaded, Kind::Stream, report)?;
    }
    if bench.wants(Cell::CategoryReads) {
        reads::run(bench, &loaded, Kind::Category, report)?;
    }
    if bench.wants(Cell::Open) {
        open(bench, &loaded, report)?;
    }
    loaded
        .iter()
        .try_for_each(|loaded| discard(&loaded.directory))
}

fn size(bench: &Bench, loaded: &[Loaded], report: &mut Report) {
    let per_event = |bytes: u64| bytes as f64 / bench.events as f64;
    let (mut total, mut index) = (Vec::new(), Vec::new());
    for loaded in loaded {
        let Some((bytes, index_bytes)) = loaded.bytes else {
            continue;
        };
        let mut row = Row::new(loaded.store.name(), per_event(bytes));
        if loaded.store == Store::TrefoilCompressed {
            row = row.target(Target::RatioAtMost(1.0));
        }
        total.push(row);
        let Some(index_bytes) = index_bytes else {
            continue;
        };
        let mut row = Row::new(loaded.store.name(), per_event(index_bytes));
        if loaded.store == Store::TrefoilCompressed {
            row = row.target(Target::AtMost(40.0));
        }
        index.push(row);
    }
    report.table("On disk, compacted and compressed", "bytes/event", total);
    report.table("Index, ids included, compacted", "bytes/event", index);
}

/// How often a store is opened; the median counts.
const OPENINGS: usize = 5;

fn open(bench: &Bench, loaded: &[Loaded], report: &mut Report) -> Result<()> {
    let mut rows = Vec::new();
    for loaded in loaded {
        bench.doing(format!("open: {}", loaded.store.name()));
        let mut times = Vec::new();
        for _ in 0..OPENINGS {
            let begin = Instant::now();
            let system = loaded.open()?;
            times.push(begin.elapsed());
            drop(system);
        }
        times.sort_unstable();
        rows.push(Row::new(loaded.store.name(), millis(times[OPENINGS / 2])));
    }
    if let Some(store) = loaded
        .iter()
        .find(|loaded| loaded.store == Store::TrefoilPlain)
    {
        rows.push(open_with_tail(bench, store)?);
    }
    report.table("Open, warm page cache, median of 5", "ms", rows);
    Ok(())
}

/// Opens a store whose last events are in the log but not yet in the index on disk.
fn open_with_tail(bench: &Bench, loaded: &Loaded) -> Result<Row> {
    load::append_tail(bench, loaded)?;
    let begin = Instant::now();
    let trefoil = Trefoil::open(&loaded.directory, &loaded.store.options())?;
    let elapsed = begin.elapsed();
    let replayed = trefoil.database.recovery().replayed_events;
    let note = format!("{replayed} events read again");
    Ok(Row::new("trefoil, with a tail", millis(elapsed)).note(note))
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
