//! Tests of redactions that are interrupted, that fail, or whose event is another one by now.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use trefoil_core::{Commit, Error, EventId, NewEvent, Query, QueryItem, Selection, Timestamp};

use super::{Redaction, RedactionWork};
use crate::home::{Claim, LocalHome};
use crate::time::NEVER;
use crate::write::Work;
use crate::{Clock, Database, ManualTime, Options, tools};

/// By this clock nothing becomes due, so nothing is done but what a test does.
fn options() -> Options {
    let time: Arc<ManualTime> = ManualTime::new(Timestamp(1_700_000_000_000_000_000));
    Options::default()
        .with_tail_events_max(64)
        .with_segment_bytes_max(16 * 1024)
        .with_clock(Clock::new(time))
}

fn claim(directory: &Path) -> Arc<dyn Claim> {
    LocalHome::claim_existing(directory).unwrap()
}

fn secret(number: u64) -> NewEvent {
    NewEvent::new("user-1", "Registered", format!("{{\"secret\":{number}}}"))
        .with_metadata(r#"{"correlationStreamName":"secret-1"}"#)
        .with_tag(format!("secret:{number}"))
        .with_tag("shared")
}

/// Writes events that have secrets.
fn fill(database: &Database) {
    for number in 0..200 {
        database.commit(Commit::new([secret(number)])).unwrap();
    }
}

#[test]
fn a_log_that_has_stubs_of_which_the_index_does_not_know_yet_is_sound() {
    for drops_tags in [false, true] {
        let directory = TempDir::new().unwrap();
        let database = Database::open(directory.path(), &options()).unwrap();
        fill(&database);
        for position in [7, 8, 150] {
            assert!(database.redact(position, drops_tags).unwrap());
        }
        let engine = database.engine().unwrap();
        engine.checkpoint().unwrap();
        engine.put_stubs(&engine.store.redactions.after(0)).unwrap();
        drop(engine);
        // As after a crash: the index still has the terms.
        database.close().unwrap();
        let verify = || tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
        assert_eq!(verify().findings, []);
        let database = Database::open(directory.path(), &options()).unwrap();
        database.compact().unwrap();
        database.close().unwrap();
        assert_eq!(verify().findings, []);
    }
}

/// Changes a byte of the log where it has this text.
fn damage(directory: &Path, text: &str) {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|name| name != "offsets");
    let text = text.as_bytes();
    for path in files(directory).into_iter().filter(is_log) {
        let content = fs::read(&path).unwrap();
        let found = content.windows(text.len()).position(|part| part == text);
        if let Some(at) = found {
            let mut file = fs::File::options().write(true).open(path).unwrap();
            file.seek(SeekFrom::Start(at as u64)).unwrap();
            file.write_all(b"?").unwrap();
            return;
        }
    }
    panic!("no file has it");
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let files = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => files(&path),
        path => vec![path],
    });
    files.collect()
}

#[test]
fn damage_of_one_event_keeps_the_log_from_no_redaction_of_another_part() {
    let directory = TempDir::new().unwrap();
    let options = options().with_plain_segments(100);
    let database = Database::open(directory.path(), &options).unwrap();
    fill(&database);
    // What follows does not fit into the first segment.
    let long = format!("\"{}\"", "x".repeat(500_000));
    let long = NewEvent::new("long-1", "Written", long);
    database.commit(Commit::new([long])).unwrap();
    for number in 200..400 {
        database.commit(Commit::new([secret(number)])).unwrap();
    }
    for position in [3, 4, 350, 399] {
        assert!(database.redact(position, true).unwrap());
    }
    damage(directory.path(), "{\"secret\":3}");
    let engine = database.engine().unwrap();
    let refused = engine.finish_redactions().unwrap_err();
    assert!(matches!(refused, Error::Damaged(_)), "{refused}");
    let left = engine.store.redactions.positions();
    let segments = engine.storage.segments();
    assert_eq!(
        left,
        [3, 4],
        "others are not in the damaged one of {segments:?}"
    );
    let stats = Arc::clone(&engine.background.stats);
    assert_eq!(stats.snapshot().overdue_redactions, 2);
    // It is tried again, and what comes later does not wait for that.
    let now = engine.clock().now().millis();
    assert!(engine.redact_deadline() > now + 60_000);
    database.redact(351, false).unwrap();
    assert!(engine.redact_deadline() < now + 60_000);
    engine.finish_redactions().unwrap_err();
    assert_eq!(engine.store.redactions.positions(), left);
    drop(engine);
    database.close().unwrap();
    assert_eq!(stats.snapshot().overdue_redactions, 0);
}

#[test]
fn an_event_is_never_taken_for_another_one_that_was_at_its_position() {
    let directory = TempDir::new().unwrap();
    let database = Database::open(directory.path(), &options()).unwrap();
    fill(&database);
    let engine = database.engine().unwrap();
    let work = RedactionWork {
        position: 7,
        id: EventId::from_u128(1),
        drops_tags: true,
    };
    assert!(engine.write(Work::Redact(work)).is_err());
    // As if the log had been replaced after that.
    let of_another = Redaction {
        time: 1,
        drops_tags: true,
        id: work.id,
    };
    let works = vec![(7, of_another)];
    engine.write(Work::RedactAgain(works)).unwrap();
    let is_whole = || {
        let event = database.event_at(7).unwrap().unwrap();
        !event.is_redacted() && event.tags().count() == 2
    };
    assert!(is_whole(), "it is shown as it is");
    engine.finish_redactions().unwrap();
    assert!(is_whole(), "the log has it as it is");
    let tagged = Query::from(QueryItem::any().tagged("secret:6"));
    assert_eq!(database.read(&Selection::query(tagged)).unwrap().len(), 1);
    assert!(database.redact(7, false).unwrap(), "this one was not yet");
    assert!(!is_whole());
    assert_eq!(database.event_at(7).unwrap().unwrap().tags().count(), 2);
}

#[test]
fn a_database_that_was_opened_for_what_is_due_follows_redactions_at_once() {
    let directory = TempDir::new().unwrap();
    let database = Database::open(directory.path(), &options()).unwrap();
    fill(&database);
    database.redact(7, true).unwrap();
    database.close().unwrap();
    let database = Database::open(directory.path(), &options()).unwrap();
    let engine = database.engine().unwrap();
    assert_eq!(engine.store.redactions.positions(), [7]);
    database.settle().unwrap();
    assert!(engine.store.redactions.positions().is_empty());
    assert_eq!(engine.removal.deadline_when_closed(), NEVER);
}
