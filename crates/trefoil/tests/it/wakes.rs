//! Who is woken by a commit: those it concerns and nobody else, and none of them is forgotten.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_core::Stream as _;
use trefoil::{
    Commit, ConsumerGroup, Database, Error, Event, ImportedEvent, NewEvent, Options, Query,
    QueryItem, RemoveBefore, Selection, Source, Subscription, Timestamp,
};

use crate::waiting::waker_of_this_thread;

/// So long is waited for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

const NOTHING: [u64; 0] = [];

fn open() -> Database {
    Database::in_memory(&Options::default()).unwrap()
}

fn item() -> QueryItem {
    QueryItem::any()
}

fn new(stream: &str, event_type: &str, tags: &[&str]) -> NewEvent {
    let event = match stream {
        "" => NewEvent::without_stream(event_type, "{}"),
        _ => NewEvent::new(stream, event_type, "{}"),
    };
    tags.iter().fold(event, |event, tag| event.with_tag(*tag))
}

fn write(database: &Database, stream: &str, event_type: &str, tags: &[&str]) -> u64 {
    let commit = Commit::new([new(stream, event_type, tags)]);
    database.commit(commit).unwrap().events[0].position
}

/// Lets a subscription read all there is, so that it waits.
fn settle(subscription: &mut Subscription) -> Vec<u64> {
    let mut positions = Vec::new();
    loop {
        let events = subscription.next_timeout(Duration::ZERO).unwrap();
        if events.is_empty() {
            return positions;
        }
        positions.extend(events.iter().map(Event::position));
    }
}

fn wait_for_one(subscription: &mut Subscription) -> Vec<u64> {
    let events = subscription.next_timeout(PATIENCE).unwrap();
    events.iter().map(Event::position).collect()
}

/// Returns a subscription that waits and is never told of anything.
fn idle(database: &Database) -> Subscription {
    let mut idle = database.subscribe(Selection::category("idle"));
    assert_eq!(settle(&mut idle), NOTHING);
    idle
}

/// Returns how many were woken, once all have been told of everything: that is done after a commit was
/// answered, and one that waits knows how far it has come.
fn wakes(database: &Database, idle: &Subscription) -> u64 {
    let (head, began) = (database.head().unwrap(), Instant::now());
    while idle.position() < head {
        assert!(began.elapsed() < PATIENCE, "nobody was told");
        thread::yield_now();
    }
    database.stats().unwrap().wakes
}

fn group(member: u64) -> Selection {
    Selection::category("order").for_group(ConsumerGroup::new(member, 3).unwrap())
}

#[test]
fn a_commit_that_concerns_nobody_wakes_nobody() {
    let database = open();
    let idle = idle(&database);
    let others = (0..50).flat_map(|n| {
        let (tag, name) = (format!("order:{n}"), format!("other{n}"));
        let tags = item().tagged("tenant").tagged(&tag);
        [
            Selection::category(&name),
            Selection::stream(format!("order-1+{n}")),
            Selection::all().of_type(&name),
            Selection::all().correlated_with(&name),
            Selection::query(tags.into()),
            Selection::query(Query::from(item().of_type("Placed").tagged(&tag))),
            Selection::category("order").of_type(&name),
            Selection::category("order").matching(item().of_type(&name).into()),
        ]
    });
    let mut others: Vec<Subscription> = others.map(|read| database.subscribe(read)).collect();
    let mut wanted = database.subscribe(Selection::query(item().tagged("order:x").into()));
    for subscription in others.iter_mut().chain([&mut wanted]) {
        assert_eq!(settle(subscription), NOTHING);
    }
    for _ in 0..100 {
        write(&database, "order-1", "Placed", &["tenant"]);
        write(&database, "", "Placed", &["tenant"]);
    }
    assert_eq!(wakes(&database, &idle), 0);
    let position = write(&database, "order-1", "Placed", &["tenant", "order:x"]);
    assert_eq!(wait_for_one(&mut wanted), [position]);
    assert_eq!(wakes(&database, &idle), 1);
    // All the others know by now that nothing was for them.
    for subscription in &mut others {
        assert_eq!(subscription.position(), position);
        assert_eq!(subscription.progress().position(), position);
        assert_eq!(settle(subscription), NOTHING);
    }
    assert_eq!(wakes(&database, &idle), 1);
}

