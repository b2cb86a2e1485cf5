//! Tests of opening: whatever became of the maps, index and state are those of the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use trefoil_core::{Commit, Direction, Error, NewEvent, Read, Result, Tracking};
use trefoil_storage::{
    Batch, Fill, Group, Label, LogEnd, Map, MemoryStorage, Record, Snapshot, Storage, StoredItem,
    Upkeep, Usage, VisitEntry,
};

use crate::background::Background;
use crate::engine::Engine;
use crate::state::{STATE_END, View};
use crate::{Options, read};

/// A storage that fails, as if the process had died, after a number of batches or records.
#[derive(Debug)]
struct Failing {
    inner: Arc<MemoryStorage>,
    writes_left: AtomicUsize,
    records_left: AtomicUsize,
}

fn spend(left: &AtomicUsize) -> Result<()> {
    let spent = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
        left.checked_sub(1)
    });
    spent
        .map(drop)
        .map_err(|_| Error::invalid("the process died"))
}

impl Storage for Failing {
    fn append(&self, group: &Group) -> Result<()> {
        self.inner.append(group)
    }

    fn end(&self) -> LogEnd {
        self.inner.end()
    }

    fn read(&self, positions: &[u64], visit: &mut dyn FnMut(StoredItem)) -> Result<()> {
        self.inner.read(positions, visit)
    }

    fn read_labels(&self, positions: &[u64], visit: &mut dyn FnMut(Label)) -> Result<()> {
        self.inner.read_labels(positions, visit)
    }

    fn replay(&self, after: u64, visit: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
        self.inner.replay(after, &mut |record| {
            spend(&self.records_left)?;
            visit(record)
        })
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.inner.snapshot()
    }

    fn write_snapshot(&self, commit: u64, fill: &mut Fill<'_>) -> Result<()> {
        self.inner.write_snapshot(commit, fill)
    }

    fn read_snapshot(&self, visit: &mut VisitEntry<'_>) -> Result<()> {
        self.inner.read_snapshot(visit)
    }

    fn map(&self, name: &str) -> Result<Option<Arc<dyn Map>>> {
        self.inner.map(name)
    }

    fn map_names(&self) -> Result<Vec<String>> {
        self.inner.map_names()
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        spend(&self.writes_left)?;
        self.inner.write(batch)
    }

    fn load(&self, name: &str, fill: &mut Fill<'_>) -> Result<()> {
        self.inner.load(name, fill)
    }

    fn drop_map(&self, name: &str) -> Result<()> {
        self.inner.drop_map(name)
    }

    fn maintain(&self, is_busy: bool) -> Result<Upkeep> {
        self.inner.maintain(is_busy)
    }

    fn seal(&self) -> Result<()> {
        self.inner.seal()
    }

    fn usage(&self) -> Result<Usage> {
        self.inner.usage()
    }
}

fn open(storage: Arc<dyn Storage>) -> Result<Arc<Engine>> {
    let options = Options {
        tail_events_max: 4,
        ..Options::default()
    };
    Ok(Engine::open(1, storage, Arc::default(), Background::start(0)?, &options)?.0)
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

/// All entries and all events.
fn all(engine: &Arc<Engine>) -> Held {
    let view = View::new(&engine.store);
    let entries = view.scan(&[], STATE_END, Direction::Forwards);
    let entries = entries.collect::<Result<_>>().unwrap();
    let (head, layers) = (engine.writer.head(), engine.index.layers());
    let page = read::read_all(engine.storage.as_ref(), &layers, head, &Read::all()).unwrap();
    let events = page.events.iter().map(|event| format!("{event:?}"));
    (entries, events.collect())
}

fn close(engine: &Arc<Engine>) {
    engine.close(&Error::Closed("done".into()));
}

/// A log with a snapshot in the middle of it, and what it holds.
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
            let failing = Failing {
                inner: Arc::clone(&storage),
                writes_left: writes_left.into(),
                records_left: records_left.into(),
            };
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
    let background = Background::start(0).unwrap();
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
    assert!((2000..4000).contains(&shared()), "{}", shared());
    engine.checkpoint().unwrap();
    assert_eq!(shared(), 0);
    let tracking = Tracking::new("source", 1);
    engine
        .commit(Commit::new([]).with_tracking(tracking))
        .unwrap();
    assert!(shared() > 100);
    engine.close(&Error::Closed("done".into()));
    drop(engine);
    assert_eq!(shared(), 0);
}
