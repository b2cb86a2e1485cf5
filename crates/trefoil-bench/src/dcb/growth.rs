//! What a query and a condition cost as the log grows from 10,000 to a million events.
//!
//! One client asks; matches are equally many at every size. Appends that succeed cost a sync each,
//! so one without a condition stands beside those with one.

use std::time::Duration;

use anyhow::Result;
use trefoil_grpc::{AppendCondition, AppendRequest};

use super::asking::{Asking, Expected, read, read_last};
use super::connection::Request;
use super::events::{Bodies, ENTITIES, condition, entity_tag, query};
use super::history::{EVEN_TAG, History, ODD_TAG, Plan, RARE_TYPE, SPREAD, spread_tag};
use super::load::{Clients, Until};
use super::server::Server;
use super::{Bench, Cell, Entry};
use crate::options::TREFOIL;
use crate::outcome::{Figure, Rounds};
use crate::report::{Report, Row, Target};

const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];
/// The most that a cost may grow while the log grows a hundredfold.
const GROWTH_MAX: f64 = 2.0;
/// So that appends hardly change the size of the log.
const REQUESTS_MAX: u64 = 1000;

/// A question whose cost is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Tag,
    RareType,
    NeverMeeting,
    Unconditional,
    Fresh,
    Stale,
    Unique,
    TypeOnly,
}

impl Question {
    const ALL: [Self; 8] = [
        Self::Tag,
        Self::RareType,
        Self::NeverMeeting,
        Self::Unconditional,
        Self::Fresh,
        Self::Stale,
        Self::Unique,
        Self::TypeOnly,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::Tag => "Read of the 50 events with a tag",
            Self::RareType => "Last event of a type that occurs once",
            Self::NeverMeeting => "Two tags on half of all events each that never meet",
            Self::Unconditional => "Append without a condition",
            Self::Fresh => {
                "Append if there is no event of a type with a tag after the last known one"
            }
            Self::Stale => "Append that is refused: an event of a type with a tag came later",
            Self::Unique => "Append if a tag was never seen",
            Self::TypeOnly => {
                "Append if there is no event of a type after the only one, which is early"
            }
        }
    }
}

pub(super) fn run(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    if !bench.wants(Cell::Growth) {
        return Ok(());
    }
    let mut tables: Vec<Vec<Row>> = vec![Vec::new(); Question::ALL.len()];
    for entry in bench.first_entries() {
        measure(bench, entry, &mut tables)?;
    }
    for (question, mut rows) in Question::ALL.into_iter().zip(tables) {
        judge(question, &mut rows);
        report.table(question.title(), "us, median", rows);
    }
    Ok(())
}

/// Fills in the growth of each store from its first row on.
fn judge(question: Question, rows: &mut [Row]) {
    for of_one in rows.chunks_mut(SIZES.len()) {
        let first = of_one.first().and_then(|row| row.figure);
        for row in of_one.iter_mut() {
            row.ratio = row.figure.zip(first).map(|(figure, first)| figure / first);
        }
        if let Some(row) = of_one.last_mut()
            && row.system.starts_with(&format!("{TREFOIL}, "))
            && question != Question::NeverMeeting
        {
            row.targets.push(Target::RatioAtMost(GROWTH_MAX));
        }
    }
}

fn measure(bench: &Bench<'_>, entry: Entry, tables: &mut [Vec<Row>]) -> Result<()> {
    let plan = Plan {
        rare_type_at: SIZES[0] / 100,
        rare_tag_every: SIZES[0],
        spread_over: &SIZES,
    };
    let name = entry.name;
    let server = Server::start(&bench.stores[entry.store], &bench.options.dir)?;
    let leanest = server.store.system.leanest();
    let mut history = History::new(&bench.bodies, plan);
    for size in SIZES {
        bench.doing(format!("growth: {name}, up to {size} events"));
        let requests = history.requests_up_to(size);
        let until = Until {
            time: Duration::MAX,
            requests,
        };
        Clients::connect(&server, leanest, [&mut history])?.run(until)?;
        server.running.settle();
        for (question, rows) in Question::ALL.into_iter().zip(tables.iter_mut()) {
            bench.doing(format!("{}: {name}, {size} events", question.title()));
            let client = client(question, &bench.bodies, &history, size);
            let mut clients = Clients::connect(&server, entry.driver, [client])?;
            let until = Until {
                time: bench.time / 2,
                requests: REQUESTS_MAX,
            };
            let rounds = Rounds::one(clients.run(until)?);
            let name = format!("{name}, {size} events");
            rows.push(rounds.row(name, Figure::MedianMicroseconds)?);
        }
    }
    Ok(())
}

type Make<'a> = Box<dyn FnMut() -> Request + Send + 'a>;

fn client<'a>(
    question: Question,
    bodies: &'a Bodies,
    history: &'a History<'_>,
    size: u64,
) -> Asking<Make<'a>> {
    let (make, expected): (Make<'a>, Expected) = match question {
        Question::Tag => (
            Box::new(move || read(query([], [&spread_tag(size)]))),
            Expected::Events(SPREAD),
        ),
        Question::RareType => (
            Box::new(|| read_last(query([RARE_TYPE], []))),
            Expected::Events(1),
        ),
        Question::NeverMeeting => (
            Box::new(|| read(query([], [EVEN_TAG, ODD_TAG]))),
            Expected::Events(0),
        ),
        Question::Stale => (appends(question, bodies, history, size), Expected::Refused),
        _ => (appends(question, bodies, history, size), Expected::Appended),
    };
    Asking::new(make, expected)
}

/// Appends of one event, each to another entity: what was appended before changes no condition.
fn appends<'a>(
    question: Question,
    bodies: &'a Bodies,
    history: &'a History<'_>,
    size: u64,
) -> Make<'a> {
    let mut number = 0;
    Box::new(move || {
        // Each question takes entities of its own.
        let entity = number + question as usize * REQUESTS_MAX as usize;
        let unique = format!("unique:{question:?}:{size}:{number}");
        number += 1;
        Request::Append(AppendRequest {
            events: vec![bodies.event(number as u64, vec![entity_tag(entity), unique.clone()])],
            condition: guard(question, history, entity, &unique),
            ..AppendRequest::default()
        })
    })
}

fn guard(
    question: Question,
    history: &History<'_>,
    entity: usize,
    unique: &str,
) -> Option<AppendCondition> {
    let last = history.last[entity % ENTITIES];
    let of_entity = || query([last.event_type], [&entity_tag(entity)]);
    match question {
        Question::Fresh => Some(condition(of_entity(), last.position)),
        Question::Stale => Some(condition(of_entity(), last.position - 1)),
        Question::Unique => Some(AppendCondition {
            fail_if_events_match: Some(query([], [unique])),
            after: None,
        }),
        Question::TypeOnly => Some(condition(query([RARE_TYPE], []), history.rare_position)),
        _ => None,
    }
}
