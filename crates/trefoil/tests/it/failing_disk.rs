//! A database whose disk fails, is full, or changes what was written.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use trefoil::{Commit, Committed, Database, Error, NewEvent, Options, Result, Selection};
use trefoil_storage::local::disk::SimulatedDisk;

use crate::claim;

struct Failing {
    directory: tempfile::TempDir,
    /// Where the disk keeps what may be taken back.
    _attic: tempfile::TempDir,
    disk: Arc<SimulatedDisk>,
    database: Database,
}

fn failing() -> Failing {
    let directory = tempfile::tempdir().unwrap();
    let attic = tempfile::tempdir().unwrap();
    let disk = Arc::new(SimulatedDisk::new(attic.path(), 1));
    let options = Options::default().with_disk(Arc::clone(&disk) as _);
    let database = Database::open(directory.path(), &options).unwrap();
    Failing {
        directory,
        _attic: attic,
        disk,
        database,
    }
}

fn append(database: &Database, number: u64) -> Result<Committed> {
    let event = NewEvent::new("account-1", "Deposited", format!(r#"{{"n":{number}}}"#));
    database.commit(Commit::new([event]))
}

/// The numbers of the events.
fn numbers(database: &Database) -> Vec<String> {
    let events = database.read(&Selection::all()).unwrap();
    let data = events.iter().map(|event| event.data());
    data.map(|data| String::from_utf8_lossy(data).into_owned())
        .collect()
}

#[test]
fn a_commit_for_which_there_is_no_room_leaves_nothing_and_later_ones_work() {
    let failing = failing();
    let (disk, database) = (&failing.disk, &failing.database);
    append(database, 1).unwrap();
    disk.fail_writes(Some((ErrorKind::StorageFull, 100)));
    for _ in 0..3 {
        let refused = append(database, 2).unwrap_err();
        assert!(matches!(refused, Error::DiskFull(_)), "{refused}");
    }
    assert_eq!(database.refuses_writes(), None);
    disk.fail_writes(None);
    append(database, 3).unwrap();
    assert_eq!(numbers(database), [r#"{"n":1}"#, r#"{"n":3}"#]);
    database.close().unwrap();
}

#[test]
fn a_sync_without_room_is_unknown_and_the_database_opens_itself_again() {
    let failing = failing();
    let (disk, database) = (&failing.disk, &failing.database);
    append(database, 1).unwrap();
    disk.fail_syncs(Some(ErrorKind::StorageFull));
    let refused = append(database, 2).unwrap_err();
    assert!(matches!(refused, Error::Unknown { .. }), "{refused}");
    assert!(database.refuses_writes().is_some());
    let refused = append(database, 3).unwrap_err();
    assert!(
        matches!(refused, Error::Poisoned(_) | Error::Closed(_)),
        "{refused}"
    );
    disk.fail_syncs(None);
    let deadline = Instant::now() + Duration::from_secs(60);
    while database.refuses_writes().is_some() {
        assert!(Instant::now() < deadline, "it was not opened again");
        std::thread::sleep(Duration::from_millis(10));
    }
    append(database, 4).unwrap();
    let found = numbers(database);
    assert_eq!(found.first().unwrap(), r#"{"n":1}"#);
    assert_eq!(found.last().unwrap(), r#"{"n":4}"#);
    assert!(!found.contains(&r#"{"n":3}"#.to_owned()), "{found:?}");
    database.close().unwrap();
}

#[test]
fn after_another_error_nothing_is_written_before_the_database_is_opened_again() {
    let failing = failing();
    let (disk, database) = (&failing.disk, &failing.database);
    append(database, 1).unwrap();
    disk.fail_syncs(Some(ErrorKind::Other));
    let refused = append(database, 2).unwrap_err();
    assert!(matches!(refused, Error::Unknown { .. }), "{refused}");
    disk.fail_syncs(None);
    let operations = disk.n_operations();
    for _ in 0..3 {
        let refused = append(database, 3).unwrap_err();
        assert!(matches!(refused, Error::Poisoned(_)), "{refused}");
    }
    assert_eq!(disk.n_operations(), operations, "nothing is tried again");
    assert!(
        database
            .refuses_writes()
            .unwrap()
            .contains("the sync failed")
    );
    // What is there can be read.
    assert_eq!(numbers(database), [r#"{"n":1}"#]);
    database.reopen().unwrap();
    assert_eq!(database.refuses_writes(), None);
    append(database, 4).unwrap();
    let found = numbers(database);
    assert_eq!(found.last().unwrap(), r#"{"n":4}"#);
    database.close().unwrap();
    let closed = database.reopen().unwrap_err();
    assert!(matches!(closed, Error::Closed(_)), "{closed}");
}

#[test]
fn a_database_whose_directory_is_gone_is_not_begun_again() {
    let failing = failing();
    append(&failing.database, 1).unwrap();
    fs::remove_dir_all(failing.directory.path().join("1")).unwrap();
    let refused = failing.database.reopen().unwrap_err();
    assert!(refused.to_string().contains("missing"), "{refused}");
}

#[test]
fn a_database_in_memory_can_be_opened_again_too() {
    let database = Database::in_memory(&Options::default()).unwrap();
    append(&database, 1).unwrap();
    database.reopen().unwrap();
    append(&database, 2).unwrap();
    assert_eq!(numbers(&database).len(), 2);
}

fn segment(directory: &Path) -> PathBuf {
    directory.join("1/log/0000000001.segment")
}

/// Flips the last bit that was written to the only segment.
fn flip_last_bit(directory: &Path) -> Vec<u8> {
    let path = segment(directory);
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[last] ^= 1;
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&bytes[last..=last], last as u64).unwrap();
    bytes
}

#[test]
fn a_flipped_bit_in_the_last_commit_of_a_database_that_was_closed_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), &Options::default()).unwrap();
    append(&database, 1).unwrap();
    append(&database, 2).unwrap();
    database.close().unwrap();
    let bytes = flip_last_bit(directory.path());
    let refused = Database::open(directory.path(), &Options::default()).unwrap_err();
    assert!(matches!(refused, Error::Damaged(_)), "{refused}");
    assert!(!refused.to_string().contains("repair"), "{refused}");
    assert_eq!(fs::read(segment(directory.path())).unwrap(), bytes);
}

#[test]
fn a_flipped_bit_in_a_commit_that_the_index_knows_of_is_damage_after_a_crash_too() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), &Options::default()).unwrap();
    append(&database, 1).unwrap();
    append(&database, 2).unwrap();
    database.checkpoint().unwrap();
    database.close().unwrap();
    fs::remove_file(directory.path().join("1/log/seal")).unwrap();
    let bytes = flip_last_bit(directory.path());
    let refused = Database::open(directory.path(), &Options::default()).unwrap_err();
    assert!(matches!(refused, Error::Damaged(_)), "{refused}");
    assert!(!refused.to_string().contains("repair"), "{refused}");
    assert_eq!(fs::read(segment(directory.path())).unwrap(), bytes);
    trefoil::tools::repair(claim(directory.path()), &Options::default()).unwrap_err();
    assert_eq!(fs::read(segment(directory.path())).unwrap(), bytes);
}
