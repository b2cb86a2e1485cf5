//! Tests of when removed events are dropped, and of what.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use trefoil_core::{Commit, NewEvent, Timestamp};

use super::RemoveBefore;
use super::dropping::DropScope;
use crate::background::eventually::eventually;
use crate::{Clock, Database, List, ManualTime, Options};

const MINUTE: u64 = 60 * 1000;
const START: u64 = 1_700_000_000_000;

/// A database whose time a test sets, with small segments.
fn open(directory: &TempDir, time: &Arc<ManualTime>) -> Database {
    let options = Options::default()
        .with_tail_events_max(64)
        .with_segment_bytes_max(16 * 1024)
        .with_clock(Clock::new(Arc::clone(time) as _));
    Database::open(directory.path(), &options).unwrap()
}

fn start() -> Arc<ManualTime> {
    ManualTime::new(Timestamp(START as i64 * 1_000_000))
}

/// Writes events of a thousand bytes to a stream. Two hundred are in the first segment.
fn fill(database: &Database, stream: &str, n: usize) {
    for _ in 0..n {
        let event = NewEvent::new(stream, "Written", format!("\"{}\"", "x".repeat(1000)));
        database.commit(Commit::new([event])).unwrap();
    }
}

#[test]
fn a_closed_database_is_not_opened_time_and_again_for_what_does_not_pay() {
    let (directory, time) = (TempDir::new().unwrap(), start());
    let database = open(&directory, &time);
    fill(&database, "a-1", 600);
    let first = RemoveBefore::StreamPosition(1);
    database.truncate("a-1", first, None).unwrap();
    let engine = database.engine().unwrap();
    let removal = &engine.removal;
    assert_eq!(removal.deadline_when_closed(), START + 10 * MINUTE);
    time.advance(Duration::from_secs(11 * 60));
    removal.drops.perform(|| engine.drop_all_due()).unwrap();
    assert_eq!(engine.drop_deadline(), START + 21 * MINUTE);
    let a_day = 24 * 60 * MINUTE;
    assert_eq!(removal.deadline_when_closed(), START + a_day);
    // What is removed then is tried.
    fill(&database, "b-1", 1);
    database.delete_stream("b-1", None).unwrap();
    assert_eq!(removal.deadline_when_closed(), START + 21 * MINUTE);
}

#[test]
fn the_segment_that_is_being_written_ends_for_what_is_overdue_alone() {
    let (directory, time) = (TempDir::new().unwrap(), start());
    let database = open(&directory, &time);
    fill(&database, "a-1", 20);
    database.delete_stream("a-1", None).unwrap();
    let engine = database.engine().unwrap();
    let drop_due = || {
        let drops = &engine.removal.drops;
        drops.perform(|| engine.drop_all_due()).unwrap();
        let mut n_left = 0;
        let all: Vec<u64> = (1..=20).collect();
        let storage = &engine.storage;
        storage.read_labels(&all, &mut |_, _| n_left += 1).unwrap();
        (storage.segments().len(), n_left)
    };
    time.advance(Duration::from_secs(11 * 60));
    assert_eq!(drop_due(), (1, 20));
    time.advance(Duration::from_secs(24 * 60 * 60));
    assert_eq!(drop_due(), (2, 0));
}

#[test]
fn what_the_index_has_in_memory_alone_is_not_dropped() {
    let (directory, time) = (TempDir::new().unwrap(), start());
    let database = open(&directory, &time);
    let engine = database.engine().unwrap();
    fill(&database, "a-1", 20);
    engine.checkpoint().unwrap();
    fill(&database, "a-1", 20);
    database.delete_stream("a-1", None).unwrap();
    let n_found = || {
        let found = engine.find_removed(DropScope::EVERYTHING);
        found.unwrap().positions.len()
    };
    assert_eq!(n_found(), 20);
    engine.checkpoint().unwrap();
    assert_eq!(n_found(), 40);
}

#[test]
fn the_index_forgets_what_was_dropped_little_by_little() {
    let (directory, time) = (TempDir::new().unwrap(), start());
    let database = open(&directory, &time);
    fill(&database, "a-1", 600);
    database.compact().unwrap();
    let engine = database.engine().unwrap();
    let n_indexed = || database.types(&List::new(9)).unwrap()[0].events;
    let drop_before = |position| {
        let before = RemoveBefore::StreamPosition(position);
        database.truncate("a-1", before, None).unwrap();
        time.advance(Duration::from_secs(11 * 60));
        let drops = &engine.removal.drops;
        drops.perform(|| engine.drop_all_due()).unwrap();
        n_indexed()
    };
    let counts = [60, 120, 180].map(drop_before);
    assert_eq!(
        counts,
        [600, 600, 420],
        "a quarter of it was dropped by then"
    );
    assert_eq!(drop_before(230), 420);
    drop(engine);
    database.close().unwrap();
    let database = open(&directory, &time);
    time.advance(Duration::from_secs(24 * 60 * 60));
    eventually(|| database.types(&List::new(9)).unwrap()[0].events == 370);
}
