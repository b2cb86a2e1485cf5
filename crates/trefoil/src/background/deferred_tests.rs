//! Tests of work that waits while much is written.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trefoil_core::{Commit, NewEvent, Timestamp};
use trefoil_state::Call;
use trefoil_storage::MemoryStorage;

use super::Background;
use super::deferred::WAITING_RUNS_MAX;
use super::eventually::eventually;
use crate::database::engine::Engine;
use crate::{Clock, ManualTime, Options, Transaction};

/// An engine to which much is written, until [`Busy::rest`].
struct Busy {
    time: Arc<ManualTime>,
    engine: Arc<Engine>,
}

impl Busy {
    fn new() -> Self {
        let time = ManualTime::new(Timestamp(0));
        let clock = Clock::new(time.clone());
        let options = Options::default().with_clock(clock.clone());
        let background = Background::start(0, clock).unwrap();
        let storage = Arc::new(MemoryStorage::default());
        let opened = Engine::open(1, storage, Arc::default(), background, &options);
        let busy = Self {
            time,
            engine: opened.unwrap().0,
        };
        busy.write(300);
        assert!(busy.engine.write_load.is_high());
        busy.engine.checkpoint().unwrap();
        busy
    }

    /// Writes a thousand groups in a second.
    fn write(&self, n_groups: usize) {
        for _ in 0..n_groups {
            let event = NewEvent::new("account-1", "Counted", "{}");
            self.engine.commit(Commit::new([event])).unwrap();
            self.time.advance(Duration::from_millis(1));
        }
    }

    fn n_runs(&self) -> usize {
        self.engine.index.layers().runs().count()
    }

    /// Lets time pass in which nothing is written.
    fn rest(&self) {
        self.time.advance(Duration::from_secs(1));
    }
}

/// Long enough for what should not be done to be done.
fn wait_a_while() {
    std::thread::sleep(Duration::from_millis(60));
}

#[test]
fn merges_wait_for_a_quiet_moment() {
    let busy = Busy::new();
    for n_runs in 2..=WAITING_RUNS_MAX {
        busy.write(1);
        busy.engine.checkpoint().unwrap();
        assert_eq!(busy.n_runs(), n_runs);
    }
    wait_a_while();
    assert_eq!(busy.n_runs(), WAITING_RUNS_MAX);
    busy.rest();
    eventually(|| busy.n_runs() == 1);
}

#[test]
fn merges_do_not_fall_behind_however_much_is_written() {
    let busy = Busy::new();
    let n_checkpoints = 5 * WAITING_RUNS_MAX;
    for _ in 0..n_checkpoints {
        busy.write(1);
        busy.engine.checkpoint().unwrap();
        eventually(|| busy.n_runs() <= WAITING_RUNS_MAX);
        assert!(busy.engine.write_load.is_high());
    }
    let events = (300 + n_checkpoints) as u64;
    assert_eq!(busy.engine.writer.head(), events);
}

#[test]
fn a_snapshot_waits_until_there_are_twice_as_many_changes() {
    let busy = Busy::new();
    let storage = Arc::clone(&busy.engine.storage);
    let change = |bytes: u64| {
        for number in 0..bytes / (64 * 1024) {
            let value = Bytes::from(vec![number as u8; 64 * 1024]);
            let words = vec![Bytes::from("SET"), Bytes::from("key"), value];
            let set = Transaction::of_call(Call::new(words).unwrap().unwrap());
            busy.engine.execute(vec![Ok(set)]).unwrap();
            busy.time.advance(Duration::from_millis(1));
        }
        busy.engine.checkpoint().unwrap();
    };
    let limit = busy.engine.store.snapshot_limit();
    change(limit + 128 * 1024);
    assert!(busy.engine.store.is_snapshot_due());
    wait_a_while();
    assert_eq!(storage.snapshot(), None);
    change(limit);
    eventually(|| storage.snapshot().is_some());
    change(limit + 128 * 1024);
    let first = storage.snapshot();
    wait_a_while();
    assert_eq!(storage.snapshot(), first);
    eventually(|| {
        busy.rest();
        // What is left of the values that were replaced has to be out of the map before, and that is
        // removed some time after they were.
        busy.engine.checkpoint().unwrap();
        storage.snapshot() != first
    });
}
