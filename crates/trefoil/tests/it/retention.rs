//! Retention policies: what is beyond them is removed in the background, and nothing else is.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tempfile::TempDir;
use trefoil::{
    Clock, Commit, Database, Error, ImportedEvent, ManualTime, NamespaceId, Namespaces,
    NamespacesOptions, NewEvent, NewNamespace, Options, RemoveBefore, RetentionPolicy,
    RetentionTarget, Selection, Timestamp,
};

const START: Timestamp = Timestamp(1_700_000_000_000_000_000);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn options(time: &Arc<ManualTime>) -> Options {
    Options::default()
        .with_tail_events_max(64)
        .with_segment_bytes_max(16 * 1024)
        .with_plain_segments(1)
        .with_clock(Clock::new(Arc::clone(time) as _))
}

fn stream(name: &str) -> RetentionTarget {
    RetentionTarget::Stream(name.to_owned())
}

fn category(name: &str) -> RetentionTarget {
    RetentionTarget::Category(name.to_owned())
}

fn max_age(age: Duration) -> RetentionPolicy {
    RetentionPolicy::default().with_max_age(age)
}

fn max_count(count: u64) -> RetentionPolicy {
    RetentionPolicy::default().with_max_count(count)
}

fn write(database: &Database, stream: &str, n: usize) {
    for _ in 0..n {
        let event = NewEvent::new(stream, "Written", "{}");
        database.commit(Commit::new([event])).unwrap();
    }
}

/// The positions of all events that there are.
fn positions(database: &Database) -> Vec<u64> {
    let events = database.read(&Selection::all()).unwrap();
    events.iter().map(|event| event.position()).collect()
}

fn n_events(database: &Database, stream: &str) -> usize {
    database.read(&Selection::stream(stream)).unwrap().len()
}

#[track_caller]
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_policy_that_was_set_is_applied_at_once_and_to_what_follows() {
    let time = ManualTime::new(START);
    let database = Database::in_memory(&options(&time)).unwrap();
    for name in ["a-1", "a-2", "a", "b-1"] {
        write(&database, name, 10);
    }
    database.set_retention(stream("a-2"), max_count(7)).unwrap();
    database.set_retention(category("a"), max_count(4)).unwrap();
    let kept = |names: [&str; 4]| names.map(|name| n_events(&database, name));
    let names = ["a-1", "a-2", "a", "b-1"];
    eventually("what was there is removed", || kept(names) == [4, 7, 4, 10]);
    assert_eq!(database.version("a-1").unwrap(), Some(9));
    write(&database, "a-1", 3);
    write(&database, "a-3", 6);
    time.advance(Duration::from_secs(10));
    let names = ["a-1", "a-3", "a", "b-1"];
    eventually("what follows is removed", || kept(names) == [4, 4, 4, 10]);
    // The stream has no policy of its own any more, so that of the category counts.
    database
        .set_retention(stream("a-2"), RetentionPolicy::default())
        .unwrap();
    eventually("that of the category counts", || {
        n_events(&database, "a-2") == 4
    });
    let listed = database.retention(None, 10).unwrap();
    assert_eq!(listed, [(category("a"), max_count(4))]);
    database
        .set_retention(category("a"), RetentionPolicy::default())
        .unwrap();
    write(&database, "a-1", 10);
    time.advance(Duration::from_secs(60));
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(n_events(&database, "a-1"), 14, "there is no policy");
}

#[test]
fn events_go_when_they_are_too_old_whether_or_not_something_is_written() {
    let time = ManualTime::new(START);
    let directory = TempDir::new().unwrap();
    let database = Database::open(directory.path(), &options(&time)).unwrap();
    database.set_retention(category("a"), max_age(DAY)).unwrap();
    for _ in 0..4 {
        write(&database, "a-1", 2);
        write(&database, "b-1", 1);
        time.advance(DAY / 4);
    }
    assert_eq!(n_events(&database, "a-1"), 8, "none is older than a day");
    time.advance(Duration::from_millis(1));
    eventually("the oldest are gone", || n_events(&database, "a-1") == 6);
    time.advance(DAY / 2);
    eventually("more are gone", || n_events(&database, "a-1") == 2);
    time.advance(DAY);
    eventually("all are gone", || n_events(&database, "a-1") == 0);
    assert_eq!(n_events(&database, "b-1"), 4);
    assert_eq!(database.version("a-1").unwrap(), Some(7));
    let refused = Commit::new([NewEvent::new("a-1", "Written", "{}")]).expect_version("a-1", -1);
    assert!(database.commit(refused).is_err());
    write(&database, "a-1", 1);
    assert_eq!(database.version("a-1").unwrap(), Some(8));
    database.close().unwrap();
    // It goes on after the database was opened again.
    time.advance(2 * DAY);
    let database = Database::open(directory.path(), &options(&time)).unwrap();
    eventually("it goes on", || n_events(&database, "a-1") == 0);
}

