//! Tests of the writer on a storage that completes its groups later.

#![allow(clippy::disallowed_methods, reason = "tests wait by the real clock")]

use std::future::Future as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use trefoil_core::{Commit, Committed, Error, NewEvent, Result, Selection};
use trefoil_storage::{GroupLimits, MemoryStorage};

use crate::background::Background;
use crate::database::engine::Engine;
use crate::database::test_storage::TestStorage;
use crate::read::{self, LogMoment};
use crate::{Clock, Options};

/// An engine whose groups are held until the test completes them.
fn engine(background: &Arc<Background>) -> (Arc<TestStorage>, Arc<Engine>) {
    engine_with_limits(background, GroupLimits::default())
}

fn engine_with_limits(
    background: &Arc<Background>,
    limits: GroupLimits,
) -> (Arc<TestStorage>, Arc<Engine>) {
    let mut storage = TestStorage::new(Arc::new(MemoryStorage::new()));
    storage.holds_groups = true.into();
    storage.limits = limits;
    let storage = Arc::new(storage);
    let engine = Engine::open(
        1,
        Arc::clone(&storage) as _,
        Arc::default(),
        Arc::clone(background),
        &Options::default(),
    );
    (storage, engine.unwrap().0)
}

fn background() -> Arc<Background> {
    Background::start(0, Clock::default()).unwrap()
}

fn commit(stream: &str) -> Commit {
    Commit::new(vec![NewEvent::new(stream, "type", "{}")])
}

type Writing = JoinHandle<Result<Committed>>;

/// Commits from a thread that waits.
fn write(engine: &Arc<Engine>, stream: &str) -> Writing {
    let (engine, commit) = (Arc::clone(engine), commit(stream));
    std::thread::spawn(move || engine.commit(commit))
}

fn n_events(engine: &Engine) -> usize {
    let page = read::read_all(&LogMoment::new(engine), &Selection::all());
    page.unwrap().events.len()
}

fn n_appends(storage: &TestStorage) -> usize {
    storage.groups.lock().len()
}

/// Waits until something is true.
fn wait_for(mut what: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !what() {
        assert!(Instant::now() < deadline, "it did not come true");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_group_is_seen_and_answered_when_it_is_completed() {
    let (storage, engine) = engine(&background());
    let first = write(&engine, "a-1");
    let held = storage.take_held();
    let others: Vec<Writing> = (0..5).map(|n| write(&engine, &format!("b-{n}"))).collect();
    std::thread::sleep(Duration::from_millis(20));
    assert!(!first.is_finished());
    assert_eq!((n_events(&engine), n_appends(&storage)), (0, 1));
    held.complete();
    assert_eq!(first.join().unwrap().unwrap().position, 1);
    while engine.writer.last_commit() < 6 {
        storage.take_held().complete();
        wait_for(|| engine.writer.last_commit() == 6 || storage.has_held());
    }
    let answers = others
        .into_iter()
        .map(|other| other.join().unwrap().unwrap());
    let mut positions: Vec<u64> = answers.map(|committed| committed.position).collect();
    positions.sort_unstable();
    assert_eq!(positions, [2, 3, 4, 5, 6]);
    assert_eq!(n_events(&engine), 6);
    wait_for(|| engine.writer.queue.is_idle());
}

/// More groups are on their way than there are threads that lead.
#[test]
fn no_thread_waits_for_a_group() {
    let background = background();
    let slow: Vec<_> = (0..40).map(|_| engine(&background)).collect();
    let (fast_storage, fast) = engine(&background);
    fast_storage.holds_groups.store(false, Ordering::SeqCst);
    // Asynchronous callers hand the lead to the threads of the background.
    let mut context = Context::from_waker(Waker::noop());
    let futures = slow
        .iter()
        .map(|(_, slow)| slow.commit_async(commit("a-1"), None));
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    for future in &mut futures {
        assert!(future.as_mut().poll(&mut context).is_pending());
    }
    wait_for(|| slow.iter().all(|(storage, _)| n_appends(storage) == 1));
    let mut other = Box::pin(fast.commit_async(commit("a-1"), None));
    wait_for(|| other.as_mut().poll(&mut context).is_ready());
    for (storage, engine) in &slow {
        assert_eq!(engine.writer.head(), 0);
        storage.take_held().complete();
        wait_for(|| engine.writer.head() == 1);
    }
    for future in &mut futures {
        wait_for(|| future.as_mut().poll(&mut context).is_ready());
    }
}

#[test]
fn nothing_is_appended_after_a_failure() {
    let unknown = || Error::result_lost("nobody knows");
    for given_up in [false, true] {
        let (storage, engine) = engine(&background());
        let first = write(&engine, "a-1");
        let held = storage.take_held();
        let second = write(&engine, "a-2");
        std::thread::sleep(Duration::from_millis(20));
        match given_up {
            true => drop(held),
            false => held.fail(unknown()),
        }
        let error = first.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::Unknown { .. }), "{error}");
        let error = second.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::Poisoned(_)), "{error}");
        let error = engine.commit(commit("a-3")).unwrap_err();
        assert!(matches!(error, Error::Poisoned(_)), "{error}");
        assert_eq!((n_appends(&storage), n_events(&engine)), (1, 0));
        wait_for(|| engine.writer.queue.is_idle());
    }
}

