//! Tests of who leads the queue, with a host whose turns the test ends.

#![allow(clippy::disallowed_methods, reason = "tests wait by the real clock")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use trefoil_core::{Commit, Committed, NewEvent, Result, Selection};
use trefoil_storage::{GroupLimits, MemoryStorage};

use super::lead::SHORT_GROUP_COMMITS;
use crate::background::Background;
use crate::database::engine::Engine;
use crate::database::host::{Host, ServingThread, TurnWork};
use crate::database::test_storage::TestStorage;
use crate::read::{self, LogMoment};
use crate::{Clock, Options};

/// A thread that serves connections: this one.
#[derive(Default)]
struct TestHost {
    works: Mutex<Vec<TurnWork>>,
    /// How others reach it, if they do.
    reached: Mutex<Option<Arc<TestThread>>>,
}

/// A thread that does what it is handed when the test says so.
struct TestThread {
    /// Whether the test is on that thread.
    is_here: bool,
    handed: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for TestHost {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TestHost")
    }
}

impl std::fmt::Debug for TestThread {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TestThread")
    }
}

impl ServingThread for TestThread {
    fn is_here(&self) -> bool {
        self.is_here
    }

    fn run(&self, work: Box<dyn FnOnce() + Send>) {
        self.handed.lock().push(work);
    }
}

impl Host for TestHost {
    fn block(&self, work: &mut dyn FnMut()) {
        work();
    }

    fn at_end_of_turn(&self, work: TurnWork) -> Option<TurnWork> {
        self.works.lock().push(work);
        None
    }

    fn serving_thread(&self) -> Option<Arc<dyn ServingThread>> {
        let reached = self.reached.lock().clone();
        reached.map(|thread| thread as _)
    }
}

impl TestHost {
    /// Lets others reach the thread.
    fn be_reached(&self, is_here: bool) -> Arc<TestThread> {
        let thread = Arc::new(TestThread {
            is_here,
            handed: Mutex::default(),
        });
        *self.reached.lock() = Some(Arc::clone(&thread));
        thread
    }

    /// Ends a turn. Returns how much is to be done at the end of the next one.
    fn end_turn(&self) -> usize {
        let works = std::mem::take(&mut *self.works.lock());
        let mut left: Vec<_> = works
            .into_iter()
            .filter_map(|mut work| work().then_some(work))
            .collect();
        let mut works = self.works.lock();
        works.append(&mut left);
        works.len()
    }

    fn n_works(&self) -> usize {
        self.works.lock().len()
    }
}

struct Served {
    thread: Arc<TestHost>,
    storage: Arc<TestStorage>,
    engine: Arc<Engine>,
}

fn serve(storage: TestStorage) -> Served {
    let background = Background::start(0, Clock::default()).unwrap();
    let thread = Arc::new(TestHost::default());
    background.host.set(Arc::clone(&thread) as _).unwrap();
    let storage = Arc::new(storage);
    let engine = Engine::open(
        1,
        Arc::clone(&storage) as _,
        Arc::default(),
        background,
        &Options::default(),
    );
    let engine = engine.unwrap().0;
    // Cleaning begins by itself when a database is opened, and is over soon.
    std::thread::sleep(Duration::from_millis(50));
    Served {
        thread,
        storage,
        engine,
    }
}

fn storage() -> TestStorage {
    TestStorage::new(Arc::new(MemoryStorage::new()))
}

fn commit(data_bytes: usize) -> Commit {
    let data = format!("\"{}\"", "x".repeat(data_bytes));
    Commit::new(vec![NewEvent::new("account-1", "Opened", data)])
}

/// A commit that is being written.
struct Writing<'a> {
    future: Pin<Box<dyn Future<Output = Result<Committed>> + 'a>>,
    /// Where the event went, once that is known.
    position: Option<u64>,
}