#[test]
fn a_stream_whose_positions_have_gaps_keeps_as_many_events() {
    let time = ManualTime::new(START);
    let database = Database::in_memory(&options(&time)).unwrap();
    let imported = |number: u64| ImportedEvent {
        event: NewEvent::new("a-1", "Written", "{}"),
        stream_position: number * 3,
        position: number * 2 + 1,
        time: START,
        tracking: None,
        is_redacted: false,
    };
    let events: Vec<_> = (0..9000).map(imported).collect();
    database.import(events).unwrap();
    database
        .set_retention(stream("a-1"), max_count(5000))
        .unwrap();
    eventually("some are gone", || n_events(&database, "a-1") == 5000);
    let first = database.read(&Selection::stream("a-1").limit(1)).unwrap();
    assert_eq!(first[0].position(), 4000 * 2 + 1);
}

#[test]
fn steps_are_few_for_long_streams_and_short_for_many_streams() {
    let time = ManualTime::new(START);
    let database = Database::in_memory(&Options::default().with_clock(Clock::new(time))).unwrap();
    for _ in 0..20 {
        let events = (0..10_000).map(|_| NewEvent::new("long-1", "Written", "{}"));
        database.commit(Commit::new(events)).unwrap();
    }
    let before = database.info().unwrap().commit;
    database
        .set_retention(stream("long-1"), max_count(10))
        .unwrap();
    eventually("the stream is short", || {
        n_events(&database, "long-1") == 10
    });
    let n_commits = database.info().unwrap().commit - before;
    assert_eq!(n_commits, 2, "that of the policy, and one that removes");
    for number in 0..3000 {
        let event = |_| NewEvent::new(format!("many-{number}"), "Written", "{}");
        database.commit(Commit::new((0..2).map(event))).unwrap();
    }
    let before = database.info().unwrap().commit;
    database
        .set_retention(category("many"), max_count(1))
        .unwrap();
    let many = || database.read(&Selection::category("many")).unwrap().len();
    eventually("each is short", || many() == 3000);
    let n_commits = database.info().unwrap().commit - before;
    assert!((6..=20).contains(&n_commits), "{n_commits} commits");
}

#[test]
fn what_makes_no_sense_is_refused_and_policies_are_counted() {
    let time = ManualTime::new(START);
    let database = Database::in_memory(&options(&time)).unwrap();
    let century = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    for (target, policy, expected) in [
        (
            stream("a-1"),
            max_count(0),
            "maxCount must be from 1 to 9007199254740991 events",
        ),
        (
            stream("a-1"),
            max_age(Duration::ZERO),
            "maxAge must be from 1 to 3153600000 seconds",
        ),
        (
            stream("a-1"),
            max_age(century + DAY),
            "maxAge must be from 1 to 3153600000 seconds",
        ),
        (
            stream("a-1"),
            max_count(u64::MAX),
            "maxCount must be from 1 to 9007199254740991 events",
        ),
        (
            stream(""),
            max_count(1),
            "streamName must be a non-empty string",
        ),
        (
            category(""),
            max_count(1),
            "category must be a non-empty string",
        ),
        (
            category("a-1"),
            max_count(1),
            "there is no category \"a-1\": the name of a category has no dash",
        ),
    ] {
        match database.set_retention(target, policy) {
            Err(Error::Invalid(text)) => assert_eq!(text, expected),
            other => panic!("{other:?}"),
        }
    }
    for number in 0..1000 {
        let target = stream(&format!("a-{number:03}"));
        database.set_retention(target, max_count(1)).unwrap();
    }
    let refused = database.set_retention(category("b"), max_count(1));
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    // One that is there may change, and one that goes makes room.
    database
        .set_retention(stream("a-000"), max_age(century))
        .unwrap();
    database
        .set_retention(stream("a-001"), RetentionPolicy::default())
        .unwrap();
    database.set_retention(category("b"), max_count(1)).unwrap();
    let first = database.retention(None, 2).unwrap();
    assert_eq!(
        first,
        [
            (category("b"), max_count(1)),
            (stream("a-000"), max_age(century))
        ]
    );
    let rest = database.retention(Some(&stream("a-000")), 5000).unwrap();
    assert_eq!((rest.len(), &rest[0].0), (998, &stream("a-002")));
}

