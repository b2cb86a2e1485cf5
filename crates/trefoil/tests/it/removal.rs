//! Removed and redacted events: their bytes go, and everything else stays right.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use trefoil::{
    Clock, Commit, Database, EventId, List, ManualTime, NewEvent, Options, Payload, Query,
    QueryItem, RemoveBefore, Selection, Timestamp, tools,
};

use crate::claim;

fn options() -> Options {
    Options::default()
        .with_tail_events_max(64)
        .with_segment_bytes_max(16 * 1024)
        .with_plain_segments(1)
}

/// Bytes that cannot be compressed, so that they are found in a file if they are there.
fn noise(seed: u64) -> Vec<u8> {
    let mut random = seed;
    let next = || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as u8
    };
    std::iter::repeat_with(next).take(64).collect()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let files = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => files(&path),
        path => vec![path],
    });
    files.collect()
}

/// The files below a directory that have these bytes in them.
fn files_with(directory: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let has = |path: &PathBuf| {
        let content = fs::read(path).unwrap_or_default();
        content.windows(bytes.len()).any(|window| window == bytes)
    };
    files(directory).into_iter().filter(has).collect()
}

fn log_bytes(database: &Database) -> u64 {
    database.info().unwrap().log_used_bytes
}

/// Writes events to three streams in turn.
fn fill(database: &Database, n: u64) {
    for number in 0..n {
        let stream = ["account-1", "account-2", "order-1"][number as usize % 3];
        let event = NewEvent::new(stream, "Written", "{}")
            .with_data(Payload::binary(noise(number)))
            .with_tag(format!("number:{number}"));
        database.commit(Commit::new([event])).unwrap();
    }
}

/// Makes the log go on in the next segment.
fn end_segment(database: &Database) {
    let long = format!("\"{}\"", "x".repeat(500_000));
    let event = NewEvent::new("long-1", "Written", long);
    database.commit(Commit::new([event])).unwrap();
}

/// All that listings and reads tell.
fn everything(database: &Database) -> String {
    let list = List::new(100);
    let info = database.info().unwrap();
    let events = database.read(&Selection::all()).unwrap();
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        (info.events, info.streams, info.head, info.last_activity),
        database.streams(&list).unwrap(),
        database.categories(&list).unwrap(),
        ["account-1", "account-2", "order-1"].map(|stream| database.version(stream).unwrap()),
        events
            .iter()
            .map(|event| event.position())
            .collect::<Vec<_>>(),
    )
}

