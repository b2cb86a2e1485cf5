//! Several nodes over one engine, each with a clock of its own: who answers for a namespace, and who
//! does not any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use trefoil::home::Home as _;
use trefoil::{Database, Error, Selection, Timestamp};

use super::tests::{TestNode, commit, id, pass};
use crate::contract::KvEngine as _;
use crate::memory::{EngineCall, Fate, Fates, MemoryEngine};

const SECOND: Duration = Duration::from_secs(1);

fn is_elsewhere<T>(answer: &trefoil::Result<T>) -> bool {
    matches!(answer, Err(Error::NotOwner { .. }))
}

/// Checks that a database answers nothing at all: reads, refusals, nothing.
#[track_caller]
fn check_silent(database: &Database) {
    let conflict = commit().expect_version("a-1", 99);
    let answers = [
        database.head().map(drop),
        database.last_commit().map(drop),
        database.read(&Selection::all()).map(drop),
        database.version("a-1").map(drop),
        database.info().map(drop),
        database.event_at(1).map(drop),
        database.commit(conflict).map(drop),
    ];
    for answer in answers {
        let is_silent = matches!(answer, Err(Error::NotOwner { .. } | Error::Closed(_)));
        assert!(is_silent, "{answer:?}");
    }
}

/// Two nodes, the first of which owns a namespace with one event.
fn two_nodes() -> (MemoryEngine, TestNode, TestNode, Database) {
    let data = MemoryEngine::default();
    let (first, second) = (TestNode::join(&data, 1), TestNode::join(&data, 2));
    first.home.create(&id("a"), b"text").unwrap();
    let database = first.open(&id("a")).unwrap();
    database.commit(commit()).unwrap();
    (data, first, second, database)
}

#[test]
fn a_namespace_that_is_released_is_anybodys() {
    let (_, first, second, database) = two_nodes();
    pass(&[&first, &second], 10 * SECOND);
    let refused = second.open(&id("a"));
    // What it saw first may have been the last sign of life.
    assert!(is_elsewhere(&refused), "{refused:?}");
    pass(&[&first, &second], 3 * SECOND);
    match second.open(&id("a")) {
        Err(Error::NotOwner { namespace, owner }) => {
            assert_eq!((&*namespace, owner.as_deref()), ("a", Some("node-1")));
        }
        other => panic!("{other:?}"),
    }
    database.close().unwrap();
    let moved = second.open(&id("a")).unwrap();
    assert_eq!(moved.head().unwrap(), 1);
    assert_eq!(moved.commit(commit()).unwrap().position, 2);
    moved.close().unwrap();
    assert_eq!(first.open(&id("a")).unwrap().head().unwrap(), 2);
}

#[test]
fn a_node_that_leaves_hands_everything_over_at_once() {
    let (_, first, second, database) = two_nodes();
    database.close().unwrap();
    first.home.close().unwrap();
    assert_eq!(second.open(&id("a")).unwrap().head().unwrap(), 1);
}

#[test]
fn a_node_whose_clock_is_off_owns_nothing() {
    let data = MemoryEngine::default();
    let first = TestNode::join(&data, 1);
    let clock = |node: &TestNode, ahead: i64| {
        let time = node.options().clock.now();
        data.set_time(Timestamp(time.0 - ahead * 1_000_000_000));
    };
    first.home.create(&id("a"), b"text").unwrap();
    let check = |node: &TestNode, ahead: i64| {
        // It is compared every 30 seconds, with a sign of life.
        for _ in 0..35 {
            clock(node, ahead);
            pass(&[node], SECOND);
        }
        node.home.cluster().unwrap().stats().is_clock_off
    };
    assert!(!check(&first, 0));
    first.open(&id("a")).unwrap().close().unwrap();
    for (ahead, text) in [(5, "ahead of"), (-5, "behind")] {
        assert!(check(&first, ahead));
        match first.open(&id("a")) {
            Err(Error::Closed(what)) => assert!(what.contains(text), "{what}"),
            other => panic!("{other:?}"),
        }
    }
    assert!(!check(&first, 0));
    first.open(&id("a")).unwrap().close().unwrap();
}