/// A commit of which nobody says what became of it may be there. One that still waited is not.
#[test]
fn what_a_panic_may_have_written_is_unknown_and_what_waited_is_refused() {
    let one_each = GroupLimits {
        commits: 1,
        ..GroupLimits::default()
    };
    let (storage, engine) = engine_with_limits(&background(), one_each);
    let first = write(&engine, "a-1");
    let held = storage.take_held();
    let others: Vec<Writing> = (0..3).map(|_| write(&engine, "a-1")).collect();
    wait_for(|| engine.writer.queue.n_waiting_writes() == 3);
    storage.append_panics.store(true, Ordering::SeqCst);
    held.complete();
    first.join().unwrap().unwrap();
    let errors = others
        .into_iter()
        .map(|other| other.join().unwrap().unwrap_err());
    let (unknown, refused): (Vec<Error>, Vec<Error>) =
        errors.partition(|error| matches!(error, Error::Unknown { .. }));
    assert_eq!(
        (unknown.len(), refused.len()),
        (1, 2),
        "{unknown:?} {refused:?}"
    );
    for error in refused {
        assert!(matches!(error, Error::Poisoned(_)), "{error}");
    }
}

#[test]
fn after_a_full_disk_the_next_group_follows() {
    let (storage, engine) = engine(&background());
    let first = write(&engine, "a-1");
    storage.take_held().fail(Error::DiskFull("no room".into()));
    let error = first.join().unwrap().unwrap_err();
    assert!(matches!(error, Error::DiskFull(_)), "{error}");
    let second = write(&engine, "a-1");
    storage.take_held().complete();
    let committed = second.join().unwrap().unwrap();
    assert_eq!((committed.commit, committed.position), (1, 1));
    assert_eq!((n_appends(&storage), n_events(&engine)), (2, 1));
}

/// A tail is frozen between two groups, also if one of them is on its way.
#[test]
fn a_checkpoint_waits_for_the_group_on_its_way() {
    let (storage, engine) = engine(&background());
    let writing = write(&engine, "a-1");
    let held = storage.take_held();
    let checkpoint = {
        let engine = Arc::clone(&engine);
        std::thread::spawn(move || engine.checkpoint())
    };
    std::thread::sleep(Duration::from_millis(20));
    assert!(!checkpoint.is_finished());
    held.complete();
    writing.join().unwrap().unwrap();
    checkpoint.join().unwrap().unwrap();
    assert_eq!(engine.index.checkpoint_end().0, 1);
    assert_eq!(n_events(&engine), 1);
}

#[test]
fn a_group_becomes_as_large_as_the_storage_likes() {
    let small = |commits, bytes| GroupLimits { commits, bytes };
    for (limits, expected) in [
        (small(100, 1 << 20), 6),
        (small(2, 1 << 20), 2),
        (small(100, 1), 1),
    ] {
        let (storage, engine) = engine_with_limits(&background(), limits);
        let first = write(&engine, "a-1");
        let held = storage.take_held();
        let others: Vec<Writing> = (0..6).map(|_| write(&engine, "a-1")).collect();
        // Cleaning, which begins by itself, may wait as well.
        wait_for(|| engine.writer.queue.n_waiting_writes() == 6);
        held.complete();
        first.join().unwrap().unwrap();
        let mut largest = 0;
        while engine.writer.last_commit() < 7 {
            let held = storage.take_held();
            largest = largest.max(held.n_commits());
            held.complete();
            wait_for(|| engine.writer.last_commit() == 7 || storage.has_held());
        }
        assert_eq!(largest, expected, "{limits:?}");
        others
            .into_iter()
            .for_each(|other| drop(other.join().unwrap().unwrap()));
    }
}
