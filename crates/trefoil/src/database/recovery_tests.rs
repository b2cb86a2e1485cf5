//! Tests of opening: whatever became of the maps, index and state are those of the log.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use trefoil_core::{Commit, Direction, Error, NewEvent, Result, Selection, Tracking};
use trefoil_storage::{Batch, MemoryStorage, Storage};

use crate::background::Background;
use crate::database::engine::Engine;
use crate::database::test_storage::TestStorage;
use crate::read::{self, LogMoment};
use crate::state::{STATE_END, View};
use crate::{Clock, Options};

fn open(storage: Arc<dyn Storage>) -> Result<Arc<Engine>> {
    let options = Options {
        tail_events_max: 4,
        ..Options::default()
    };
    Ok(Engine::open(
        1,
        storage,
        Arc::default(),
        Background::start(0, Clock::default())?,
        &options,
    )?
    .0)
}

/// Writes commits with events, with entries, and with both.
fn fill(engine: &Arc<Engine>, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let event = NewEvent::new("account-1", "Counted", format!("{{\"n\":{number}}}"));
        let events = (number % 3 != 0).then_some(event);
        let mut commit = Commit::new(events);
        if number % 4 != 1 {
            let source = format!("source {} of {}", number % 7, "long name ".repeat(20));
            commit = commit.with_tracking(Tracking::new(source, number));
        }
        engine.commit(commit).unwrap();
    }
}

/// Entries, and events as text.
type Held = (Vec<(Bytes, Bytes)>, Vec<String>);

/// Returns all entries and all events.
fn all(engine: &Arc<Engine>) -> Held {
    let view = View::new(&engine.store);
    let entries = view.scan(&[], STATE_END, Direction::Forwards);
    let entries = entries.collect::<Result<_>>().unwrap();
    let page = read::read_all(&LogMoment::new(engine), &Selection::all()).unwrap();
    let events = page.events.iter().map(|event| format!("{event:?}"));
    (entries, events.collect())
}

fn close(engine: &Arc<Engine>) {
    engine.close(&Error::Closed("done".into()));
}

/// Returns a log with a snapshot in the middle of it, and what it holds.
fn written() -> (Arc<MemoryStorage>, Held) {
    let storage = Arc::new(MemoryStorage::new());
    let engine = open(Arc::clone(&storage) as _).unwrap();
    fill(&engine, 1..100);
    engine.compact().unwrap();
    fill(&engine, 100..120);
    let expected = all(&engine);
    close(&engine);
    let snapshot = storage.snapshot().unwrap();
    assert_eq!((snapshot.commit, snapshot.entries), (99, 7));
    (storage, expected)
}

fn lose_maps(storage: &MemoryStorage) {
    for name in storage.map_names().unwrap() {
        storage.drop_map(&name).unwrap();
    }
}

#[test]
fn maps_that_are_being_made_again_may_be_lost_at_any_moment() {
    let (storage, expected) = written();
    let (mut n_failed, mut is_opened) = (0, false);
    for step in 0.. {
        lose_maps(&storage);
        // Each attempt goes on with what the ones before it left.
        for (writes_left, records_left) in [(step, usize::MAX), (usize::MAX, step), (step, step)] {
            let failing = TestStorage::new(Arc::clone(&storage));
            failing.writes_left.store(writes_left, Ordering::SeqCst);
            failing.records_left.store(records_left, Ordering::SeqCst);
            match open(Arc::new(failing)) {
                Ok(engine) => {
                    assert_eq!(all(&engine), expected, "{step}");
                    is_opened = true;
                    close(&engine);
                }
                Err(_) => n_failed += 1,
            }
        }
        let engine = open(Arc::clone(&storage) as _).unwrap();
        assert_eq!(all(&engine), expected, "{step}");
        engine.checkpoint().unwrap();
        close(&engine);
        let engine = open(Arc::clone(&storage) as _).unwrap();
        assert_eq!(all(&engine), expected, "{step}");
        close(&engine);
        if is_opened && step > 150 {
            break;
        }
    }
    assert!(n_failed > 20, "{n_failed}");
}

#[test]
fn a_map_that_is_behind_the_snapshot_becomes_what_the_snapshot_is() {
    let (storage, expected) = written();
    let mut batch = Batch::default();
    for name in storage.map_names().unwrap() {
        let map = storage.map(&name).unwrap().unwrap();
        let entries = map.scan(&[], &[], Direction::Forwards);
        for (number, entry) in entries.enumerate() {
            let (key, value) = entry.unwrap();
            match (name.as_str(), number % 3) {
                ("state", 0) => batch.put("state", key, value.repeat(2)),
                ("state", 1) => batch.remove("state", key),
                ("manifest", _) => batch.remove("manifest", key),
                _ => {}
            }
        }
    }
    for key in ["a", "m", "tsource", "z"] {
        batch.put("state", key, "of nobody");
    }
    storage.write(&batch).unwrap();
    let engine = open(Arc::clone(&storage) as _).unwrap();
    assert_eq!(all(&engine), expected);
    close(&engine);
}

#[test]
fn entries_in_memory_count_until_they_are_in_the_map() {
    let background = Background::start(0, Clock::default()).unwrap();
    let storage = Arc::new(MemoryStorage::new());
    let shared = || background.tail_bytes.load(Ordering::Relaxed);
    let options = Options::default();
    let (engine, _) = Engine::open(
        1,
        storage,
        Arc::default(),
        Arc::clone(&background),
        &options,
    )
    .unwrap();
    assert_eq!(shared(), 0);
    for number in 1..=50u64 {
        let tracking = Tracking::new(format!("source {}", number % 10), number);
        engine
            .commit(Commit::new([]).with_tracking(tracking))
            .unwrap();
    }
    assert!((800..2000).contains(&shared()), "{}", shared());
    engine.checkpoint().unwrap();
    assert_eq!(shared(), 0);
    let tracking = Tracking::new("source", 1);
    engine
        .commit(Commit::new([]).with_tracking(tracking))
        .unwrap();
    assert!(shared() > 80);
    engine.close(&Error::Closed("done".into()));
    drop(engine);
    assert_eq!(shared(), 0);
}