#[test]
fn what_is_left_of_dead_nodes_goes_when_nobody_can_miss_it() {
    let data = MemoryEngine::default();
    let start = Timestamp::parse("2030-01-01T00:00:00Z").unwrap();
    let after = |hours: i64| Timestamp(start.0 + hours * 3600 * 1_000_000_000);
    let sleeper = TestNode::join(&data, 1);
    sleeper.home.create(&id("a"), b"text").unwrap();
    let database = sleeper.open(&id("a")).unwrap();
    database.commit(commit()).unwrap();
    data.set_time(start);
    let second = TestNode::join(&data, 2);
    pass(&[&second], 20 * SECOND);
    let n_nodes = || data.objects().list("nodes/", "", 100).unwrap().len();
    assert_eq!(n_nodes(), 3);
    data.set_time(after(23));
    let third = TestNode::join(&data, 3);
    assert_eq!(n_nodes(), 4);
    data.set_time(after(25));
    drop(third);
    let fourth = TestNode::join(&data, 4);
    // Of the first one nothing is left. The third one has just died.
    assert_eq!(n_nodes(), 4);
    // It owns the namespace all the same, until it is declared dead once more.
    let mut opened = fourth.open(&id("a"));
    assert!(opened.is_err());
    for _ in 0..60 {
        // The clocks agree again.
        data.set_time(fourth.options().clock.now());
        pass(&[&fourth], SECOND);
        opened = fourth.open(&id("a"));
        if opened.is_ok() {
            break;
        }
    }
    assert_eq!(opened.unwrap().head().unwrap(), 1);
    // It wakes up, and does not need to find anything to know that it is dead.
    sleeper.time.advance(Duration::from_secs(25 * 3600));
    sleeper.cut_off();
    sleeper.home.step();
    assert!(sleeper.home.check_ready().is_err());
    check_silent(&database);
}

/// The namespace is never answered for by both, and soon by the other one.
#[test]
fn a_node_that_is_cut_off_is_silent_before_another_one_answers() {
    let (_, first, second, database) = two_nodes();
    pass(&[&first, &second], 2 * SECOND);
    first.cut_off();
    let mut taken = None;
    for _ in 0..80 {
        pass(&[&first, &second], SECOND / 4);
        let moved = second.open(&id("a"));
        assert!(moved.is_ok() || is_elsewhere(&moved), "{moved:?}");
        if let Ok(moved) = moved {
            taken = Some(moved);
            break;
        }
    }
    let moved = taken.expect("the other node takes over within 20 seconds");
    check_silent(&database);
    assert_eq!(moved.commit(commit()).unwrap().position, 2);
    // It is connected again, and learns what has become of it.
    first.engine.set_fates(None);
    check_silent(&database);
    pass(&[&first, &second], 2 * SECOND);
    check_silent(&database);
    let late = database.commit(commit());
    assert!(late.is_err(), "{late:?}");
    assert!(is_elsewhere(&first.open(&id("a"))) || first.open(&id("a")).is_err());
    assert_eq!(moved.head().unwrap(), 2);
    // As another node, it may have the namespace again.
    database.close().unwrap();
    moved.close().unwrap();
    assert_eq!(first.open(&id("a")).unwrap().head().unwrap(), 2);
}

/// A process that was stopped for a while wakes up and knows by its clock that its lease is over.
#[test]
fn a_node_that_wakes_up_answers_nothing_stale() {
    let (_, first, second, database) = two_nodes();
    let mut moved = second.open(&id("a"));
    while moved.is_err() {
        pass(&[&second], SECOND);
        moved = second.open(&id("a"));
    }
    let moved = moved.unwrap();
    moved.commit(commit()).unwrap();
    first.time.advance(20 * SECOND);
    check_silent(&database);
    let late = database.commit(commit());
    assert!(late.is_err(), "{late:?}");
    first.home.step();
    check_silent(&database);
    assert_eq!(moved.head().unwrap(), 2);
}

/// A process that is started again where it was killed waits for the lease of the one before, and not
/// until that one has been silent for long.
#[test]
fn a_node_that_was_killed_is_back_soon() {
    let data = MemoryEngine::default();
    let killed = TestNode::join(&data, 1);
    killed.home.create(&id("a"), b"text").unwrap();
    let database = killed.open(&id("a")).unwrap();
    database.commit(commit()).unwrap();
    // One that is started beside it does it no harm.
    let options = super::KvHomeOptions::new(killed.cache.path());
    let beside = super::KvHome::open(Arc::new(data.clone()), options);
    beside.unwrap().close().unwrap();
    pass(&[&killed], 2 * SECOND);
    assert_eq!(database.head().unwrap(), 1);
    killed.cut_off();
    let _ = database.close();
    let TestNode { home, cache, .. } = killed;
    drop(home);
    let back = TestNode::join_in(data, 2, cache).unwrap();
    assert!(is_elsewhere(&back.open(&id("a"))));
    pass(&[&back], 4 * SECOND);
    assert_eq!(back.open(&id("a")).unwrap().head().unwrap(), 1);
}