#[test]
fn whom_a_commit_concerns_is_woken_once_for_all_of_it() {
    let database = open();
    let idle = idle(&database);
    let either = item().tagged("a").tagged("b");
    let reads = [
        Selection::all(),
        Selection::stream("order-1"),
        Selection::category("order"),
        Selection::all().of_type("Placed"),
        Selection::all().correlated_with("cart"),
        Selection::query(Query::from(either).or(item().of_type("Placed"))),
        Selection::category("order").matching(item().tagged("b").into()),
    ];
    let mut all = reads.map(|read| database.subscribe(read));
    all.iter_mut()
        .for_each(|one| assert_eq!(settle(one), NOTHING));
    let cart = r#"{"correlationStreamName":"cart-1"}"#;
    let events = (0..5).map(|_| new("order-1", "Placed", &["a", "b"]).with_metadata(cart));
    let commit = Commit::new(events);
    database.commit(commit).unwrap();
    assert_eq!(wakes(&database, &idle), all.len() as u64);
    for subscription in &mut all {
        assert_eq!(wait_for_one(subscription), [1, 2, 3, 4, 5]);
    }
    assert_eq!(wakes(&database, &idle), all.len() as u64);
}

#[test]
fn only_the_member_of_a_group_that_an_event_is_for_is_woken() {
    let database = open();
    let idle = idle(&database);
    let mut members = [0, 1, 2].map(|member| database.subscribe(group(member)));
    members
        .iter_mut()
        .for_each(|one| assert_eq!(settle(one), NOTHING));
    for stream in 0..20 {
        let before = wakes(&database, &idle);
        let position = write(&database, &format!("order-{stream}"), "Placed", &[]);
        let seen: Vec<u64> = members.iter_mut().flat_map(settle).collect();
        assert_eq!(seen, [position]);
        assert_eq!(wakes(&database, &idle), before + 1);
    }
}

#[test]
fn who_is_busy_is_left_alone() {
    let database = open();
    let idle = idle(&database);
    let mut busy = database.subscribe(Selection::category("order"));
    assert_eq!(settle(&mut busy), NOTHING);
    for _ in 0..10 {
        write(&database, "order-1", "Placed", &[]);
    }
    assert_eq!(wakes(&database, &idle), 1);
    // It is far behind, and nobody wakes it while it reads on.
    for _ in 0..1000 {
        write(&database, "order-1", "Placed", &[]);
    }
    let seen = wait_for_one(&mut busy);
    for _ in 0..10 {
        write(&database, "order-1", "Placed", &[]);
    }
    assert_eq!(wakes(&database, &idle), 1);
    let rest = settle(&mut busy);
    assert!(seen.into_iter().chain(rest).eq(1..=1020));
    // Those who are gone are not woken either.
    drop(busy);
    write(&database, "order-1", "Placed", &[]);
    assert_eq!(wakes(&database, &idle), 1);
}

#[test]
fn imports_wake_whom_they_concern_and_jumps_are_no_gap() {
    let database = open();
    let idle = idle(&database);
    let mut wanted = database.subscribe(Selection::category("a"));
    let mut other = database.subscribe(Selection::category("b"));
    for subscription in [&mut wanted, &mut other] {
        assert_eq!(settle(subscription), NOTHING);
    }
    let import = |position: u64, stream: &str, ordinal: u64| {
        let imported = ImportedEvent {
            event: new(stream, "T", &[]),
            stream_position: ordinal,
            position,
            time: Timestamp(1),
            tracking: None,
            is_redacted: false,
        };
        database.import(vec![imported]).unwrap();
    };
    import(1000, "a-1", 7);
    assert_eq!(wait_for_one(&mut wanted), [1000]);
    assert_eq!(wakes(&database, &idle), 1);
    assert_eq!(other.position(), 1000);
    assert_eq!(settle(&mut wanted), NOTHING);
    import(5000, "b-1", 0);
    assert_eq!(wait_for_one(&mut other), [5000]);
    assert_eq!(wakes(&database, &idle), 2);
    assert_eq!(wanted.position(), 5000);
}

#[test]
fn a_stream_that_was_removed_is_followed_on() {
    let database = open();
    write(&database, "order-1", "Placed", &[]);
    let mut wanted = database.subscribe(Selection::stream("order-1"));
    let mut far = database.subscribe(Selection::stream("order-1").from_stream_position(3));
    assert_eq!(settle(&mut wanted), [1]);
    assert_eq!(settle(&mut far), NOTHING);
    database
        .truncate("order-1", RemoveBefore::End, None)
        .unwrap();
    for position in 2..=4 {
        assert_eq!(write(&database, "order-1", "Placed", &[]), position);
        assert_eq!(wait_for_one(&mut wanted), [position]);
    }
    assert_eq!(wait_for_one(&mut far), [4]);
}

