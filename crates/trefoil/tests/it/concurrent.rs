//! Many threads at once: who wins, what readers may see, and what subscribers must see.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use trefoil::{
    Commit, ConsumerGroup, Database, Error, Event, List, NewEvent, Options, Selection, Subscription,
};

/// Small parts, so that the index moves and segments rotate under the readers' feet.
fn small() -> Options {
    Options::default()
        .with_tail_events_max(256)
        .with_segment_bytes_max(64 * 1024)
        .with_plain_segments(1)
}

fn open(options: &Options) -> (TempDir, Database) {
    let directory = TempDir::new().unwrap();
    let database = Database::open(directory.path(), options).unwrap();
    (directory, database)
}

fn event(stream: &str, data: &str) -> NewEvent {
    NewEvent::new(stream, "Happened", data.to_owned())
}

/// Every writer tries every version once; for each version one of them must win.
#[test]
fn of_a_hundred_writers_of_one_version_exactly_one_wins() {
    const WRITERS: usize = 100;
    const VERSIONS: i64 = 20;
    let (_directory, database) = open(&small());
    let barrier = Barrier::new(WRITERS);
    let wins: Vec<Vec<i64>> = thread::scope(|scope| {
        let writer = |number: usize| {
            let (database, barrier) = (&database, &barrier);
            scope.spawn(move || {
                let mut won = Vec::new();
                for expected in -1..VERSIONS - 1 {
                    barrier.wait();
                    let new = event("race-1", &format!(r#"{{"writer":{number}}}"#));
                    match database.commit(Commit::new([new]).expect_version("race-1", expected)) {
                        Ok(committed) => {
                            let at = committed.events[0].stream_position.unwrap();
                            assert_eq!(at as i64, expected + 1);
                            won.push(expected);
                        }
                        Err(Error::VersionConflict {
                            expected: asked,
                            actual,
                            ..
                        }) => {
                            assert_eq!((asked, actual), (expected, expected + 1));
                            assert_eq!(database.version("race-1").unwrap(), Some(actual as u64));
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
                won
            })
        };
        let threads: Vec<_> = (0..WRITERS).map(writer).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut won: Vec<i64> = wins.concat();
    won.sort_unstable();
    assert_eq!(won, (-1..VERSIONS - 1).collect::<Vec<_>>());
    assert_eq!(database.head().unwrap(), VERSIONS as u64);
}

/// What one commit wrote, as its writer was told.
type Answers = Vec<(u64, u64, String)>;

fn write_everywhere(database: &Database, writer: usize, commits: usize) -> Answers {
    let mut answers = Vec::new();
    for number in 0..commits {
        let streams: Vec<String> = (0..1 + number % 3)
            .map(|n| format!("many-{}", (writer + number * 7 + n * 5) % 13))
            .collect();
        let key = format!(r#"{{"writer":{writer},"number":{number}}}"#);
        let events = streams.iter().map(|stream| event(stream, &key));
        let committed = database.commit(Commit::new(events)).unwrap();
        for (appended, stream) in committed.events.iter().zip(streams) {
            answers.push((appended.position, appended.stream_position.unwrap(), stream));
        }
    }
    answers
}

#[test]
fn positions_are_dense_and_streams_gapless_whoever_writes() {
    const WRITERS: usize = 16;
    let (_directory, database) = open(&small());
    let mut answers: Answers = thread::scope(|scope| {
        let spawn = |writer| {
            scope.spawn({
                let database = &database;
                move || write_everywhere(database, writer, 60)
            })
        };
        let threads: Vec<_> = (0..WRITERS).map(spawn).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    answers.sort_unstable();
    let mut next = HashMap::<&str, u64>::new();
    for ((position, stream_position, stream), dense) in answers.iter().zip(1..) {
        assert_eq!(*position, dense);
        let next = next.entry(stream).or_default();
        assert_eq!(*stream_position, *next, "{stream}");
        *next += 1;
    }
    let stored = database.read(&Selection::all()).unwrap();
    let as_stored: Answers = stored
        .iter()
        .map(|e| {
            (
                e.position(),
                e.stream_position().unwrap(),
                e.stream().unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(as_stored, answers);
    let ids: HashSet<_> = stored.iter().map(Event::id).collect();
    assert_eq!(ids.len(), stored.len(), "ids are unique");
    let listed = database.streams(&List::new(usize::MAX)).unwrap();
    for info in listed {
        assert_eq!(info.events, next[info.stream.as_str()], "{}", info.stream);
    }
}

/// Commits of three events for three streams, until told to stop.
fn write_triples(database: &Database, writer: usize, stop: &AtomicBool) -> usize {
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let key = format!(r#"{{"commit":"{writer}/{number}"}}"#);
        let streams = [
            format!("a-{writer}"),
            format!("b-{writer}"),
            "shared-1".to_owned(),
        ];
        database
            .commit(Commit::new(
                streams.iter().map(|stream| event(stream, &key)),
            ))
            .unwrap();
        number += 1;
    }
    number
}

/// A read of everything is dense from 1 and holds whole commits only.
fn assert_prefix_of_commits(events: &[Event]) {
    let mut parts = BTreeMap::<&[u8], usize>::new();
    for (event, dense) in events.iter().zip(1..) {
        assert_eq!(event.position(), dense, "a hole");
        *parts.entry(event.data()).or_default() += 1;
    }
    for (commit, n) in parts {
        assert_eq!(n, 3, "half of {}", String::from_utf8_lossy(commit));
    }
}

#[test]
fn readers_see_whole_commits_and_no_holes_that_fill_in_later() {
    let (_directory, database) = open(&small());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..4 {
            let (database, stop) = (&database, &stop);
            scope.spawn(move || write_triples(database, writer, stop));
        }
        let read_all = || {
            let mut before: Vec<Event> = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let head = database.head().unwrap();
                let events = database.read(&Selection::all()).unwrap();
                assert!(
                    events.len() as u64 >= head,
                    "the head was there before the read"
                );
                assert_prefix_of_commits(&events);
                assert_eq!(events[..before.len()], before[..], "history changed");
                before = events;
            }
        };
        let read_stream = || {
            let mut seen = 0;
            while !stop.load(Ordering::Relaxed) {
                let version = database.version("shared-1").unwrap();
                let events = database.read(&Selection::stream("shared-1")).unwrap();
                for (event, expected) in events.iter().zip(0..) {
                    assert_eq!(event.stream_position(), Some(expected));
                }
                assert!(events.len() >= seen, "the stream became shorter");
                assert!(version.is_none_or(|version| version < events.len() as u64));
                let backwards = database
                    .read(&Selection::category("shared").backwards())
                    .unwrap();
                assert!(backwards.len() >= events.len(), "a later read saw less");
                let tail: Vec<Event> = backwards.into_iter().rev().take(events.len()).collect();
                assert_eq!(tail, events);
                seen = events.len();
            }
        };
        scope.spawn(read_all);
        scope.spawn(read_stream);
        thread::sleep(Duration::from_secs(3));
        stop.store(true, Ordering::Relaxed);
    });
    assert!(database.head().unwrap() > 30, "the writers wrote");
}

/// Follows a subscription until it has delivered everything up to what the head is at the end.
fn follow(mut subscription: Subscription, finished: &AtomicBool) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let last_round = finished.load(Ordering::SeqCst);
        let next = subscription
            .next_timeout(Duration::from_millis(50))
            .unwrap();
        if next.is_empty() && last_round {
            return events;
        }
        events.extend(next);
    }
}

#[test]
fn subscriptions_deliver_exactly_what_a_read_returns_afterwards() {
    let (_directory, database) = open(&small());
    write_everywhere(&database, 99, 200);
    let group =
        |member| Selection::category("many").for_group(ConsumerGroup::new(member, 3).unwrap());
    let reads = [
        Selection::all(),
        Selection::all().from_position(150),
        Selection::category("many"),
        Selection::category("many")
            .of_type("Happened")
            .from_position(77),
        Selection::stream("many-3"),
        Selection::stream("many-3").from_stream_position(5),
        Selection::stream("many-4").from_position(90),
        group(0),
        group(1),
        group(2),
        Selection::category("many").of_type("Never"),
    ];
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        let followers: Vec<_> = reads
            .iter()
            .map(|read| {
                let subscription = database.subscribe(read.clone());
                scope.spawn(|| follow(subscription, &finished))
            })
            .collect();
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let database = &database;
                scope.spawn(move || write_everywhere(database, writer, 150))
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        finished.store(true, Ordering::SeqCst);
        for (follower, read) in followers.into_iter().zip(&reads) {
            let delivered = follower.join().unwrap();
            assert_eq!(delivered, database.read(read).unwrap(), "{read:?}");
        }
    });
}

#[test]
fn a_slow_subscriber_slows_no_writer_and_misses_nothing() {
    const PAUSE: Duration = Duration::from_millis(300);
    let (_directory, database) = open(&small());
    let mut slow = database.subscribe(Selection::all());
    let delivered = Arc::new(AtomicUsize::new(0));
    let (written, subscriber) = (2000usize, Arc::clone(&delivered));
    let started = Instant::now();
    let thread = thread::spawn(move || {
        let mut positions = Vec::new();
        while positions.len() < written {
            let events = slow.next_timeout(Duration::from_secs(30)).unwrap();
            assert!(!events.is_empty(), "nothing came for half a minute");
            positions.extend(events.iter().map(Event::position));
            subscriber.store(positions.len(), Ordering::SeqCst);
            if positions.len() < written {
                thread::sleep(PAUSE);
            }
        }
        positions
    });
    let batch = || Commit::new((0..10).map(|n| event(&format!("slow-{n}"), "{}")));
    for _ in 0..written / 10 {
        database.commit(batch()).unwrap();
    }
    let wrote = started.elapsed();
    let behind = delivered.load(Ordering::SeqCst);
    assert!(behind < written, "the subscriber was meant to be behind");
    assert!(
        wrote < Duration::from_secs(20),
        "200 commits took {wrote:?}"
    );
    let positions = thread.join().unwrap();
    assert_eq!(positions, (1..=written as u64).collect::<Vec<_>>());
}

#[test]
fn a_waiting_subscriber_is_woken_by_a_commit_and_by_the_end() {
    let (_directory, database) = open(&Options::default());
    let mut subscription = database.subscribe(Selection::stream("wake-1"));
    let waiter = thread::spawn(move || {
        let woken = subscription
            .next_timeout(Duration::from_secs(20))
            .map(|events| events.len());
        let begun = Instant::now();
        let ended = loop {
            match subscription.next_timeout(Duration::from_secs(20)) {
                Ok(events) if events.is_empty() && begun.elapsed() < Duration::from_secs(20) => {}
                other => break other,
            }
        };
        (woken, ended.map(|events| events.len()))
    });
    thread::sleep(Duration::from_millis(50));
    let started = Instant::now();
    database
        .commit(Commit::new([event("wake-1", "{}")]))
        .unwrap();
    thread::sleep(Duration::from_millis(300));
    database.close().unwrap();
    let (woken, ended) = waiter.join().unwrap();
    assert_eq!(woken.unwrap(), 1);
    assert!(matches!(ended, Err(Error::Closed(_))), "{ended:?}");
    assert!(started.elapsed() < Duration::from_secs(10), "woken late");
}
