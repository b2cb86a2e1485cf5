//! Space comes back: a long log is truncated by a policy to a fifth, and its files become smaller accordingly.
//!
//! `TREFOIL_SOAK_EVENTS` sets how many events it has; `cargo xtask soak retention` takes five million.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tempfile::TempDir;
use trefoil::{
    Clock, Commit, Database, ManualTime, NewEvent, Options, Payload, RetentionPolicy,
    RetentionTarget, Selection, Timestamp, tools,
};

use crate::claim;

/// How many events there are within the whole test suite.
const EVENTS: u64 = 50_000;
const STREAMS: u64 = 100;
const PER_COMMIT: u64 = 500;
/// One in so many is kept.
const KEPT_PART: u64 = 5;
const DATA_BYTES: usize = 200;

fn bytes_in(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
        // A file may go meanwhile.
        found => found.map_or(0, |metadata| metadata.len()),
    });
    sizes.sum()
}

/// Writes events whose data cannot be compressed, to the streams in turn.
fn fill(database: &Database, n_events: u64) {
    let mut random = Rng::with_seed(7);
    let mut data = [0; DATA_BYTES];
    for first in (0..n_events).step_by(PER_COMMIT as usize) {
        let events = (first..first + PER_COMMIT).map(|number| {
            random.fill(&mut data);
            NewEvent::new(format!("session-{}", number % STREAMS), "Seen", "{}")
                .with_data(Payload::binary(data.to_vec()))
        });
        database.commit(Commit::new(events)).unwrap();
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(600), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    began.elapsed()
}

#[test]
fn space_comes_back() {
    let n_events = std::env::var("TREFOIL_SOAK_EVENTS").ok();
    let n_events = n_events.map_or(EVENTS, |text| text.parse().unwrap());
    let n_kept = n_events / KEPT_PART;
    let directory = TempDir::new().unwrap();
    let time = ManualTime::new(Timestamp(1_700_000_000_000_000_000));
    let mut options = Options::default().with_clock(Clock::new(Arc::clone(&time) as _));
    if n_events == EVENTS {
        options = options.with_segment_bytes_max(512 * 1024);
    }
    let database = Database::open(directory.path(), &options).unwrap();
    fill(&database, n_events);
    database.checkpoint().unwrap();
    let before = database.info().unwrap().log_used_bytes;
    let files_before = bytes_in(directory.path());
    let policy = RetentionPolicy::default().with_max_count(n_kept / STREAMS);
    let category = RetentionTarget::Category("session".to_owned());
    database.set_retention(category, policy).unwrap();
    let info = || database.info().unwrap();
    let hidden = wait_until("nothing was removed", || info().events == n_kept);
    time.advance(Duration::from_secs(11 * 60));
    // The newest segment stays as it is until there is a newer one.
    let small = before / KEPT_PART + before / 10;
    let dropped = wait_until("nothing was dropped", || info().log_used_bytes <= small);
    let (after, files_after) = (info().log_used_bytes, bytes_in(directory.path()));
    println!(
        "{n_events} events to {n_kept}: hidden after {hidden:?}, dropped after {dropped:?}, the log has {after} \
         of {before} bytes, all files {files_after} of {files_before}"
    );
    // Room that is set aside for the maps is the same before and after.
    let given_back = files_before.saturating_sub(files_after);
    assert!(given_back >= (before - after) * 9 / 10, "{given_back}");
    let first = database.read(&Selection::all().limit(1)).unwrap();
    assert_eq!(first[0].position(), n_events - n_kept + 1);
    database.close().unwrap();
    let report = tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let database = Database::open(directory.path(), &options).unwrap();
    assert_eq!(database.info().unwrap().events, n_kept);
}