impl Served {
    /// Begins a commit, as a task of the thread does.
    fn begin(&self, data_bytes: usize) -> Writing<'_> {
        let mut writing = Writing {
            future: Box::pin(self.engine.commit_async(commit(data_bytes), None)),
            position: None,
        };
        writing.position();
        writing
    }

    /// Ends turns until nothing is left to do at their ends. Cleaning, which begins by itself, may be
    /// to do as well.
    fn end_turns(&self) {
        while self.thread.end_turn() > 0 {}
    }

    fn n_groups(&self) -> usize {
        self.storage.groups.lock().len()
    }

    /// Writes some commits, one at a time. Returns how many of them the thread led.
    fn n_led_here(&self, data_bytes: usize) -> usize {
        let is_led_here = |_: &usize| {
            let mut writing = self.begin(data_bytes);
            let is_here = self.thread.n_works() > 0;
            self.end_turns();
            writing.wait();
            is_here
        };
        (0..200).filter(is_led_here).count()
    }
}

impl Writing<'_> {
    /// Returns where the event went, if that is known.
    fn position(&mut self) -> Option<u64> {
        if self.position.is_none() {
            let context = &mut Context::from_waker(Waker::noop());
            if let Poll::Ready(committed) = self.future.as_mut().poll(context) {
                self.position = Some(committed.unwrap().position);
            }
        }
        self.position
    }

    /// Waits until the commit is written.
    fn wait(&mut self) -> u64 {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(position) = self.position() {
                return position;
            }
            assert!(Instant::now() < deadline, "it is not written");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn what_a_thread_reads_in_its_turn_becomes_one_group() {
    let served = serve(storage());
    let mut writings: Vec<_> = (0..5).map(|_| served.begin(10)).collect();
    // The turn brought four more requests: perhaps the next one does as well.
    assert_eq!((served.thread.end_turn(), served.n_groups()), (1, 0));
    writings.push(served.begin(10));
    assert_eq!((served.thread.end_turn(), served.n_groups()), (1, 0));
    served.end_turns();
    assert_eq!(served.n_groups(), 1);
    for (writing, expected) in writings.iter_mut().zip(1..) {
        assert_eq!(writing.position(), Some(expected));
    }
    let mut alone = served.begin(10);
    served.end_turns();
    assert_eq!((alone.position(), served.n_groups()), (Some(7), 2));
    let groups = served.engine.writer.stats.snapshot().group_commits;
    assert_eq!(groups.count(), 2);
    assert!(groups.sum() >= 7, "{}", groups.sum());
}

#[test]
fn a_group_is_closed_however_many_come() {
    let served = serve(storage());
    let mut writings = vec![served.begin(10)];
    while served.n_groups() == 0 {
        writings.push(served.begin(10));
        served.thread.end_turn();
        assert!(writings.len() < 100, "it waits for ever");
    }
    assert_eq!(writings[0].position(), Some(1));
}

#[test]
fn a_thread_leads_on_in_its_next_turn() {
    let mut storage = storage();
    storage.limits = GroupLimits {
        commits: 2,
        bytes: 1 << 20,
    };
    let served = serve(storage);
    let mut writings: Vec<_> = (0..5).map(|_| served.begin(10)).collect();
    served.end_turns();
    assert!(served.n_groups() >= 3);
    for (writing, expected) in writings.iter_mut().zip(1..) {
        assert_eq!(writing.position(), Some(expected));
    }
}

#[test]
fn a_thread_that_ends_hands_its_lead_over() {
    let served = serve(storage());
    let mut writing = served.begin(10);
    served.thread.works.lock().clear();
    assert_eq!(writing.wait(), 1);
}

#[test]
fn much_to_be_written_is_left_to_the_background() {
    let served = serve(storage());
    let mut writing = served.begin(1 << 20);
    assert_eq!(served.thread.n_works(), 0);
    assert_eq!(writing.wait(), 1);
    // So it is if it comes later in the turn.
    let (mut small, mut large) = (served.begin(10), served.begin(1 << 20));
    served.end_turns();
    assert_eq!((small.wait(), large.wait()), (2, 3));
}

/// Large requests of several clients leave a thread that serves them no time to wait for the disk.
#[test]
fn large_requests_are_left_to_the_background_unless_they_come_alone() {
    let served = serve(storage());
    let mut first = served.begin(5000);
    assert_eq!(served.thread.n_works(), 0);
    assert_eq!(first.wait(), 1);
    assert!(served.n_led_here(5000) > 0, "it never comes back");
}

/// They are read and answered together, and what is staged on this thread wakes no other.
#[test]
fn the_commits_of_a_hundred_clients_are_written_by_the_thread_that_serves_them() {
    let served = serve(storage());
    served.thread.be_reached(true);
    let mut writings: Vec<_> = { 0..SHORT_GROUP_COMMITS }
        .map(|_| served.begin(10))
        .collect();
    served.end_turns();
    for (writing, expected) in writings.iter_mut().zip(1..) {
        assert_eq!(writing.position(), Some(expected), "nobody was waited for");
    }
}

/// A thread that serves connections is woken once for all the answers of a group.
#[test]
fn answers_of_a_group_are_handed_over_together() {
    let served = serve(storage());
    let thread = served.thread.be_reached(false);
    let n_commits = SHORT_GROUP_COMMITS + 10;
    let mut writings: Vec<_> = (0..n_commits).map(|_| served.begin(10)).collect();
    assert_eq!(served.thread.end_turn(), 1, "the turn brought more");
    assert_eq!(served.thread.end_turn(), 0, "they are too many for it");
    let deadline = Instant::now() + Duration::from_secs(20);
    while served.engine.writer.last_commit() < n_commits as u64
        || thread.handed.lock().len() < served.n_groups()
    {
        assert!(Instant::now() < deadline, "they are not written");
        std::thread::sleep(Duration::from_millis(1));
    }
    let is_answered = |writing: &mut Writing<'_>| writing.position().is_some();
    assert!(!writings.iter_mut().any(is_answered), "nobody was woken");
    let handed = std::mem::take(&mut *thread.handed.lock());
    assert_eq!(handed.len(), served.n_groups());
    assert!(handed.len() <= 2, "{} groups", handed.len());
    handed.into_iter().for_each(|deliver| deliver());
    for (writing, expected) in writings.iter_mut().zip(1..) {
        assert_eq!(writing.position(), Some(expected));
    }
}

/// If all clients waited for the same sync, nobody would work meanwhile.
#[test]
fn a_group_does_not_take_all_that_wait() {
    let served = serve(storage());
    let mut writings: Vec<_> = (0..300).map(|_| served.begin(10)).collect();
    served.end_turns();
    for (writing, expected) in writings.iter_mut().zip(1..) {
        assert_eq!(writing.wait(), expected);
    }
    assert!(served.n_groups() >= 3, "{} groups", served.n_groups());
}

/// Where there is one client, nothing is gained by waiting for another.
#[test]
fn what_comes_alone_is_written_at_once() {
    let served = serve(storage());
    let thread = served.thread.be_reached(true);
    let n_at_once = (0..200).filter(|_| {
        let is_at_once = served.begin(10).position().is_some();
        served.end_turns();
        is_at_once
    });
    let n_at_once = n_at_once.count();
    assert!((100..136).contains(&n_at_once), "{n_at_once}");
    // Others are noticed.
    let mut n_rounds = 0;
    loop {
        let mut writings: Vec<_> = (0..5).map(|_| served.begin(10)).collect();
        let is_at_once = writings[4].position().is_some();
        served.end_turns();
        if !is_at_once {
            break;
        }
        n_rounds += 1;
        assert!(n_rounds < 10, "each is written by itself for ever");
    }
    assert!(thread.handed.lock().is_empty(), "it is this thread");
}

/// A thread that serves connections goes on doing so while a slow disk syncs.
#[test]
fn slow_syncs_are_left_to_the_background() {
    let served = serve(storage());
    let n_slow = 8;
    served.storage.holds_groups.store(true, Ordering::SeqCst);
    for number in 0..n_slow {
        let mut writing = served.begin(10);
        served.end_turns();
        let held = served.storage.take_held();
        std::thread::sleep(Duration::from_millis(5));
        held.complete();
        assert_eq!(writing.wait(), number + 1);
    }
    let mut writing = served.begin(10);
    assert_eq!(served.thread.n_works(), 0, "this thread would wait");
    let held = served.storage.take_held();
    assert_eq!(writing.position(), None);
    let page = read::read_all(&LogMoment::new(&served.engine), &Selection::all()).unwrap();
    assert_eq!(page.events.len() as u64, n_slow);
    held.complete();
    assert_eq!(writing.wait(), n_slow + 1);
    // Once syncs are short again, so is the way.
    served.storage.holds_groups.store(false, Ordering::SeqCst);
    assert!(served.n_led_here(10) > 0, "it never came back");
}
