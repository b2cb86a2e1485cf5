//! Tests of what verifying finds when events were dropped and redacted.

use std::ops::ControlFlow;
use std::sync::Arc;

use tempfile::TempDir;
use trefoil_core::{Commit, NewEvent, Timestamp};
use trefoil_storage::StoredItem;

use super::verify;
use crate::database::engine::Engine;
use crate::home::LocalHome;
use crate::{Clock, Database, ManualTime, Options, RemoveBefore};

/// Makes a log of which events were dropped and one was redacted, does something to it, with that one as it
/// was, and returns what verifying finds.
fn findings_after(change: impl FnOnce(&Engine, StoredItem)) -> Vec<String> {
    let directory = TempDir::new().unwrap();
    // By this clock nothing becomes due.
    let time: Arc<ManualTime> = ManualTime::new(Timestamp(1_700_000_000_000_000_000));
    let options = Options::default().with_clock(Clock::new(time));
    let database = Database::open(directory.path(), &options).unwrap();
    for number in 0..40 {
        let stream = ["a-1", "a-2", "b-1", "b-2"][number % 4];
        let event = NewEvent::new(stream, "Written", format!("{number}")).with_tag("tag");
        database.commit(Commit::new([event])).unwrap();
    }
    let half = RemoveBefore::StreamPosition(5);
    database.truncate("a-1", half, None).unwrap();
    database.delete_stream("b-1", None).unwrap();
    let engine = database.engine().unwrap();
    let mut secret = None;
    let mut keep = |item| {
        secret = Some(item);
        ControlFlow::Continue(())
    };
    engine.storage.read(&[30], &mut keep).unwrap();
    database.redact(30, true).unwrap();
    database.compact().unwrap();
    change(&engine, secret.unwrap());
    drop(engine);
    database.close().unwrap();
    let claim = LocalHome::claim_existing(directory.path()).unwrap();
    let report = verify(&*claim, &mut |_| {}).unwrap();
    report
        .findings
        .into_iter()
        .map(|found| found.what)
        .collect()
}

fn drop_item(engine: &Engine, position: u64) {
    let range = position..position + 1;
    engine
        .storage
        .drop_items(std::slice::from_ref(&range))
        .unwrap();
}

#[test]
fn what_was_dropped_and_redacted_is_sound() {
    assert_eq!(findings_after(|_, _| {}), Vec::<String>::new());
}

#[test]
fn an_event_that_was_not_removed_is_missed() {
    // It is the second last one of its stream.
    let found = findings_after(|engine, _| drop_item(engine, 36));
    assert_eq!(found, ["position 9 of stream b-2 follows 7"]);
    let found = findings_after(|engine, _| drop_item(engine, 33));
    assert_eq!(found, ["position 9 of stream a-1 follows 7"]);
    let found = findings_after(|engine, _| drop_item(engine, 2));
    assert_eq!(found, ["stream a-2 begins at position 1"]);
}

#[test]
fn a_redacted_event_that_is_there_again_is_found() {
    let found = findings_after(|engine, secret| engine.storage.replace_items(&[secret]).unwrap());
    let is_found = |what: &String| what == "the event was redacted and is not a stub";
    assert!(found.iter().any(is_found), "{found:?}");
}