/// What must be there, by the rules alone.
#[derive(Default)]
struct Expected {
    /// Position, stream, position in the stream, and time, of what is kept.
    events: Vec<(u64, &'static str, u64, Timestamp)>,
    versions: BTreeMap<&'static str, u64>,
    policies: BTreeMap<RetentionTarget, RetentionPolicy>,
    head: u64,
}

impl Expected {
    fn policy_of(&self, stream_name: &str) -> RetentionPolicy {
        let own = self.policies.get(&stream(stream_name));
        let of_category = stream_name.split('-').next().map(category);
        let of_category = of_category.and_then(|target| self.policies.get(&target));
        own.or(of_category).copied().unwrap_or_default()
    }

    fn write(&mut self, stream: &'static str, time: Timestamp) {
        self.head += 1;
        let next = self.versions.get(stream).map_or(0, |version| version + 1);
        self.versions.insert(stream, next);
        self.events.push((self.head, stream, next, time));
    }

    fn apply_policies(&mut self, now: Timestamp) {
        let streams: Vec<_> = self.versions.keys().copied().collect();
        let before = self.events.clone();
        for name in streams {
            let policy = self.policy_of(name);
            if let Some(age) = policy.max_age {
                let oldest = Timestamp(now.0 - age as i64 * 1_000_000_000);
                let first = before.iter().find(|event| event.3 >= oldest);
                let first = first.map_or(u64::MAX, |event| event.0);
                self.events
                    .retain(|event| event.1 != name || event.0 >= first);
            }
            if let Some(count) = policy.max_count {
                let n = self.events.iter().filter(|event| event.1 == name).count();
                let mut left = n.saturating_sub(count as usize);
                self.events.retain(|event| {
                    let goes = event.1 == name && left > 0;
                    left -= usize::from(goes);
                    !goes
                });
            }
        }
    }
}

fn now(time: &Arc<ManualTime>) -> Timestamp {
    Clock::new(Arc::clone(time) as _).now()
}

/// Waits until what is there is what the policies say.
fn settle(when: &str, database: &Database, time: &Arc<ManualTime>, expected: &mut Expected) {
    write(database, "free", 1);
    expected.write("free", now(time));
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut n_looks = 0;
    loop {
        // Some seconds pass before a pass begins, and again if one was under way.
        if n_looks % 500 == 0 {
            time.advance(Duration::from_secs(20));
            expected.apply_policies(now(time));
        }
        n_looks += 1;
        let (found, policies) = (positions(database), &expected.policies);
        let kept: Vec<u64> = expected.events.iter().map(|event| event.0).collect();
        if found == kept {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "{when}, {policies:?}: {found:?}, not {kept:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    for (name, version) in &expected.versions {
        assert_eq!(database.version(name).unwrap(), Some(*version), "{name}");
    }
    let listed = database.retention(None, 100).unwrap();
    let listed = listed.iter().map(|(target, policy)| (target, policy));
    assert!(listed.eq(&expected.policies), "{when}");
}

/// Anything may happen: what is there in the end is what the rules say.
#[test]
fn whatever_happens_what_is_kept_is_what_the_policies_say() {
    const STREAMS: [&str; 6] = ["a-1", "a-2", "a", "b-1", "b-2", "free"];
    let targets = [stream("a-1"), stream("b-2"), category("a"), category("b")];
    let seed = std::env::var("TREFOIL_TEST_SEED").map_or(7, |seed| seed.parse().unwrap());
    let mut random = Rng::with_seed(seed);
    let time = ManualTime::new(START);
    let directory = TempDir::new().unwrap();
    let mut database = Database::open(directory.path(), &options(&time)).unwrap();
    let mut expected = Expected::default();
    for round in 0..25 {
        let when = format!("round {round} of seed {seed}");
        for _ in 0..random.usize(..30) {
            let name = STREAMS[random.usize(..STREAMS.len())];
            write(&database, name, 1);
            expected.write(name, now(&time));
            if random.u8(..4) == 0 {
                time.advance(Duration::from_secs(random.u64(..100)));
            }
        }
        match random.u8(..10) {
            0..4 => {
                // What the old policy has removed already would depend on chance.
                settle(&when, &database, &time, &mut expected);
                let target = targets[random.usize(..targets.len())].clone();
                let mut policy = RetentionPolicy::default();
                policy.max_age = random.bool().then(|| random.u64(1..2000));
                policy.max_count = random.bool().then(|| random.u64(1..20));
                database.set_retention(target.clone(), policy).unwrap();
                expected.policies.insert(target, policy);
                expected.policies.retain(|_, policy| !policy.is_empty());
            }
            4 => {
                let name = STREAMS[random.usize(..STREAMS.len())];
                let before = random.u64(..expected.head + 2);
                let place = RemoveBefore::Position(before);
                database.truncate(name, place, None).unwrap();
                expected
                    .events
                    .retain(|event| event.1 != name || event.0 >= before);
            }
            5 => database.compact().unwrap(),
            6 => {
                database.close().unwrap();
                database = Database::open(directory.path(), &options(&time)).unwrap();
            }
            7 => {
                database.clear().unwrap();
                let policies = std::mem::take(&mut expected.policies);
                expected = Expected {
                    policies,
                    ..Expected::default()
                };
            }
            _ => time.advance(Duration::from_secs(random.u64(..500))),
        }
        settle(&when, &database, &time, &mut expected);
    }
    let info = database.info().unwrap();
    assert_eq!(info.events, expected.events.len() as u64);
}

fn open_namespaces(directory: &Path, time: &Arc<ManualTime>) -> Namespaces {
    let options = NamespacesOptions::default().with_database(options(time));
    Namespaces::open(directory, options).unwrap()
}

#[test]
fn a_closed_namespace_is_opened_when_events_of_it_are_too_old() {
    let directory = TempDir::new().unwrap();
    let time = ManualTime::new(START);
    let id = NamespaceId::new("tenant").unwrap();
    let namespaces = open_namespaces(directory.path(), &time);
    namespaces.create(&id, NewNamespace::default()).unwrap();
    let database = namespaces.database(&id).unwrap();
    database.set_retention(category("a"), max_age(DAY)).unwrap();
    write(&database, "a-1", 5);
    drop(database);
    namespaces.close().unwrap();

    let namespaces = open_namespaces(directory.path(), &time);
    time.advance(DAY / 2);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(namespaces.stats().removed_events, 0);
    time.advance(DAY);
    eventually("it is opened and they are removed", || {
        namespaces.stats().removed_events == 5
    });
    let database = namespaces.database(&id).unwrap();
    assert_eq!(n_events(&database, "a-1"), 0);
}

#[test]
fn nothing_is_too_old_for_an_hour_after_the_clock_jumped_ahead() {
    let time = ManualTime::new(START);
    let database = Database::in_memory(&options(&time)).unwrap();
    write(&database, "a-1", 10);
    time.set(Timestamp(START.0 + 365 * DAY.as_nanos() as i64));
    let policy = max_age(DAY).with_max_count(6);
    database.set_retention(category("a"), policy).unwrap();
    eventually("there are too many", || n_events(&database, "a-1") == 6);
    time.advance(Duration::from_secs(59 * 60));
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(n_events(&database, "a-1"), 6, "nobody has had the time");
    time.advance(Duration::from_secs(2 * 60));
    eventually("they are too old", || n_events(&database, "a-1") == 0);
}
