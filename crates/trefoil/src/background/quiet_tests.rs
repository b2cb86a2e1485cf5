//! Tests of what is moved to disk while nobody writes.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use trefoil_core::{Commit, Error, NewEvent, Timestamp};

use super::eventually::eventually;
use super::quiet::QUIET_MILLIS;
use crate::index::SMALL_TAIL_EVENTS;
use crate::time::NEVER;
use crate::{Clock, Database, ManualTime, Options};

struct Quiet {
    dir: TempDir,
    time: Arc<ManualTime>,
}

impl Quiet {
    fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
            time: ManualTime::new(Timestamp(0)),
        }
    }

    fn open(&self) -> Database {
        let clock = Clock::new(self.time.clone());
        Database::open(self.dir.path(), &Options::default().with_clock(clock)).unwrap()
    }

    /// Returns how many events are read again by the next opening.
    fn reopened(&self) -> u64 {
        self.open().recovery().replayed_events
    }
}

fn write(database: &Database, n_events: usize) {
    let event = |number: usize| NewEvent::new(format!("counter-{number}"), "Counted", "{}");
    let mut left: Vec<NewEvent> = (0..n_events).map(event).collect();
    while !left.is_empty() {
        let rest = left.split_off(left.len().min(4096));
        database.commit(Commit::new(left)).unwrap();
        left = rest;
    }
}

#[test]
fn a_large_tail_is_moved_to_disk_when_nothing_was_written_for_a_while() {
    let quiet = Quiet::new();
    let database = quiet.open();
    let engine = database.engine().unwrap();
    write(&database, SMALL_TAIL_EVENTS);
    assert_eq!(engine.quiet_deadline(), NEVER, "a small tail stays");
    write(&database, 1);
    assert_eq!(engine.quiet_deadline(), QUIET_MILLIS);
    quiet.time.advance(Duration::from_millis(QUIET_MILLIS - 1));
    write(&database, 1);
    assert_eq!(engine.quiet_deadline(), 2 * QUIET_MILLIS - 1);
    assert_eq!(engine.index.checkpoint_end().0, 0);
    quiet.time.advance(Duration::from_millis(QUIET_MILLIS));
    eventually(|| engine.index.checkpoint_end().0 == database.last_commit().unwrap());
    eventually(|| quiet.dir.path().join("1/log/mark").exists());
    assert_eq!(engine.index.tail_events(), 0);
    assert_eq!(engine.quiet_deadline(), NEVER);
}

#[test]
fn closing_moves_a_large_tail_to_disk_and_leaves_a_small_one() {
    let quiet = Quiet::new();
    let database = quiet.open();
    write(&database, SMALL_TAIL_EVENTS);
    database.close().unwrap();
    assert_eq!(quiet.reopened(), SMALL_TAIL_EVENTS as u64);
    let database = quiet.open();
    write(&database, 1);
    database.close().unwrap();
    let database = quiet.open();
    assert_eq!(database.recovery().replayed_events, 0);
    assert_eq!(database.head().unwrap(), SMALL_TAIL_EVENTS as u64 + 1);
    assert_eq!(database.version("counter-7").unwrap(), Some(0));
}

#[test]
fn closing_gives_up_what_takes_too_long() {
    let quiet = Quiet::new();
    let n_events = SMALL_TAIL_EVENTS + 1;
    let database = quiet.open();
    write(&database, n_events);
    database.close_saving(Duration::ZERO).unwrap();
    assert_eq!(quiet.reopened(), n_events as u64);
    let database = quiet.open();
    let engine = database.engine().unwrap();
    assert!(engine.writer.freeze());
    let given_up = engine.save_frozen_tail(&|| Err(Error::Closed("no time".into())));
    assert!(matches!(given_up, Err(Error::Closed(_))), "{given_up:?}");
    drop(engine);
    drop(database);
    assert_eq!(quiet.reopened(), n_events as u64);
}

#[test]
fn runs_that_were_left_by_closing_are_merged_after_opening() {
    let quiet = Quiet::new();
    for _ in 0..4 {
        let database = quiet.open();
        write(&database, SMALL_TAIL_EVENTS + 1);
        database.close().unwrap();
    }
    let database = quiet.open();
    let index = &database.engine().unwrap().index;
    eventually(|| index.layers().runs().count() == 1);
    let info = database.info().unwrap();
    assert_eq!(info.events, 4 * (SMALL_TAIL_EVENTS as u64 + 1));
}
