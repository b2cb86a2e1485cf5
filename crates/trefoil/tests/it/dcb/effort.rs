//! What a query or a condition costs follows what there is to find, not how long the log is.

use std::time::{Duration, Instant};

use tempfile::TempDir;
use trefoil::{
    Commit, Condition, Database, NewEvent, Options, Payload, Query, QueryItem, Role, Selection,
};

/// The long log has this many times the events of the short one.
const TIMES: usize = 50;
const SHORT: usize = 2_000;

/// At most this much longer may anything take in the long log; a scan takes [`TIMES`] as long.
const TIMES_MAX: u32 = 10;
/// Times below this are noise.
const NOISE: Duration = Duration::from_micros(20);

/// Twenty rare events early in the log, each of its own kind among many of the common one.
fn log(n_events: usize) -> (TempDir, Database) {
    let directory = TempDir::new().unwrap();
    let options = Options::default().with_tail_events_max(1000);
    let database = Database::open(directory.path(), &options).unwrap();
    let event = |number: usize| {
        let is_rare = number < 200 && number.is_multiple_of(10);
        let kind = if is_rare { "Rare" } else { "Common" };
        let data = Payload::binary(vec![7; 40]);
        let event = NewEvent::without_stream(kind, "")
            .with_data(data)
            .with_tag("hot");
        match is_rare {
            true => event.with_tag("rare"),
            false => event.with_tag(format!("entity:{}", number % 1000)),
        }
    };
    for first in (0..n_events).step_by(1000) {
        let events = (first..first + 1000).map(event);
        database.commit(Commit::new(events)).unwrap();
    }
    database.checkpoint().unwrap();
    (directory, database)
}

/// The shortest of many times, which is the one that nothing else disturbed.
fn shortest(mut act: impl FnMut()) -> Duration {
    let once = |_| {
        let started = Instant::now();
        act();
        started.elapsed()
    };
    (0..200).map(once).min().unwrap()
}

fn kind(name: &str) -> Query {
    QueryItem::any().of_type(name).into()
}

#[test]
fn a_longer_log_makes_no_query_and_no_condition_slower() {
    let (short, long) = (log(SHORT), log(SHORT * TIMES));
    let hot_and_rare = Query::from(QueryItem::any().tagged("hot").tagged("rare"));
    let last_rare = 191;
    type Act = Box<dyn Fn(&Database)>;
    let holds = |condition: Condition| -> Act {
        Box::new(move |database| database.check(std::slice::from_ref(&condition)).unwrap())
    };
    let finds = |read: Selection, n: usize| -> Act {
        Box::new(move |database| assert_eq!(database.read(&read).unwrap().len(), n))
    };
    let acts: Vec<(&str, Act)> = vec![
        ("no such type", holds(Condition::no_match(kind("Never")))),
        (
            "no such tag",
            holds(Condition::no_match(QueryItem::any().tagged("never").into())),
        ),
        (
            "a rare type, after its last event",
            holds(Condition::no_match_after(kind("Rare"), last_rare)),
        ),
        (
            "a rare and a frequent tag, after the last event",
            holds(Condition::no_match_after(hot_and_rare.clone(), last_rare)),
        ),
        (
            "the last of a rare type",
            finds(Selection::query(kind("Rare")).backwards().limit(1), 1),
        ),
        (
            "all of a rare type",
            finds(Selection::query(kind("Rare")), 20),
        ),
        (
            "a rare and a frequent tag, backwards",
            finds(Selection::query(hot_and_rare).backwards(), 20),
        ),
    ];
    for (what, act) in acts {
        let before = shortest(|| act(&short.1)).max(NOISE);
        let after = shortest(|| act(&long.1));
        eprintln!("{what}: {before:?}, {after:?}");
        assert!(
            after <= before * TIMES_MAX,
            "{what}: {before:?} became {after:?}"
        );
    }
}

/// The usual condition, on a type alone and behind its last event, where the type is frequent.
#[test]
fn a_frequent_type_behind_the_head_costs_nothing_more_in_a_long_log() {
    let (short, long) = (log(SHORT), log(SHORT * TIMES));
    let time = |database: &Database| {
        let condition = Condition::no_match_after(kind("Common"), database.head().unwrap());
        shortest(|| database.check(std::slice::from_ref(&condition)).unwrap())
    };
    let (before, after) = (time(&short.1).max(NOISE), time(&long.1));
    assert!(after <= before * TIMES_MAX, "{before:?} became {after:?}");
    let read = Selection::query(QueryItem::any().tagged("hot").tagged("rare").into());
    let explained = long.1.explain(&read).unwrap();
    let lead = explained.items[0]
        .terms
        .iter()
        .find(|term| term.role == Role::Lead);
    assert_eq!(lead.unwrap().names, ["rare"], "{explained:?}");
    assert!(explained.estimate <= 100, "{explained:?}");
}