/// The steady clock of a machine that sleeps may stand still. The one on the wall does not.
#[test]
fn a_machine_that_has_slept_answers_nothing_before_it_has_looked() {
    let (_, first, _, database) = two_nodes();
    assert_eq!(database.head().unwrap(), 1);
    first
        .time
        .set(Timestamp::parse("2030-01-01T00:02:00Z").unwrap());
    assert!(is_elsewhere(&database.head()));
    first.time.advance(SECOND);
    first.home.step();
    assert_eq!(database.head().unwrap(), 1);
}

/// Who waits for news of a namespace, or watches a key of it, learns that it has moved.
#[test]
fn subscriptions_and_watched_keys_end_with_a_move() {
    let (_, first, second, database) = two_nodes();
    let mut feed = database.subscribe(Selection::all().from_position(2));
    let waiting = std::thread::spawn(move || {
        loop {
            match feed.next_timeout(Duration::from_secs(3600)) {
                Ok(events) => assert!(events.is_empty(), "{events:?}"),
                Err(error) => return error,
            }
        }
    });
    let watch = database.watch(&["k".into()]).unwrap();
    first.cut_off();
    let mut moved = second.open(&id("a"));
    while moved.is_err() {
        pass(&[&first, &second], SECOND);
        moved = second.open(&id("a"));
    }
    moved.unwrap().commit(commit()).unwrap();
    let call = trefoil::Call::new(vec!["SET".into(), "k".into(), "v".into()]);
    let mut transaction = trefoil::Transaction::of_call(call.unwrap().unwrap());
    transaction.watch = Some(watch);
    let late = database.transact(transaction);
    assert!(late.is_err(), "{late:?}");
    // It learns of its death, and ends what waits.
    first.engine.set_fates(None);
    pass(&[&first, &second], 2 * SECOND);
    let ended = waiting.join().unwrap();
    let is_end = matches!(ended, Error::Closed(_) | Error::NotOwner { .. });
    assert!(is_end, "{ended}");
}

/// The first batch is held back or answered late.
#[derive(Debug)]
struct OneCommit {
    fate: Fate,
    has_come: Arc<AtomicBool>,
}

impl Fates for OneCommit {
    fn next(&mut self, call: EngineCall) -> Fate {
        match call == EngineCall::Commit && !self.has_come.swap(true, Ordering::SeqCst) {
            true => self.fate,
            false => Fate::Done,
        }
    }
}

/// What was on its way when another node took over is not there, and the client is told that nobody
/// knows. What had arrived is there, and the answer comes late.
#[test]
fn a_commit_that_a_take_over_overtakes_is_unknown() {
    for fate in [Fate::Held, Fate::Late] {
        let (data, first, second, database) = two_nodes();
        let has_come = Arc::new(AtomicBool::new(false));
        let fates = OneCommit {
            fate,
            has_come: Arc::clone(&has_come),
        };
        first.engine.set_fates(Some(Box::new(fates)));
        let writing = std::thread::spawn({
            let database = database.clone();
            move || database.commit(commit())
        });
        while !has_come.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let mut moved = second.open(&id("a"));
        while moved.is_err() {
            // The other one has its hands full.
            first.time.advance(SECOND);
            pass(&[&second], SECOND);
            moved = second.open(&id("a"));
        }
        let moved = moved.unwrap();
        data.let_go();
        let written = writing.join().unwrap();
        let expected = match fate {
            Fate::Late => {
                assert_eq!(written.unwrap().position, 2);
                2
            }
            _ => {
                assert!(matches!(written, Err(Error::Unknown { .. })), "{written:?}");
                1
            }
        };
        assert_eq!(moved.head().unwrap(), expected, "{fate:?}");
        assert_eq!(moved.commit(commit()).unwrap().position, expected + 1);
        check_silent(&database);
    }
}
