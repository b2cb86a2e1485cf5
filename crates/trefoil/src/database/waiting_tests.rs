//! Tests on a storage whose reads wait: who waits for them, and how often.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use trefoil_core::{Commit, Condition, Error, NewEvent, Query, QueryItem, Result, make_event_id};
use trefoil_state::{Call, Reply};
use trefoil_storage::MemoryStorage;

use crate::background::Background;
use crate::database::engine::Engine;
use crate::database::test_storage::TestStorage;
use crate::write::transaction::Transaction;
use crate::{Clock, Options};

/// How many events there are.
const EVENTS: usize = 50;

fn storage() -> Arc<TestStorage> {
    Arc::new(TestStorage::new(Arc::new(MemoryStorage::new())))
}

fn open(background: &Arc<Background>, storage: &Arc<TestStorage>) -> Arc<Engine> {
    let opened = Engine::open(
        1,
        Arc::clone(storage) as _,
        Arc::default(),
        Arc::clone(background),
        &Options::default(),
    );
    opened.unwrap().0
}

/// Runs a future on this thread, which stands for one that serves connections.
fn serve<T>(future: impl Future<Output = T>) -> T {
    let mut future = Box::pin(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A commit of events with ids of a client, one per stream.
fn commit() -> Commit {
    let event = |number: usize| {
        let id = make_event_id(1, number as u64, 0);
        NewEvent::new(format!("account-{number}"), "Opened", "{}")
            .with_id(id)
            .with_tag("all")
            .with_tag(format!("odd:{}", number % 2))
    };
    Commit::new((0..EVENTS).map(event))
}

fn transaction(line: &str) -> Transaction {
    let words = line.split(' ').map(|word| Bytes::from(word.to_owned()));
    Transaction::of_call(Call::new(words.collect()).unwrap().unwrap())
}

/// An engine that has everything on disk and nothing in memory.
fn cold(background: &Arc<Background>) -> (Arc<TestStorage>, Arc<Engine>) {
    let storage = storage();
    let engine = open(background, &storage);
    engine.commit(commit()).unwrap();
    let set = (0..20).map(|number| Ok(transaction(&format!("set key-{number} {number}"))));
    let set: Result<Vec<_>> = engine.execute(set.collect()).unwrap().into_iter().collect();
    set.unwrap();
    engine.checkpoint().unwrap();
    engine.close(&Error::Closed("to be opened again".into()));
    storage.waits.is_on.store(true, Ordering::SeqCst);
    let engine = open(background, &storage);
    storage.waits.begin();
    (storage, engine)
}

/// Checks that somebody waited, and nobody but the threads for that. Cleaning begins by itself.
#[track_caller]
fn check_waited(storage: &TestStorage, what: &str) {
    let waited = storage.waits.waited();
    let has_waited = |name: &str| waited.iter().any(|thread| thread == name);
    assert!(has_waited("trefoil-wait"), "{what}: {waited:?}");
    let lanes = ["trefoil-wait", "trefoil-tend"];
    let is_allowed = |thread: &String| lanes.contains(&thread.as_str());
    assert!(waited.iter().all(is_allowed), "{what}: {waited:?}");
    storage.waits.begin();
}

#[test]
fn neither_connections_nor_the_writer_wait_for_a_read() {
    let background = Background::start(0, Clock::default()).unwrap();
    let (storage, engine) = cold(&background);

    let replayed = serve(engine.commit_async(commit(), None)).unwrap();
    assert!(replayed.replayed);
    // Once before the commit was queued, and once by the writer.
    assert_eq!(storage.waits.n_reads(), 2);
    check_waited(&storage, "a replay of ids");

    let next = || Commit::new([NewEvent::new("account-7", "Closed", "{}")]);
    let refused = serve(engine.commit_async(next().expect_version("account-7", 5), None));
    refused.unwrap_err();
    check_waited(&storage, "a stream's version");
    let written = serve(engine.commit_async(next().expect_version("account-7", 0), None)).unwrap();
    assert_eq!(written.events[0].stream_position, Some(1));
    check_waited(&storage, "a stream's end");

    let both = QueryItem::any().tagged("all").tagged("odd:1");
    let condition = Condition::no_match(Query::default().or(both));
    let refused = serve(engine.commit_async(next().with_condition(condition), None));
    refused.unwrap_err();
    check_waited(&storage, "a condition");

    let executed = serve(engine.execute_async(vec![Ok(transaction("incr key-3"))], None)).unwrap();
    let executed = executed.into_iter().next().unwrap().unwrap();
    assert_eq!(executed.replies, [Reply::Integer(4)]);
    check_waited(&storage, "a command that writes");
    let looked = serve(engine.execute_async(vec![Ok(transaction("get key-5"))], None)).unwrap();
    let looked = looked.into_iter().next().unwrap().unwrap();
    assert_eq!(looked.replies, [Reply::Bulk("5".into())]);
    check_waited(&storage, "a command that reads");
}

/// More reads wait than there are threads for them.
#[test]
fn other_namespaces_do_not_wait() {
    let background = Background::start(0, Clock::default()).unwrap();
    let (_slow_storage, slow) = cold(&background);
    let fast = open(&background, &storage());
    let mut context = Context::from_waker(Waker::noop());
    let reads = (0..200).map(|number| {
        let key = transaction(&format!("get key-{}", number % 20));
        slow.execute_async(vec![Ok(key)], None)
    });
    let mut reads: Vec<_> = reads.map(Box::pin).collect();
    for read in &mut reads {
        assert!(read.as_mut().poll(&mut context).is_pending());
    }
    serve(fast.commit_async(commit(), None)).unwrap();
    let all = Condition::no_match_after(Query::default(), EVENTS as u64);
    serve(fast.check_async(vec![all], None)).unwrap();
    let replies = reads.into_iter().map(serve);
    assert!(replies.flatten().flatten().all(|executed| executed.is_ok()));
}
