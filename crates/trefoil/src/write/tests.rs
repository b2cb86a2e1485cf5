//! Tests of the writer: what one request does to the others of its group.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use trefoil_core::limits::GROUP_BYTES_MAX;
use trefoil_core::{Commit, Error, NewEvent, Result};
use trefoil_state::{Call, GarbagePlace, Reply};
use trefoil_storage::MemoryStorage;

use super::caller::Caller;
use super::execute::CheckedTransaction;
use super::request::{Executions, Work, WriteRequest};
use super::writer::Led;
use crate::background::Background;
use crate::database::engine::Engine;
use crate::database::test_storage::{BAIT, TestStorage};
use crate::read::condition::{CheckedCommit, CheckedConditions};
use crate::read::look::look;
use crate::time::agenda::Chore;
use crate::write::transaction::Transaction;
use crate::{Clock, Options};

fn engine() -> (Arc<TestStorage>, Arc<Engine>) {
    engine_on(TestStorage::new(Arc::new(MemoryStorage::new())))
}

/// An engine with a map that has the state of a first commit.
pub(super) fn engine_on(storage: TestStorage) -> (Arc<TestStorage>, Arc<Engine>) {
    let storage = Arc::new(storage);
    let background = Background::start(0, Clock::default()).unwrap();
    let options = Options::default();
    let opened = Engine::open(
        1,
        Arc::clone(&storage) as _,
        Arc::default(),
        background,
        &options,
    );
    let engine = opened.unwrap().0;
    let first = engine.execute(vec![Ok(transaction("set first value"))]);
    first.unwrap().pop().unwrap().unwrap();
    engine.checkpoint().unwrap();
    storage.groups.lock().clear();
    (storage, engine)
}

pub(super) fn call(line: &str) -> Call {
    let words = line.split(' ').map(|word| Bytes::from(word.to_owned()));
    Call::new(words.collect()).unwrap().unwrap()
}

pub(super) fn transaction(line: &str) -> Transaction {
    Transaction::of_call(call(line))
}

/// Becomes the leader of the queue: cleaning, which begins by itself, may lead it.
fn take_lead(engine: &Engine) {
    loop {
        let (reply, answer) = oneshot::channel();
        let nothing = Chore::Garbage(GarbagePlace::end());
        let request = WriteRequest::clean(nothing, reply);
        if engine.writer.queue.push(request).unwrap() {
            return;
        }
        answer.recv().unwrap().unwrap();
    }
}

/// Queues transactions as one request.
pub(super) fn queue(
    engine: &Engine,
    transactions: impl IntoIterator<Item = Transaction>,
) -> oneshot::Receiver<Executions> {
    let work = |transaction| {
        Ok(CheckedTransaction {
            transaction,
            checked: CheckedConditions::default(),
        })
    };
    let (reply, answer) = oneshot::channel();
    let works = transactions.into_iter().map(work).collect();
    let request = WriteRequest::execute(works, Caller::new(reply, None));
    engine.writer.queue.push(request).unwrap();
    answer
}

fn queue_lines(engine: &Engine, lines: &[&str]) -> oneshot::Receiver<Executions> {
    queue(engine, lines.iter().map(|line| transaction(line)))
}

pub(super) fn queue_commit(
    engine: &Engine,
    commit: Commit,
) -> oneshot::Receiver<Result<trefoil_core::Committed>> {
    let checked = CheckedConditions::default();
    let work = Work::Commit(CheckedCommit { commit, checked });
    let (reply, answer) = oneshot::channel();
    let request = WriteRequest::write(work, Caller::new(reply, None));
    engine.writer.queue.push(request).unwrap();
    answer
}

fn small_commit() -> Commit {
    Commit::new([NewEvent::new("account-1", "Opened", "{}")])
}

pub(super) fn get(engine: &Engine, key: &str) -> Reply {
    let calls = [call(&format!("get {key}"))];
    let meter = trefoil_state::Meter::asking(None);
    look(engine, calls.iter(), &meter).unwrap().pop().unwrap()
}

pub(super) fn text(text: &str) -> Reply {
    Reply::Bulk(Bytes::from(text.to_owned()))
}

#[test]
fn a_panic_while_staging_costs_the_request_that_caused_it() {
    let (storage, engine) = engine();
    let bait = format!("append {BAIT} x");
    take_lead(&engine);
    let before = queue_commit(&engine, small_commit());
    let mixed = queue_lines(&engine, &["set a 1", &bait, "append a 2", &bait, "set b 3"]);
    let alone = queue_lines(&engine, &[&bait]);
    let after = queue_commit(&engine, small_commit());
    assert!(
        matches!(engine.writer.lead(16, None, &|_| {}), Led::Idle),
        "nothing is left"
    );

    assert_eq!(before.recv().unwrap().unwrap().position, 1);
    let mixed = mixed.recv().unwrap();
    let succeeded: Vec<bool> = mixed.iter().map(Result::is_ok).collect();
    assert_eq!(succeeded, [true, false, true, false, true]);
    for refused in mixed.into_iter().chain(alone.recv().unwrap()) {
        assert!(
            matches!(refused, Ok(_) | Err(Error::Internal(_))),
            "{refused:?}"
        );
    }
    assert_eq!(after.recv().unwrap().unwrap().position, 2);
    assert_eq!(get(&engine, "a"), text("12"));
    assert_eq!(get(&engine, "b"), text("3"));
    // Each panic ends a group, and nothing is written twice.
    assert_eq!(storage.groups.lock().len(), 4);
    let committed = engine.commit(Commit::new([NewEvent::new("account-1", "Closed", "{}")]));
    assert_eq!(committed.unwrap().position, 3);
}

#[test]
fn a_panic_while_writing_still_stops_the_writer() {
    let (storage, engine) = engine();
    storage.append_panics.store(true, Ordering::SeqCst);
    take_lead(&engine);
    let answer = queue_lines(&engine, &["set a 1"]);
    let led = catch_unwind(AssertUnwindSafe(|| engine.writer.lead(1, None, &|_| {})));
    assert!(led.is_err());
    assert!(answer.recv().is_err());
    storage.append_panics.store(false, Ordering::SeqCst);
    let refused = engine.commit(Commit::new([NewEvent::new("account-1", "Opened", "{}")]));
    assert!(matches!(refused, Err(Error::Poisoned(_))), "{refused:?}");
}

#[test]
fn a_group_ends_when_its_effects_are_many() {
    let (storage, engine) = engine();
    let setrange = format!("setrange source {GROUP_BYTES_MAX} x");
    engine.execute(vec![Ok(transaction(&setrange))]).unwrap();
    storage.groups.lock().clear();
    take_lead(&engine);
    let small = queue_commit(&engine, small_commit());
    let lines = [
        "bitop not a source",
        "set b 1",
        "bitop not c source",
        "bitop not d source",
    ];
    let large = queue_lines(&engine, &lines);
    let after = queue_commit(&engine, small_commit());
    // A caller that leads for one group leaves the rest to the next leader.
    assert!(matches!(engine.writer.lead(1, None, &|_| {}), Led::More));
    assert!(matches!(engine.writer.lead(16, None, &|_| {}), Led::Idle));
    assert!(small.recv().unwrap().is_ok() && after.recv().unwrap().is_ok());
    assert!(large.recv().unwrap().iter().all(Result::is_ok));
    let groups = storage.groups.lock().clone();
    assert!(
        groups.iter().all(|bytes| *bytes < 2 * GROUP_BYTES_MAX),
        "{groups:?}"
    );
    assert_eq!(groups.len(), 4, "{groups:?}");
}
