//! Tests of redactions that are interrupted.

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use trefoil_core::{Commit, NewEvent, Timestamp};

use crate::home::{Claim, LocalHome};
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
        engine.put_stubs(&engine.store.redactions.first()).unwrap();
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
