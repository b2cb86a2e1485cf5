//! Positions at the end of what numbers can hold.

use tempfile::TempDir;
use trefoil::{
    Commit, Database, Error, EventId, ImportedEvent, NewEvent, Options, Result, Selection,
    Timestamp,
};

fn imported(position: u64, stream_position: u64) -> ImportedEvent {
    let event = NewEvent::new("far-1", "E", "{}").with_id(EventId::from_u128(7));
    let time = Timestamp(0);
    ImportedEvent {
        tracking: None,
        is_redacted: false,
        event,
        stream_position,
        position,
        time,
    }
}

fn write(database: &Database) -> Result<trefoil::Committed> {
    database.commit(Commit::new([NewEvent::new("far-1", "E", "{}")]))
}

/// An import that leaves no room for the next event is refused, or the next event is; the
/// database works on either way.
#[test]
fn positions_do_not_overflow() {
    for (position, stream_position) in [
        (u64::MAX, 0),
        (u64::MAX - 1, 0),
        (i64::MAX as u64, 0),
        (1, u64::MAX),
        (1, u64::MAX - 1),
        (1, i64::MAX as u64),
        (u64::MAX, u64::MAX),
    ] {
        let directory = TempDir::new().unwrap();
        let database = Database::open(directory.path(), &Options::default()).unwrap();
        let case = (position, stream_position);
        match database.import(vec![imported(position, stream_position)]) {
            Ok(()) => assert_eq!(database.head().unwrap(), position),
            Err(Error::ImportStopped { index: 0, .. }) => assert_eq!(database.head().unwrap(), 0),
            Err(other) => panic!("{case:?}: {other}"),
        }
        for _ in 0..3 {
            let head = database.head().unwrap();
            match write(&database) {
                Ok(committed) => {
                    assert_eq!(Some(committed.position), head.checked_add(1), "{case:?}");
                    let version = database.version("far-1").unwrap();
                    assert_eq!(committed.events[0].stream_position, version, "{case:?}");
                    let expected = i64::try_from(version.unwrap()).expect("a version to expect");
                    let next = NewEvent::new("far-1", "E", "{}");
                    let commit = Commit::new([next]).expect_version("far-1", expected);
                    database.commit(commit).unwrap();
                }
                Err(Error::Invalid(_)) => assert_eq!(database.head().unwrap(), head, "{case:?}"),
                Err(other) => panic!("{case:?}: {other}"),
            }
        }
        let all = database.read(&Selection::all()).unwrap();
        database.close().unwrap();
        let database = Database::open(directory.path(), &Options::default()).unwrap();
        assert_eq!(database.read(&Selection::all()).unwrap(), all, "{case:?}");
    }
}

/// An id that the server made is known wherever its event stands.
#[test]
fn made_ids_are_found_at_positions_that_do_not_fit_into_them() {
    for position in [(1u64 << 40) - 2, 1 << 40, 1 << 50] {
        let directory = TempDir::new().unwrap();
        let database = Database::open(directory.path(), &Options::default()).unwrap();
        if database.import(vec![imported(position, 0)]).is_err() {
            continue;
        }
        for _ in 0..4 {
            let first = write(&database).unwrap();
            let again = NewEvent::new("far-1", "E", "{}").with_id(first.events[0].id);
            let second = database.commit(Commit::new([again])).unwrap();
            assert!(second.replayed, "{position}: {second:?}");
            assert_eq!(second.events, first.events);
        }
    }
}
