//! Tests of groups that are staged while the one before is being appended.

#![allow(clippy::disallowed_methods, reason = "tests wait by the real clock")]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use trefoil_core::{Commit, Committed, Error, NewEvent, Query, QueryItem, Result, Selection};
use trefoil_state::Reply;
use trefoil_storage::{GroupLimits, MemoryStorage};

use super::request::Executions;
use super::tests::{engine_on, get, queue, queue_commit, text, transaction};
use super::writer::Led;
use crate::background::eventually::eventually;
use crate::database::engine::Engine;
use crate::database::test_storage::{BAIT, TestStorage};
use crate::read::{self, LogMoment};
use crate::state::Watch;

/// A database of which every group has as many commits as a test wants, and is held until the test
/// completes it.
struct Chained {
    storage: Arc<TestStorage>,
    engine: Arc<Engine>,
}

type Answer<T> = oneshot::Receiver<T>;

fn large(stream: &str) -> NewEvent {
    let data = format!("\"{}\"", "x".repeat(10_000));
    NewEvent::new(stream, "Opened", data).with_tags([format!("of:{stream}")])
}

impl Chained {
    fn new(commits_per_group: usize) -> Self {
        let mut storage = TestStorage::new(Arc::new(MemoryStorage::new()));
        storage.limits = GroupLimits {
            commits: commits_per_group,
            ..GroupLimits::default()
        };
        let (storage, engine) = engine_on(storage);
        // Cleaning begins by itself, and is over soon.
        std::thread::sleep(Duration::from_millis(50));
        eventually(|| engine.writer.queue.is_idle());
        storage.groups.lock().clear();
        storage.holds_groups.store(true, Ordering::SeqCst);
        Self { storage, engine }
    }

    fn queue(&self, commit: Commit) -> Answer<Result<Committed>> {
        queue_commit(&self.engine, commit)
    }

    fn queue_line(&self, line: &str) -> Answer<Executions> {
        queue(&self.engine, [transaction(line)])
    }

    /// Has the queue led on another thread, with one beside it, until nothing is left.
    /// Returns after how many chains, or groups by themselves.
    fn lead(&self) -> JoinHandle<usize> {
        let engine = Arc::clone(&self.engine);
        std::thread::spawn(move || {
            let n_written = Cell::new(0);
            let count = |_| n_written.set(n_written.get() + 1);
            let run_beside = |work| drop(std::thread::spawn(work));
            while let Led::More = engine.writer.lead(16, Some(&run_beside), &count) {}
            n_written.get()
        })
    }

    fn n_waiting(&self) -> usize {
        self.engine.writer.queue.backlog().n_requests
    }

    fn n_appends(&self) -> usize {
        self.storage.groups.lock().len()
    }

    fn n_events(&self) -> usize {
        let page = read::read_all(&LogMoment::new(&self.engine), &Selection::all());
        page.unwrap().events.len()
    }
}

fn one(answer: Answer<Executions>) -> Result<crate::Executed> {
    answer.recv().unwrap().pop().unwrap()
}

#[test]
fn the_next_group_is_staged_while_one_is_appended() {
    let chained = Chained::new(1);
    let answers = [1, 2, 3, 4].map(|_| chained.queue(Commit::new([large("a-1")])));
    let leading = chained.lead();
    let first = chained.storage.take_held();
    // The second one has been taken, though nobody has said what became of the first.
    eventually(|| chained.n_waiting() == 2);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!((chained.n_appends(), chained.n_events()), (1, 0));
    assert_eq!(chained.engine.writer.head(), 0);
    let [one, two, three, four] = answers;
    assert!(one.try_recv().is_err() && two.try_recv().is_err());
    first.complete();
    let second = chained.storage.take_held();
    assert_eq!(one.recv().unwrap().unwrap().position, 1);
    eventually(|| chained.n_waiting() == 1);
    assert_eq!((chained.n_appends(), chained.n_events()), (2, 1));
    second.complete();
    chained.storage.take_held().complete();
    chained.storage.take_held().complete();
    let positions = [two, three, four].map(|answer| answer.recv().unwrap().unwrap().position);
    assert_eq!(positions, [2, 3, 4]);
    leading.join().unwrap();
    assert!(chained.engine.writer.queue.is_idle());
    assert_eq!(chained.n_events(), 4);
}

