//! Tests of when policies are applied.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use trefoil_core::{Commit, NewEvent, Selection, Timestamp};

use super::{RetentionPolicy, RetentionTarget};
use crate::background::eventually::eventually;
use crate::{Clock, Database, ManualTime, Options};

#[test]
fn an_event_that_was_dropped_does_not_keep_the_next_one_for_ever() {
    let directory = TempDir::new().unwrap();
    let time = ManualTime::new(Timestamp(1_700_000_000_000_000_000));
    let options = Options::default().with_clock(Clock::new(Arc::clone(&time) as _));
    let database = Database::open(directory.path(), &options).unwrap();
    let write = |stream: &str| {
        let event = NewEvent::new(stream, "Written", "{}");
        database.commit(Commit::new([event])).unwrap();
        time.advance(Duration::from_secs(10));
    };
    for stream in ["a-1", "b-1", "a-2", "a-3"] {
        write(stream);
    }
    database.delete_stream("a-2", None).unwrap();
    let engine = database.engine().unwrap();
    engine.checkpoint().unwrap();
    // The index still has it.
    engine
        .storage
        .drop_items(std::slice::from_ref(&(3..4)))
        .unwrap();
    let policy = RetentionPolicy::default().with_max_age(Duration::from_secs(60));
    let category = RetentionTarget::Category("a".to_owned());
    database.set_retention(category, policy).unwrap();
    let n_left = |stream: &str| database.read(&Selection::stream(stream)).unwrap().len();
    time.advance(Duration::from_secs(25));
    eventually(|| n_left("a-1") == 0);
    assert_eq!(n_left("a-3"), 1);
    // Nothing is written meanwhile.
    time.advance(Duration::from_secs(60));
    eventually(|| n_left("a-3") == 0);
}