#[test]
fn everybody_is_told_when_the_log_ends() {
    for name in ["closed", "cleared", "opened again"] {
        let directory = tempfile::TempDir::new().unwrap();
        let database = Database::open(directory.path(), &Options::default()).unwrap();
        write(&database, "order-1", "Placed", &[]);
        let waiting = AtomicU64::new(0);
        thread::scope(|scope| {
            let wait = |number: usize| {
                let read = Selection::category(format!("other{number}"));
                let mut subscription = database.subscribe(read);
                assert_eq!(settle(&mut subscription), NOTHING);
                waiting.fetch_add(1, Ordering::SeqCst);
                loop {
                    match subscription.next_timeout(PATIENCE) {
                        // It goes on with what was opened again, if it did not look meanwhile.
                        Ok(events) if name == "opened again" => {
                            return Ok(events.len());
                        }
                        Ok(events) => assert!(!events.is_empty(), "{name}: not woken"),
                        Err(error) => return Err(error),
                    }
                }
            };
            let threads: Vec<_> = (0..20).map(|n| scope.spawn(move || wait(n))).collect();
            while waiting.load(Ordering::SeqCst) < 20 {
                thread::yield_now();
            }
            let ended = match name {
                "closed" => database.close(),
                "cleared" => database.clear(),
                _ => database.reopen(),
            };
            ended.unwrap();
            if name == "opened again" {
                for number in 0..20 {
                    write(&database, &format!("other{number}-1"), "T", &[]);
                }
            }
            for thread in threads {
                match thread.join().unwrap() {
                    Ok(n_events) => assert_eq!(n_events, 1, "{name}: a lost event"),
                    Err(error) => assert!(matches!(error, Error::Closed(_)), "{name}: {error}"),
                }
            }
        });
    }
}

const STREAMS: [&str; 6] = ["", "a-1", "a-2", "b-1", "b-2+x", "c-1"];
const TYPES: [&str; 4] = ["S", "T", "U", "V"];
const TAGS: [&str; 6] = ["p", "q", "r", "s", "t", "u"];

fn some<'a>(rng: &mut Rng, names: &[&'a str], n_max: usize) -> Vec<&'a str> {
    let n = rng.usize(..=n_max);
    (0..n).map(|_| names[rng.usize(..names.len())]).collect()
}

fn random_query(rng: &mut Rng) -> Query {
    let n = rng.usize(..4);
    let random_item = |_| {
        let (types, tags) = (some(rng, &TYPES, 2), some(rng, &TAGS, 2));
        let typed = types.into_iter().fold(item(), QueryItem::of_type);
        tags.into_iter().fold(typed, QueryItem::tagged)
    };
    (0..n).map(random_item).collect()
}

fn random_selection(rng: &mut Rng) -> Selection {
    let mut read = match rng.u8(..3) {
        0 => Selection::all(),
        1 => Selection::category(["a", "b", "c"][rng.usize(..3)]),
        _ => Selection::stream(STREAMS[1 + rng.usize(..5)]),
    };
    if rng.bool() {
        read = read.matching(random_query(rng));
    }
    if rng.u8(..4) == 0 {
        read = read.of_type(TYPES[rng.usize(..4)]);
    }
    if rng.u8(..4) == 0 {
        read = read.correlated_with(["x", "y"][rng.usize(..2)]);
    }
    if matches!(read.source, Source::Category(_)) && rng.bool() {
        read = read.for_group(ConsumerGroup::new(rng.u64(..2), 2).unwrap());
    }
    read
}

