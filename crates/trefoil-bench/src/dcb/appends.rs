//! Durable appends to a store that starts empty: 1, 16 and 64 clients, small and large batches.

use anyhow::{Result, bail};
use fastrand::Rng;
use trefoil_grpc::AppendRequest;

use super::connection::{Answer, Request};
use super::events::{Bodies, ENTITIES, condition, entity_tag, query};
use super::load::{Client, Clients, Outcome};
use super::server::{Installed, Server};
use super::{Aim, Bench, Cell, System, TEPHRA};
use crate::report::{Report, Row, Target};

/// Who appends what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) clients: usize,
    /// Events per append.
    pub(crate) batch: usize,
    /// Whether an append is for one entity, and is refused if that has an event of the type that
    /// comes first in the append after its last known one. Otherwise each event is for any entity.
    pub(crate) conditional: bool,
    /// Tags per event.
    pub(crate) tags: usize,
}

impl Shape {
    const fn conditional(clients: usize, batch: usize) -> Self {
        Self {
            clients,
            batch,
            conditional: true,
            tags: 1,
        }
    }

    pub(crate) const fn unconditional(clients: usize, batch: usize, tags: usize) -> Self {
        Self {
            clients,
            batch,
            conditional: false,
            tags,
        }
    }

    fn title(self) -> String {
        let Self { clients, batch, .. } = self;
        let (client, event) = (plural(clients, "client"), plural(batch, "event"));
        let condition = if self.conditional {
            "each conditional"
        } else {
            "unconditional"
        };
        format!("Durable appends, {clients} {client} x {batch} {event}, {condition}")
    }
}

fn plural(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{word}{ending}")
}

/// The cells, and how many times the events of UmaDB are aimed for.
const CELLS: [(Cell, Shape, f64); 5] = [
    (Cell::Append1, Shape::conditional(1, 1), 2.5),
    (Cell::Append16, Shape::conditional(16, 1), 2.5),
    (Cell::Append64, Shape::conditional(64, 1), 2.5),
    (Cell::Batch64, Shape::conditional(16, 64), 1.5),
    (Cell::Batch1000, Shape::unconditional(1, 1000, 1), 4.0),
];

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    for (cell, shape, times) in CELLS {
        if !bench.wants(cell) {
            continue;
        }
        let installed = bench.installed.iter().chain(&bench.resp);
        let rows = bench.each(&shape.title(), installed, |installed| {
            let outcome = measure(bench, installed, shape)?;
            Ok(outcome.events_row(installed.system.name()))
        })?;
        let mut rows = bench.compare(rows, Aim::TimesUmadb(times));
        aim_over_resp(&mut rows);
        report.table(&shape.title(), "events/s", rows);
    }
    Ok(())
}

/// How many times the events of Tephra are aimed for over RESP, which is about as lean.
const TIMES_TEPHRA: f64 = 1.2;

/// What is reached over RESP is compared with Tephra.
fn aim_over_resp(rows: &mut [Row]) {
    let is = |system: System| move |row: &&mut Row| row.system == system.name();
    let tephra = rows.iter_mut().find(is(System::Tephra));
    let tephra = tephra.and_then(|row| row.figure);
    if let Some(row) = rows.iter_mut().find(is(System::TrefoilResp)) {
        row.ratio = row.figure.zip(tephra).map(|(own, tephra)| own / tephra);
        row.target = Some(Target::TimesAtLeast(TIMES_TEPHRA, TEPHRA));
    }
}

/// Appends to an empty store until the time is up.
pub(crate) fn measure(bench: &Bench, installed: &Installed, shape: Shape) -> Result<Outcome> {
    let mut server = Server::start(installed, &bench.arguments.dir)?;
    let appenders = (0..shape.clients).map(|index| Appender::new(&bench.bodies, shape, index));
    let mut clients = Clients::connect(&server, appenders)?;
    let outcome = clients.measure(bench.time)?;
    drop(clients);
    server.check()?;
    Ok(outcome)
}

/// A client that appends. Each has entities of its own, so no condition fails by a race.
struct Appender<'a> {
    bodies: &'a Bodies,
    shape: Shape,
    random: Rng,
    /// The entities of this client and the last known position of each.
    entities: Vec<(usize, u64)>,
    /// The entity of the append that is on its way.
    current: usize,
}

impl<'a> Appender<'a> {
    fn new(bodies: &'a Bodies, shape: Shape, index: usize) -> Self {
        let entities = (index..ENTITIES).step_by(shape.clients);
        Self {
            bodies,
            shape,
            random: Rng::with_seed(index as u64),
            entities: entities.map(|entity| (entity, 0)).collect(),
            current: 0,
        }
    }

    /// The tag of an entity, and others that are spread as widely.
    fn tags(&mut self, entity: usize) -> Vec<String> {
        let mut tags = vec![entity_tag(entity)];
        for number in 1..self.shape.tags {
            let value = self.random.usize(..ENTITIES);
            tags.push(format!("dimension{number}:{value}"));
        }
        tags
    }
}

impl Client for Appender<'_> {
    fn next(&mut self) -> Request {
        self.current = self.random.usize(..self.entities.len());
        let (entity, after) = self.entities[self.current];
        let mut events = Vec::with_capacity(self.shape.batch);
        for _ in 0..self.shape.batch {
            let entity = if self.shape.conditional {
                entity
            } else {
                self.random.usize(..ENTITIES)
            };
            let tags = self.tags(entity);
            events.push(self.bodies.event(self.random.u64(..), tags));
        }
        let guard = self.shape.conditional.then(|| {
            let query = query([&events[0].event_type], [&events[0].tags[0]]);
            condition(query, after)
        });
        Request::Append(AppendRequest {
            events,
            condition: guard,
            ..AppendRequest::default()
        })
    }

    fn answered(&mut self, answer: Answer) -> Result<u64> {
        let Answer::Appended(position) = answer else {
            bail!("an append whose condition holds was answered with {answer:?}");
        };
        self.entities[self.current].1 = position;
        Ok(self.shape.batch as u64)
    }
}
