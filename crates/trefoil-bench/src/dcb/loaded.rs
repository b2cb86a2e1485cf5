//! Reads of a store that holds many events, and how soon it answers after it was killed.

use std::time::Duration;

use anyhow::{Result, ensure};
use fastrand::Rng;
use trefoil_grpc::Query;

use super::asking::{Asking, Expected, read, read_last};
use super::connection::Request;
use super::events::{ENTITIES, entity_tag, query};
use super::history::{EVEN_TAG, History, Plan, RARE_TAG, RARE_TYPE};
use super::load::{Clients, Until};
use super::server::Server;
use super::{Aim, Bench, Cell};
use crate::report::{Report, Row};

const READERS: usize = 16;
/// How many events have the rare tag.
const RARE_EVENTS: u64 = 20;
/// The number of events must be a multiple of this, so that all entities have equally many.
pub(super) const EVENTS_STEP: u64 = 20_000;
/// How often a store is killed; the median counts.
const RESTARTS: usize = 7;

const CELLS: [Cell; 5] = [
    Cell::EntityReads,
    Cell::Scan,
    Cell::RareType,
    Cell::HotAndRare,
    Cell::Ready,
];

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    if !CELLS.iter().any(|cell| bench.wants(*cell)) {
        return Ok(());
    }
    let mut servers = Vec::new();
    for installed in &bench.installed {
        bench.doing(format!("loading {}", installed.system.name()));
        let server = Server::start(installed, &bench.arguments.dir)?;
        load(bench, &server)?;
        server.settle();
        servers.push(server);
    }
    for cell in CELLS.into_iter().filter(|cell| bench.wants(*cell)) {
        let title = title(cell, bench.events);
        let mut rows = Vec::new();
        for server in &mut servers {
            bench.doing(format!("{title}: {}", server.system().name()));
            rows.push(row(bench, server, cell)?);
        }
        let (unit, aim) = match cell {
            Cell::EntityReads => ("events/s", Aim::TimesBetter(1.5)),
            Cell::Scan => ("events/s", Aim::TimesBetter(1.0)),
            Cell::RareType => ("requests/s", Aim::TimesTephra(100.0)),
            Cell::HotAndRare => ("requests/s", Aim::TimesTephra(5.0)),
            _ => ("ms", Aim::AtMost(100.0)),
        };
        report.table(&title, unit, bench.compare(rows, aim));
    }
    servers.iter_mut().try_for_each(Server::check)
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
        _ => format!("First answer after a kill at {events} events, median of {RESTARTS}"),
    }
}

fn load(bench: &Bench, server: &Server) -> Result<()> {
    let plan = Plan {
        rare_type_at: bench.events / 100,
        rare_tag_every: bench.events / RARE_EVENTS,
        spread_over: &[],
    };
    let history = History::new(&bench.bodies, plan);
    let requests = history.requests_up_to(bench.events);
    let mut clients = Clients::connect(server, [history])?;
    clients.run(Until {
        time: Duration::MAX,
        requests,
    })?;
    Ok(())
}

fn row(bench: &Bench, server: &mut Server, cell: Cell) -> Result<Row> {
    let name = server.system().name();
    let last_of_type = || read_last(query([RARE_TYPE], []));
    let hot_and_rare = || read(query([], [EVEN_TAG, RARE_TAG]));
    match cell {
        Cell::EntityReads => entity_reads(bench, server),
        Cell::Scan => {
            let all = || read(Query::default());
            let found = Expected::Events(bench.events);
            Ok(ask(bench, server, all, found)?.events_row(name))
        }
        Cell::RareType => {
            Ok(ask(bench, server, last_of_type, Expected::Events(1))?.requests_row(name))
        }
        Cell::HotAndRare => {
            let found = Expected::Events(RARE_EVENTS);
            Ok(ask(bench, server, hot_and_rare, found)?.requests_row(name))
        }
        _ => ready(server),
    }
}

fn ask(
    bench: &Bench,
    server: &Server,
    make: impl FnMut() -> Request + Send,
    expected: Expected,
) -> Result<super::load::Outcome> {
    let asking = Asking::new(make, expected);
    Clients::connect(server, [asking])?.measure(bench.time)
}

fn entity_reads(bench: &Bench, server: &Server) -> Result<Row> {
    let expected = Expected::Events(bench.events / ENTITIES as u64);
    let readers = (0..READERS).map(|reader| {
        let mut random = Rng::with_seed(reader as u64);
        let make = move || read(query([], [&entity_tag(random.usize(..ENTITIES))]));
        Asking::new(make, expected)
    });
    let outcome = Clients::connect(server, readers)?.measure(bench.time)?;
    Ok(outcome.events_row(server.system().name()))
}

fn ready(server: &mut Server) -> Result<Row> {
    let mut times = Vec::new();
    for _ in 0..RESTARTS {
        times.push(server.restart()?);
    }
    times.sort();
    ensure!(!times.is_empty(), "no restart was measured");
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let note = format!(
        "{:.0} to {:.0} ms",
        millis(times[0]),
        millis(times[times.len() - 1])
    );
    Ok(Row::new(server.system().name(), millis(times[times.len() / 2])).note(note))
}