fn random_commit(rng: &mut Rng) -> Commit {
    let n = 1 + rng.usize(..3);
    let event = |_| {
        let stream = STREAMS[rng.usize(..6)];
        let tags = some(rng, &TAGS, 3);
        let event = new(stream, TYPES[rng.usize(..4)], &tags);
        match rng.u8(..4) {
            0 => event.with_metadata(r#"{"correlationStreamName":"x-1"}"#),
            1 => event.with_metadata(r#"{"correlationStreamName":"y-1"}"#),
            _ => event,
        }
    };
    Commit::new((0..n).map(event).collect::<Vec<_>>())
}

/// What a selection selects, said again in as few words as possible.
fn selects(read: &Selection, event: &Event) -> bool {
    let of_category = |name: &str| {
        let category = event.stream().and_then(|stream| stream.split('-').next());
        category == Some(name)
    };
    let tags: Vec<&str> = event.tags().collect();
    let has = |item: &QueryItem| {
        let is_of_type = |name: &String| name == event.event_type();
        (item.types.is_empty() || item.types.iter().any(is_of_type))
            && item.tags.iter().all(|tag| tags.contains(&tag.as_str()))
    };
    let filter = &read.filter;
    let in_source = match &read.source {
        Source::All => true,
        Source::Category(name) => of_category(name),
        Source::Stream(name) => event.stream() == Some(name),
    };
    let is_typed = filter.event_type.as_deref();
    let correlated = filter.correlation.as_deref();
    in_source
        && (filter.query.items.is_empty() || filter.query.items.iter().any(has))
        && is_typed.is_none_or(|name| name == event.event_type())
        && correlated.is_none_or(|name| event.correlation().as_deref() == Some(name))
}

/// Follows until it has seen everything that was selected up to the end, which is 0 until it is known.
fn follow(database: &Database, mut subscription: Subscription, end: &AtomicU64) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        let events = subscription
            .next_timeout(Duration::from_millis(20))
            .unwrap();
        seen.extend(events.iter().map(Event::position));
        let end = end.load(Ordering::SeqCst);
        let is_done = end > 0 && subscription.position() >= end;
        assert!(subscription.position() <= database.head().unwrap());
        if events.is_empty() && is_done {
            return seen;
        }
    }
}

/// The same, as a stream.
fn follow_stream(mut subscription: Subscription, end: &AtomicU64) -> Vec<u64> {
    let waker = waker_of_this_thread();
    let mut context = Context::from_waker(&waker);
    let mut seen = Vec::new();
    loop {
        match Pin::new(&mut subscription).poll_next(&mut context) {
            Poll::Ready(event) => seen.push(event.unwrap().unwrap().position()),
            Poll::Pending => {
                let end = end.load(Ordering::SeqCst);
                if end > 0 && subscription.position() >= end {
                    return seen;
                }
                thread::park_timeout(Duration::from_millis(20));
            }
        }
    }
}

#[test]
fn nobody_misses_anything_whoever_writes_whatever() {
    const WRITERS: usize = 4;
    const SUBSCRIBERS: usize = 24;
    let seed = std::env::var("TREFOIL_TEST_SEED").map_or_else(|_| 1, |seed| seed.parse().unwrap());
    for round in 0..6 {
        let database = Database::in_memory(&Options::default().with_tail_events_max(256)).unwrap();
        let mut rng = Rng::with_seed(seed + round);
        let reads: Vec<Selection> = (0..SUBSCRIBERS)
            .map(|_| random_selection(&mut rng))
            .collect();
        let end = AtomicU64::new(0);
        let seen: Vec<Vec<u64>> = thread::scope(|scope| {
            let (database, end) = (&database, &end);
            let start = |(number, read): (usize, &Selection)| {
                let subscription = database.subscribe(read.clone());
                scope.spawn(move || match number % 2 {
                    0 => follow(database, subscription, end),
                    _ => follow_stream(subscription, end),
                })
            };
            let followers: Vec<_> = reads.iter().enumerate().map(start).collect();
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| {
                    let mut rng = rng.fork();
                    scope.spawn(move || {
                        for _ in 0..150 {
                            database.commit(random_commit(&mut rng)).unwrap();
                            if rng.u8(..4) == 0 {
                                thread::sleep(Duration::from_micros(rng.u64(..2000)));
                            }
                        }
                    })
                })
                .collect();
            writers
                .into_iter()
                .for_each(|writer| writer.join().unwrap());
            end.store(database.head().unwrap(), Ordering::SeqCst);
            followers
                .into_iter()
                .map(|one| one.join().unwrap())
                .collect()
        });
        let all = database.read(&Selection::all()).unwrap();
        for (read, seen) in reads.iter().zip(seen) {
            let in_group: Vec<u64> = match read.filter.group {
                // Who is a member of a group is the business of another test.
                Some(_) => database
                    .read(read)
                    .unwrap()
                    .iter()
                    .map(Event::position)
                    .collect(),
                None => (1..=all.len() as u64).collect(),
            };
            let expected = all.iter().filter(|event| selects(read, event));
            let expected = expected.map(Event::position);
            let expected: Vec<u64> = expected.filter(|at| in_group.contains(at)).collect();
            assert_eq!(seen, expected, "seed {seed}, round {round}, {read:?}");
        }
    }
}
