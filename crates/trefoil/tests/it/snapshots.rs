//! The log forgets changes of state that a snapshot has, and the state is never another for it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use trefoil::{Commit, Database, NewEvent, Options, Selection, Tracking, Transaction, cmd, tools};

use crate::waiting::wait_for_all;

use crate::claim;

const N_CHANGES: u64 = 1_000_000;
const CHANGES_AT_ONCE: u64 = 2000;
const MIB: u64 = 1024 * 1024;

fn options() -> Options {
    Options::default().with_segment_bytes_max(4 * MIB)
}

/// A name that is long, so that a million changes take a quarter of a gigabyte.
fn counter(number: u64) -> String {
    format!("counter-{number}-{}", "x".repeat(235))
}

/// The bytes that all files below `directory` take on disk.
fn disk_bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        // What is replaced may vanish meanwhile.
        Err(_) => 0,
    });
    bytes.sum()
}

/// Waits until the files below `directory` take no more than so many bytes. How fast the work behind
/// gets there depends on what else the machine does.
fn wait_until_below(directory: &Path, limit: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while disk_bytes(directory) > limit {
        let bytes = disk_bytes(directory);
        assert!(Instant::now() < deadline, "{bytes} bytes are left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Changes the counters in turn, with an event now and then; the directory grows no larger than half
/// of what the changes take.
fn change(database: &Database, directory: &Path, n_counters: u64) {
    let mut value = 0;
    while value < N_CHANGES {
        let transactions = (value + 1..=value + CHANGES_AT_ONCE).map(|value| {
            Transaction::default().with_tracking(Tracking::new(counter(value % n_counters), value))
        });
        for executed in wait_for_all([database.transact_all_async(transactions.collect())]) {
            assert!(executed.unwrap().iter().all(Result::is_ok));
        }
        value += CHANGES_AT_ONCE;
        if value % (10 * CHANGES_AT_ONCE) == 0 {
            let event = NewEvent::new("account-1", "Counted", format!("{{\"value\":{value}}}"));
            database.commit(Commit::new([event])).unwrap();
            wait_until_below(directory, 128 * MIB);
        }
    }
}

fn check(directory: &Path, n_counters: u64) {
    let database = Database::open(directory, &options()).unwrap();
    for number in 0..n_counters {
        let last = N_CHANGES - (N_CHANGES - number) % n_counters;
        let expected = Some(last);
        assert_eq!(database.tracking(&counter(number)).unwrap(), expected);
    }
    assert_eq!(database.tracking(&counter(n_counters)).unwrap(), None);
    let events = database
        .read(&Selection::stream("account-1").limit(1000))
        .unwrap();
    let n_events = N_CHANGES / CHANGES_AT_ONCE / 10;
    assert_eq!(events.len() as u64, n_events);
    for (position, event) in (1..).zip(&events) {
        assert_eq!(
            (event.position(), event.stream_position()),
            (position, Some(position - 1))
        );
        let value = position * 10 * CHANGES_AT_ONCE;
        assert_eq!(event.data(), format!("{{\"value\":{value}}}").as_bytes());
    }
    database.checkpoint().unwrap();
    database.close().unwrap();
    let report = tools::verify(&*claim(directory), &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(
        (report.events, report.commits),
        (n_events, N_CHANGES + n_events)
    );
    let snapshot = report.snapshot.unwrap();
    assert!(
        snapshot.entries > 0 && snapshot.entries <= n_counters + 3,
        "{snapshot:?}"
    );
}

fn counters_are_bounded_and_rebuilt(n_counters: u64) {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), &options()).unwrap();
    change(&database, directory.path(), n_counters);
    wait_until_below(directory.path(), 48 * MIB);
    database.close().unwrap();
    check(directory.path(), n_counters);
    tools::repair(claim(directory.path()), &options()).unwrap();
    check(directory.path(), n_counters);
    fs::remove_dir_all(directory.path().join("1/maps")).unwrap();
    check(directory.path(), n_counters);
}

#[test]
fn a_million_changes_of_one_counter_leave_little() {
    counters_are_bounded_and_rebuilt(1);
}

#[test]
fn a_million_changes_of_a_hundred_counters_leave_little() {
    counters_are_bounded_and_rebuilt(100);
}

/// Writes a commit with an event and a change, and then changes until the log has dropped that one.
#[test]
fn a_commit_says_that_its_changes_are_gone_and_keeps_its_events() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options::default()
        .with_segment_bytes_max(MIB)
        .with_plain_segments(0);
    let database = Database::open(directory.path(), &options).unwrap();
    let first = Transaction::new()
        .append(NewEvent::new("account-1", "Opened", "{}"))
        .call(cmd!(database, "SET", "greeting", "hello").unwrap());
    database.transact(first).unwrap();
    let stored = || database.stored_commit(1, 0, 10).unwrap().unwrap();
    let changes = stored().changes.unwrap();
    assert!(changes.total > 0 && changes.changes.len() as u64 == changes.total);
    let value = "x".repeat(50_000);
    let deadline = Instant::now() + Duration::from_secs(120);
    while stored().changes.is_some() {
        assert!(Instant::now() < deadline, "the changes are still there");
        for _ in 0..20 {
            let change = cmd!(database, "SET", "value", &value).unwrap();
            database.transact(Transaction::new().call(change)).unwrap();
        }
    }
    let gone = stored();
    assert_eq!((gone.first_position, gone.events), (1, 1));
    let last = database.last_commit().unwrap();
    assert!(database.stored_commit(last, 0, 1).unwrap().is_some());
    assert_eq!(database.stored_commit(last + 1, 0, 1).unwrap(), None);
}
