//! Tests on a storage whose reads wait, whether it says so or not: who waits for them, and how often.

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
    cold_in(storage(), background)
}

fn cold_in(
    storage: Arc<TestStorage>,
    background: &Arc<Background>,
) -> (Arc<TestStorage>, Arc<Engine>) {
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

/// The reply to a command, on a thread that serves connections.
fn ask(engine: &Arc<Engine>, line: &str) -> Reply {
    let executed = serve(engine.execute_async(vec![Ok(transaction(line))], None)).unwrap();
    let executed = executed.into_iter().next().unwrap().unwrap();
    executed.replies.into_iter().next().unwrap()
}

/// The same, if no other thread is asked.
fn ask_at_once(engine: &Arc<Engine>, line: &str) -> Option<Reply> {
    let asked = Box::pin(engine.execute_async(vec![Ok(transaction(line))], None));
    match { asked }
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(executed) => Some(executed.unwrap().remove(0).unwrap().replies.remove(0)),
        Poll::Pending => None,
    }
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

    assert_eq!(ask(&engine, "incr key-3"), Reply::Integer(4));
    check_waited(&storage, "a command that writes");
    assert_eq!(ask(&engine, "get key-5"), Reply::Bulk("5".into()));
    check_waited(&storage, "a command that reads");
}

/// A disk does not say that reads wait for it, but they take long.
#[test]
fn neither_connections_nor_the_writer_wait_for_a_disk_that_is_slow() {
    let background = Background::start(1 << 20, Clock::default()).unwrap();
    let prepared = storage();
    prepared.waits.is_unsaid.store(true, Ordering::SeqCst);
    let (storage, engine) = cold_in(prepared, &background);
    let bulk = |number: usize| Reply::Bulk(number.to_string().into());
    // Who waited, but for cleaning, which begins by itself.
    let waited = || {
        let mut waited = storage.waits.waited();
        storage.waits.begin();
        waited.retain(|name| !["trefoil-expire", "trefoil-garbage"].contains(&name.as_str()));
        waited.dedup();
        waited
    };
    // Somebody finds it out.
    for number in 0..2 {
        assert_eq!(ask(&engine, &format!("get key-{number}")), bulk(number));
    }
    storage.waits.begin();
    assert_eq!(ask(&engine, "get key-2"), bulk(2));
    assert_eq!(waited(), ["trefoil-look"]);
    assert_eq!(ask(&engine, "incr key-3"), Reply::Integer(4));
    assert_eq!(waited(), ["trefoil-look"]);
    let scanned = ask(&engine, "scan 0 count 100");
    assert!(matches!(&scanned, Reply::Array(all) if all.len() == 2));
    assert_eq!(waited(), ["trefoil-look"]);
    // What is in memory is read on the thread that serves.
    assert_eq!(ask_at_once(&engine, "get key-2"), Some(bulk(2)));
    assert_eq!(ask(&engine, "incr key-3"), Reply::Integer(5));
    assert_eq!(waited(), [""; 0]);
    // Once the disk is quick again, nobody else is asked.
    storage.waits.is_on.store(false, Ordering::SeqCst);
    let is_at_once = |n: usize| ask_at_once(&engine, &format!("get none-{n}")).is_some();
    let asked = |n: &usize| !is_at_once(*n) && ask(&engine, &format!("get none-{n}")) == Reply::Nil;
    assert!((0..100).take_while(asked).count() < 100);
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