/// Conditions, versions, ids and the state are judged by what is staged before, and nobody hears of it
/// before that is durable.
#[test]
fn a_group_sees_the_one_that_is_being_appended() {
    let chained = Chained::new(1);
    let named = large("a-1").with_id(trefoil_core::EventId::from_u128(7));
    let first = chained.queue(Commit::new([named.clone()]).expect_version("a-1", -1));
    let version = chained.queue(Commit::new([large("a-1")]).expect_version("a-1", -1));
    let query = Query::default().or(QueryItem::any().tagged("of:a-1"));
    let condition = chained.queue(Commit::new([large("a-1")]).fail_if_any(query));
    let again = chained.queue(Commit::new([named]));
    let set = chained.queue_line("set key 1");
    let added = chained.queue_line("append key 2");
    let seen = chained.queue_line("incr key");
    let leading = chained.lead();
    let held = chained.storage.take_held();
    // The version was judged at once, and nobody knows.
    eventually(|| chained.n_waiting() < 6);
    std::thread::sleep(Duration::from_millis(20));
    assert!(version.try_recv().is_err());
    held.complete();
    assert_eq!(first.recv().unwrap().unwrap().position, 1);
    let refused = version.recv().unwrap();
    let is_conflict = matches!(refused, Err(Error::VersionConflict { actual: 0, .. }));
    assert!(is_conflict, "{refused:?}");
    let refused = condition.recv().unwrap();
    let has_failed = matches!(refused, Err(Error::ConditionFailed { position: 1, .. }));
    assert!(has_failed, "{refused:?}");
    let replayed = again.recv().unwrap().unwrap();
    assert_eq!((replayed.position, replayed.replayed), (1, true));
    for _ in 0..3 {
        chained.storage.take_held().complete();
    }
    one(set).unwrap();
    assert_eq!(one(added).unwrap().replies, [Reply::Integer(2)]);
    assert_eq!(one(seen).unwrap().replies, [Reply::Integer(13)]);
    leading.join().unwrap();
    assert_eq!(get(&chained.engine, "key"), text("13"));
    // What is in memory is what is in the log.
    assert_eq!(chained.n_events(), 1);
}

#[test]
fn a_watch_sees_what_is_being_appended() {
    let chained = Chained::new(1);
    let watching = |key: &str| {
        let mut watch = Watch::new(&chained.engine.store.watches);
        let keys = [Bytes::from(key.to_owned())];
        watch.add(&chained.engine.store, 0, &keys).unwrap();
        let mut transaction = transaction("set seen yes");
        transaction.watch = Some(watch);
        transaction
    };
    let first = chained.queue(Commit::new([large("a-1")]));
    let (touched, other) = (watching("touched"), watching("other"));
    let touching = chained.queue_line("set touched 1");
    let refused = queue(&chained.engine, [touched]);
    let executed = queue(&chained.engine, [other]);
    let leading = chained.lead();
    for _ in 0..3 {
        chained.storage.take_held().complete();
    }
    first.recv().unwrap().unwrap();
    one(touching).unwrap();
    let refused = one(refused);
    assert!(matches!(refused, Err(Error::WatchedKeyChanged)));
    one(executed).unwrap();
    leading.join().unwrap();
}

#[test]
fn what_is_staged_after_a_failure_is_not_written() {
    let chained = Chained::new(1);
    let answers = [1, 2, 3].map(|_| chained.queue(Commit::new([large("a-1")])));
    let leading = chained.lead();
    let held = chained.storage.take_held();
    eventually(|| chained.n_waiting() == 1);
    held.fail(Error::result_lost("nobody knows"));
    let [first, second, third] = answers.map(|answer| answer.recv().unwrap().unwrap_err());
    assert!(matches!(first, Error::Unknown { .. }), "{first}");
    assert!(matches!(second, Error::Poisoned(_)), "{second}");
    assert!(matches!(third, Error::Poisoned(_)), "{third}");
    leading.join().unwrap();
    assert_eq!((chained.n_appends(), chained.n_events()), (1, 0));
}

