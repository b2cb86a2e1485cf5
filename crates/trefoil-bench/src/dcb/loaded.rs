//! Reads of a store that holds many events, and appends to it.

use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use trefoil_grpc::Query;

use super::appends::{self, Shape, append};
use super::asking::{Asking, Expected, read, read_last};
use super::connection::Request;
use super::events::{ENTITIES, entity_tag, query};
use super::history::{EVEN_TAG, History, Plan, RARE_TAG, RARE_TYPE};
use super::load::{Client, Clients, Until};
use super::server::Server;
use super::{Bench, Cell, Entry, TEPHRA, UMADB, aim, elsewhere, ready};
use crate::outcome::{Figure, Outcome};
use crate::report::{Report, Target};

const READERS: usize = 16;
/// How many events have the rare tag.
const RARE_EVENTS: u64 = 20;
/// The number of events must be a multiple of this, so that all entities have equally many.
pub(super) const EVENTS_STEP: u64 = 20_000;

/// Those that change nothing come first.
const CELLS: [Cell; 8] = [
    Cell::EntityReads,
    Cell::Scan,
    Cell::RareType,
    Cell::HotAndRare,
    Cell::Ready,
    Cell::ColdReads,
    Cell::TakeOver,
    Cell::LoadedAppend,
];

/// A store with many events, and the last known position of each entity.
pub(super) struct Loaded {
    pub(super) server: Server,
    known: Vec<u64>,
}

pub(super) fn run(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    if !CELLS.iter().any(|cell| bench.wants(*cell)) {
        return Ok(());
    }
    let stores = bench.stores.iter();
    let loaded: Result<Vec<Loaded>> = stores
        .map(|store| {
            bench.doing(format!("loading {}", store.name));
            load(bench, Server::start(store, &bench.options.dir)?)
        })
        .collect();
    let mut loaded = loaded?;
    for cell in CELLS.into_iter().filter(|cell| bench.wants(*cell)) {
        match cell {
            Cell::Ready => ready::run(bench, &mut loaded, report)?,
            Cell::ColdReads => elsewhere::cold_reads(bench, &mut loaded, report)?,
            Cell::TakeOver => elsewhere::take_over(bench, &mut loaded, report)?,
            _ => measure_cell(bench, &mut loaded, cell, report)?,
        }
    }
    let mut servers = loaded.iter_mut().map(|loaded| &mut loaded.server);
    servers.try_for_each(|server| server.running.check())
}

fn measure_cell(
    bench: &Bench<'_>,
    loaded: &mut [Loaded],
    cell: Cell,
    report: &mut Report,
) -> Result<()> {
    let title = title(cell, bench.events);
    let (unit, figure) = match cell {
        Cell::RareType | Cell::HotAndRare => ("requests/s", Figure::RequestsPerSecond),
        _ => ("events/s", Figure::UnitsPerSecond),
    };
    let mut rows = bench.rows(&title, bench.entries(), figure, |entry| {
        measure(bench, &mut loaded[entry.store], entry, cell)
    })?;
    aim(&mut rows, &targets(cell));
    report.table(&title, unit, rows);
    Ok(())
}

fn title(cell: Cell, events: u64) -> String {
    let per_entity = events / ENTITIES as u64;
    match cell {
        Cell::EntityReads => {
            format!("Reads of the {per_entity} events of an entity, {READERS} readers")
        }
        Cell::Scan => format!("Reads of all {events} events, one reader"),
        Cell::RareType => format!("Last event of a type that occurs once in {events} events"),
        Cell::HotAndRare => {
            format!("A tag on half of {events} events AND a tag on {RARE_EVENTS} of them")
        }
        _ => format!("{}, after {events} events", LOADED_SHAPE.title()),
    }
}

fn targets(cell: Cell) -> Vec<Target> {
    match cell {
        Cell::EntityReads => vec![Target::Times(1.5, &[UMADB, TEPHRA])],
        Cell::Scan => vec![Target::Times(1.0, &[UMADB, TEPHRA])],
        Cell::RareType => vec![Target::Times(100.0, &[TEPHRA])],
        Cell::HotAndRare => vec![Target::Times(5.0, &[TEPHRA])],
        _ => appends::targets(LOADED_SHAPE),
    }
}

const LOADED_SHAPE: Shape = Shape::conditional(64, 1);

fn load(bench: &Bench<'_>, server: Server) -> Result<Loaded> {
    let plan = Plan {
        rare_type_at: bench.events / 100,
        rare_tag_every: bench.events / RARE_EVENTS,
        spread_over: &[],
    };
    let mut history = History::new(&bench.bodies, plan);
    let requests = history.requests_up_to(bench.events);
    let leanest = server.store.system.leanest();
    Clients::connect(&server, leanest, [&mut history])?.run(Until {
        time: Duration::MAX,
        requests,
    })?;
    server.running.settle();
    let known = history.last.iter().map(|last| last.position).collect();
    Ok(Loaded { server, known })
}

fn measure(bench: &Bench<'_>, loaded: &mut Loaded, entry: Entry, cell: Cell) -> Result<Outcome> {
    let server = &loaded.server;
    match cell {
        Cell::EntityReads => {
            let readers = (0..READERS).map(|reader| entity_reader(bench, reader as u64));
            Clients::connect(server, entry.driver, readers)?.measure(bench.time)
        }
        Cell::Scan => {
            let all = || read(Query::default());
            ask(bench, server, entry, all, bench.events)
        }
        Cell::RareType => {
            let last_of_type = || read_last(query([RARE_TYPE], []));
            ask(bench, server, entry, last_of_type, 1)
        }
        Cell::HotAndRare => {
            let hot_and_rare = || read(query([], [EVEN_TAG, RARE_TAG]));
            ask(bench, server, entry, hot_and_rare, RARE_EVENTS)
        }
        _ => append(bench, server, entry, LOADED_SHAPE, &mut loaded.known),
    }
}

fn ask(
    bench: &Bench<'_>,
    server: &Server,
    entry: Entry,
    make: impl FnMut() -> Request + Send,
    events: u64,
) -> Result<Outcome> {
    let asking = Asking::new(make, Expected::Events(events));
    Clients::connect(server, entry.driver, [asking])?.measure(bench.time)
}

/// A reader of entities, which differ for each seed.
pub(super) fn entity_reader(bench: &Bench<'_>, seed: u64) -> impl Client + use<> {
    let mut random = Rng::with_seed(seed);
    let make = move || read(query([], [&entity_tag(random.usize(..ENTITIES))]));
    Asking::new(make, Expected::Events(bench.events / ENTITIES as u64))
}
