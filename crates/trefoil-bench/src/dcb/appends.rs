//! Durable appends to a store that starts empty: of one client to a thousand, in small and in large
//! batches.

use anyhow::{Result, bail};
use fastrand::Rng;
use trefoil_grpc::AppendRequest;

use super::connection::{Answer, Request};
use super::events::{Bodies, ENTITIES, condition, entity_tag, query};
use super::load::{Client, Clients};
use super::server::Server;
use super::{Bench, Cell, Entry, TEPHRA, UMADB, aim};
use crate::outcome::{Figure, Outcome};
use crate::report::{Report, Target};

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
    pub(crate) const fn conditional(clients: usize, batch: usize) -> Self {
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

    pub(crate) fn title(self) -> String {
        let Self { clients, batch, .. } = self;
        let kind = match self.conditional {
            true => "Conditional append",
            false => "Append",
        };
        format!("{kind}, {clients} x {batch}")
    }
}

/// What Trefoil aims for: times UmaDB and times Tephra.
pub(super) fn targets(shape: Shape) -> Vec<Target> {
    let times = match (shape.clients, shape.batch) {
        (1, 1) => [Some(1.8), Some(0.95)],
        (16, 1) => [Some(2.0), Some(0.9)],
        (64, 1) => [Some(1.5), Some(0.8)],
        (16, 64) => [None, Some(1.0)],
        (1, 1000) => [None, Some(1.5)],
        _ => [None, None],
    };
    let peers: [&'static [&'static str]; 2] = [&[UMADB], &[TEPHRA]];
    let targets = times.into_iter().zip(peers);
    let targets = targets.filter_map(|(times, peer)| Some(Target::Times(times?, peer)));
    targets.collect()
}

pub(super) fn run(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let clients = bench.selection.clients.iter();
    let single = clients.map(|clients| (Cell::Append, Shape::conditional(*clients, 1)));
    let batches = [
        (Cell::Batch64, Shape::conditional(16, 64)),
        (Cell::Batch1000, Shape::unconditional(1, 1000, 1)),
    ];
    for (cell, shape) in single.chain(batches) {
        if !bench.wants(cell) {
            continue;
        }
        let title = shape.title();
        let figure = Figure::UnitsPerSecond;
        let mut rows = bench.rows(&title, bench.entries(), figure, |entry| {
            measure(bench, entry, shape)
        })?;
        aim(&mut rows, &targets(shape));
        report.table(&title, "events/s", rows);
    }
    Ok(())
}

/// Appends to an empty store until the time is up.
pub(super) fn measure(bench: &Bench<'_>, entry: Entry, shape: Shape) -> Result<Outcome> {
    let mut server = Server::start(&bench.stores[entry.store], &bench.options.dir)?;
    let outcome = append(bench, &server, entry, shape, &mut vec![0; ENTITIES])?;
    server.running.check()?;
    Ok(outcome)
}

/// Appends until the time is up. `known` has the last known position of each entity.
pub(super) fn append(
    bench: &Bench<'_>,
    server: &Server,
    entry: Entry,
    shape: Shape,
    known: &mut [u64],
) -> Result<Outcome> {
    let appender = |index| Appender::new(&bench.bodies, shape, index, known);
    let mut appenders: Vec<_> = (0..shape.clients).map(appender).collect();
    let outcome =
        Clients::connect(server, entry.driver, appenders.iter_mut())?.measure(bench.time)?;
    for (entity, position) in appenders.iter().flat_map(|appender| &appender.entities) {
        known[*entity] = *position;
    }
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
    fn new(bodies: &'a Bodies, shape: Shape, index: usize, known: &[u64]) -> Self {
        let entities = (index..ENTITIES).step_by(shape.clients);
        Self {
            bodies,
            shape,
            random: Rng::with_seed(index as u64),
            entities: entities.map(|entity| (entity, known[entity])).collect(),
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