#[test]
fn what_is_staged_after_a_full_disk_is_staged_again() {
    let chained = Chained::new(1);
    let first = chained.queue(Commit::new([large("a-1")]));
    let second = chained.queue(Commit::new([large("a-1")]).expect_version("a-1", 0));
    let third = chained.queue(Commit::new([large("a-1")]).expect_version("a-1", -1));
    let leading = chained.lead();
    let held = chained.storage.take_held();
    eventually(|| chained.n_waiting() == 1);
    held.fail(Error::DiskFull("no room".into()));
    let error = first.recv().unwrap().unwrap_err();
    assert!(matches!(error, Error::DiskFull(_)), "{error}");
    let refused = second.recv().unwrap();
    let is_conflict = matches!(refused, Err(Error::VersionConflict { actual: -1, .. }));
    assert!(is_conflict, "it was decided again: {refused:?}");
    chained.storage.take_held().complete();
    let committed = third.recv().unwrap().unwrap();
    assert_eq!((committed.position, committed.commit), (1, 2));
    leading.join().unwrap();
    assert_eq!(chained.n_events(), 1);
}

#[test]
fn a_panic_while_staging_ahead_costs_the_request_that_caused_it() {
    let chained = Chained::new(3);
    let first = [1, 2, 3].map(|_| chained.queue(Commit::new([large("a-1")])));
    let before = chained.queue_line("set a 1");
    let bait = format!("append {BAIT} x");
    let baited = chained.queue_line(&bait);
    let after = chained.queue_line("append a 2");
    let leading = chained.lead();
    let held = chained.storage.take_held();
    eventually(|| chained.n_waiting() == 0);
    chained.storage.holds_groups.store(false, Ordering::SeqCst);
    held.complete();
    for answer in first {
        answer.recv().unwrap().unwrap();
    }
    one(before).unwrap();
    let refused = one(baited);
    assert!(matches!(refused, Err(Error::Internal(_))));
    one(after).unwrap();
    leading.join().unwrap();
    assert_eq!(get(&chained.engine, "a"), text("12"));
}

#[test]
fn a_panic_while_appending_leaves_its_group_unknown_and_refuses_the_next() {
    let chained = Chained::new(1);
    let answers = [1, 2].map(|_| chained.queue(Commit::new([large("a-1")])));
    chained.storage.append_panics.store(true, Ordering::SeqCst);
    chained.lead().join().unwrap();
    let [first, second] = answers.map(|answer| answer.recv().unwrap().unwrap_err());
    assert!(matches!(first, Error::Unknown { .. }), "{first}");
    assert!(matches!(second, Error::Poisoned(_)), "{second}");
    assert_eq!(chained.n_events(), 0);
}

/// A request of several transactions need not come into one group, and what comes after it waits.
#[test]
fn what_is_left_of_a_group_follows() {
    let chained = Chained::new(100);
    chained.storage.holds_groups.store(false, Ordering::SeqCst);
    let filler = "x".repeat(5 * 1024 * 1024);
    let line = |number: usize| transaction(&format!("set key-{number} {filler}"));
    let first = queue(&chained.engine, (0..4).map(line));
    let second = chained.queue(Commit::new([large("a-1")]));
    chained.lead().join().unwrap();
    assert!(first.recv().unwrap().iter().all(Result::is_ok));
    assert_eq!(second.recv().unwrap().unwrap().position, 1);
    assert!(chained.n_appends() > 1, "{}", chained.n_appends());
    assert_eq!(get(&chained.engine, "key-3"), text(&filler));
}

/// What is refused is kept as long as what is written.
#[test]
fn a_chain_ends_before_it_keeps_too_much() {
    let chained = Chained::new(1);
    let data = format!("\"{}\"", "x".repeat(1024 * 1024));
    let refused = (0..10).map(|_| {
        let event = NewEvent::new("a-1", "Opened", data.clone());
        chained.queue(Commit::new([event]).expect_version("a-1", 5))
    });
    let refused: Vec<_> = refused.collect();
    assert_eq!(chained.lead().join().unwrap(), 3);
    for answer in refused {
        let answer = answer.recv().unwrap();
        let is_conflict = matches!(answer, Err(Error::VersionConflict { .. }));
        assert!(is_conflict, "{answer:?}");
    }
}