fn check_sound(directory: &Path) {
    let report = tools::verify(&*claim(directory), &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn removed_bytes_go_and_all_else_stays_also_when_the_index_is_made_again() {
    let directory = TempDir::new().unwrap();
    let database = Database::open(directory.path(), &options()).unwrap();
    fill(&database, 900);
    database.compact().unwrap();
    let (gone, kept) = (noise(0), noise(898));
    assert!(!files_with(directory.path(), &gone).is_empty());
    let before = log_bytes(&database);
    let middle = RemoveBefore::StreamPosition(290);
    database.truncate("account-1", middle, None).unwrap();
    database.delete_stream("order-1", None).unwrap();
    let told = everything(&database);
    database.compact().unwrap();
    assert_eq!(everything(&database), told);
    assert_eq!(files_with(directory.path(), &gone), Vec::<PathBuf>::new());
    assert!(!files_with(directory.path(), &kept).is_empty());
    let after = log_bytes(&database);
    assert!(after < before * 2 / 3, "{after} of {before} bytes are left");
    let tags = database.tags(&List::new(1000)).unwrap();
    assert_eq!(
        tags.len(),
        310,
        "tags that only removed events had are forgotten"
    );
    database.close().unwrap();
    check_sound(directory.path());
    tools::repair(claim(directory.path()), &options()).unwrap();
    check_sound(directory.path());
    let database = Database::open(directory.path(), &options()).unwrap();
    assert_eq!(everything(&database), told);
    let event = NewEvent::new("order-1", "Written", "{}");
    let refused = Commit::new([event.clone()]).expect_version("order-1", -1);
    assert!(database.commit(refused).is_err());
    let next = Commit::new([event]).expect_version("order-1", 299);
    database.commit(next).unwrap();
    assert_eq!(database.info().unwrap().streams, 3);
    assert_eq!(database.streams(&List::new(9)).unwrap()[2].events, 1);
}

#[test]
fn removed_events_wait_to_be_dropped_also_while_the_database_is_closed() {
    let directory = TempDir::new().unwrap();
    let time = ManualTime::new(Timestamp(1_700_000_000_000_000_000));
    let source: Arc<ManualTime> = Arc::clone(&time);
    let options = options().with_clock(Clock::new(source));
    let database = Database::open(directory.path(), &options).unwrap();
    fill(&database, 600);
    end_segment(&database);
    database.delete_stream("account-1", None).unwrap();
    database.close().unwrap();
    let database = Database::open(directory.path(), &options).unwrap();
    assert!(!files_with(directory.path(), &noise(0)).is_empty());
    time.advance(Duration::from_secs(11 * 60));
    wait_until_gone(directory.path(), &noise(0));
    assert_eq!(
        database
            .read(&Selection::category("account"))
            .unwrap()
            .len(),
        200
    );
    database.close().unwrap();
    check_sound(directory.path());
}

/// Waits until no file has these bytes.
fn wait_until_gone(directory: &Path, bytes: &[u8]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !files_with(directory, bytes).is_empty() {
        assert!(Instant::now() < deadline, "the bytes are still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_was_just_removed_stays_when_older_removals_are_dropped() {
    let directory = TempDir::new().unwrap();
    let time = ManualTime::new(Timestamp(1_700_000_000_000_000_000));
    let source: Arc<ManualTime> = Arc::clone(&time);
    let options = options().with_clock(Clock::new(source));
    let database = Database::open(directory.path(), &options).unwrap();
    fill(&database, 600);
    end_segment(&database);
    database.delete_stream("account-1", None).unwrap();
    time.advance(Duration::from_secs(9 * 60));
    database.delete_stream("order-1", None).unwrap();
    time.advance(Duration::from_secs(2 * 60));
    wait_until_gone(directory.path(), &noise(0));
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        !files_with(directory.path(), &noise(2)).is_empty(),
        "it has waited for two minutes alone"
    );
    time.advance(Duration::from_secs(9 * 60));
    wait_until_gone(directory.path(), &noise(2));
    database.close().unwrap();
    check_sound(directory.path());
}

fn secret_event() -> NewEvent {
    NewEvent::new("user-1", "Registered", "{}")
        .with_id(EventId::from_u128(77))
        .with_data(Payload::binary(noise(4711)))
        .with_metadata(r#"{"correlationStreamName":"secretcategory-1"}"#)
        .with_tag("name:confidential")
        .with_tag("kept")
}

fn tagged(tag: &str) -> Selection {
    Selection::query(Query::from(QueryItem::any().tagged(tag)))
}

#[test]
fn a_redacted_event_is_a_stub_at_once_and_its_bytes_are_nowhere_later() {
    let directory = TempDir::new().unwrap();
    let database = Database::open(directory.path(), &options()).unwrap();
    fill(&database, 300);
    let position = database
        .commit(Commit::new([secret_event()]))
        .unwrap()
        .position;
    fill(&database, 300);
    database.compact().unwrap();
    let secrets: [&[u8]; 3] = [&noise(4711), b"name:confidential", b"secretcategory"];
    for secret in secrets {
        assert!(
            !files_with(directory.path(), secret).is_empty(),
            "{secret:?}"
        );
    }
    assert!(database.redact(position, true).unwrap());
    assert!(
        !database.redact(position, false).unwrap(),
        "it is redacted already"
    );
    let check = |database: &Database| {
        let event = database.event_at(position).unwrap().unwrap();
        assert!(event.is_redacted());
        assert_eq!((event.data(), event.tags().count()), (&b"null"[..], 0));
        assert_eq!(
            (event.stream(), event.event_type()),
            (Some("user-1"), "Registered")
        );
        assert_eq!(
            database.read(&tagged("name:confidential")).unwrap().len(),
            0
        );
        assert_eq!(
            database.read(&Selection::stream("user-1")).unwrap(),
            [event]
        );
        let mut correlated = Selection::category("user");
        correlated.filter.correlation = Some("secretcategory".to_owned());
        assert_eq!(database.read(&correlated).unwrap().len(), 0);
        let mut again = secret_event();
        again.data = Payload::json("1");
        let again = database.commit(Commit::new([again])).unwrap();
        assert!(again.replayed && again.position == position);
    };
    check(&database);
    // It is taken up again after the database was closed.
    database.close().unwrap();
    let database = Database::open(directory.path(), &options()).unwrap();
    check(&database);
    database.compact().unwrap();
    check(&database);
    for secret in secrets {
        assert_eq!(files_with(directory.path(), secret), Vec::<PathBuf>::new());
    }
    assert!(database.redact(position + 10_000, true).is_err());
    database.close().unwrap();
    check_sound(directory.path());
    tools::repair(claim(directory.path()), &options()).unwrap();
    check(&Database::open(directory.path(), &options()).unwrap());
}

#[test]
fn a_redaction_is_followed_within_seconds_also_in_the_newest_segment() {
    let directory = TempDir::new().unwrap();
    let database = Database::open(directory.path(), &Options::default()).unwrap();
    let position = database
        .commit(Commit::new([secret_event()]))
        .unwrap()
        .position;
    assert!(!files_with(directory.path(), &noise(4711)).is_empty());
    database.redact(position, false).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !files_with(directory.path(), &noise(4711)).is_empty() {
        assert!(Instant::now() < deadline, "the bytes are still there");
        std::thread::sleep(Duration::from_millis(100));
    }
    let event = database.event_at(position).unwrap().unwrap();
    assert_eq!(
        event.tags().collect::<Vec<_>>(),
        ["name:confidential", "kept"]
    );
    assert_eq!(database.read(&tagged("kept")).unwrap(), [event]);
}

#[test]
fn the_category_without_a_name_is_listed_once_and_hidden_when_it_is_empty() {
    let database = Database::in_memory(&Options::default()).unwrap();
    let categories = |limit| {
        let found = database.categories(&List::new(limit)).unwrap();
        found
            .into_iter()
            .map(|found| found.category)
            .collect::<Vec<_>>()
    };
    let write = |stream| {
        let event = NewEvent::new(stream, "Written", "{}");
        database.commit(Commit::new([event])).unwrap();
    };
    write("-1");
    assert_eq!(
        (categories(1), categories(9)),
        (vec![String::new()], vec![String::new()])
    );
    write("a-1");
    assert_eq!(categories(9), ["", "a"]);
    database.delete_stream("-1", None).unwrap();
    assert_eq!(
        (categories(1), categories(9)),
        (vec!["a".to_owned()], vec!["a".to_owned()])
    );
    assert!(categories(0).is_empty());
}

#[test]
fn what_was_deleted_can_be_redacted_while_the_log_has_it() {
    let directory = TempDir::new().unwrap();
    let database = Database::open(directory.path(), &options()).unwrap();
    fill(&database, 300);
    let commit = Commit::new([secret_event()]);
    let position = database.commit(commit).unwrap().position;
    fill(&database, 300);
    database.delete_stream("user-1", None).unwrap();
    assert_eq!(database.event_at(position).unwrap(), None);
    assert!(database.redact(position, true).unwrap());
    // It is not dropped before some minutes have passed, but says nothing any more.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !files_with(directory.path(), &noise(4711)).is_empty() {
        assert!(Instant::now() < deadline, "the bytes are still there");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(database.event_at(position).unwrap(), None);
    database.compact().unwrap();
    let gone = database.redact(position, true).unwrap_err().to_string();
    assert!(gone.contains("there is no event at position"), "{gone}");
    database.close().unwrap();
    check_sound(directory.path());
}
