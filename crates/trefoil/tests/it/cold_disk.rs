//! Events that are not in memory: a thread that serves others does not wait for them, and a disk that
//! cannot read them fails the reads of them.

use std::io::ErrorKind;
use std::sync::Arc;

use trefoil::{Commit, Database, Error, Event, NewEvent, Options, Result, Selection};
use trefoil_storage::local::disk::SimulatedDisk;

use crate::waiting::wait_for_all;

const N_EVENTS: u64 = 200;

struct Cold {
    database: Database,
    disk: Arc<SimulatedDisk>,
    _directories: [tempfile::TempDir; 2],
}

/// A database that was just opened on a disk of which nothing is in memory.
fn cold() -> Cold {
    let [directory, attic] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let disk = Arc::new(SimulatedDisk::new(attic.path(), 1));
    let options = Options::default().with_disk(Arc::clone(&disk) as _);
    let database = Database::open(directory.path(), &options).unwrap();
    for number in 0..N_EVENTS {
        let data = format!(r#"{{"n":{number},"text":"{}"}}"#, "x".repeat(300));
        let event = NewEvent::new("account-1", "Deposited", data);
        database.commit(Commit::new([event])).unwrap();
    }
    database.close().unwrap();
    let database = Database::open(directory.path(), &options).unwrap();
    disk.set_cold(true);
    Cold {
        database,
        disk,
        _directories: [directory, attic],
    }
}

/// Reads an event, and says on which thread.
fn read_on(
    database: &Database,
    read: impl Fn(&Database) -> Result<Event> + Send + 'static,
) -> (u64, Option<String>) {
    let soon = database.soon(move |database| {
        let event = read(database)?;
        let thread = std::thread::current();
        Ok((event.position(), thread.name().map(str::to_owned)))
    });
    wait_for_all([soon]).remove(0).unwrap()
}

#[test]
fn what_is_not_in_memory_is_read_by_a_thread_that_waits() {
    let Cold { database, .. } = cold();
    let this_thread = std::thread::current().name().map(str::to_owned);
    let waiting = Some("trefoil-wait".to_owned());
    let at = |position: u64| move |database: &Database| Ok(database.event_at(position)?.unwrap());
    assert_eq!(read_on(&database, at(5)), (5, waiting.clone()));
    assert_eq!(read_on(&database, at(5)), (5, this_thread.clone()));
    assert_eq!(read_on(&database, at(100)), (100, waiting.clone()));
    // The other reads of events do not wait either.
    let id = database.event_at(150).unwrap().unwrap().id();
    let with_id = move |database: &Database| Ok(database.event_with_id(&id)?.unwrap());
    assert_eq!(read_on(&database, with_id), (150, this_thread.clone()));
    let page = |database: &Database| {
        let read = Selection::stream("account-1").from_position(30).limit(1);
        Ok(database.read_page(&read, 1000)?.events.remove(0))
    };
    assert_eq!(read_on(&database, page), (30, waiting));
    assert_eq!(read_on(&database, page), (30, this_thread));
    let whole = database.at_hand(|database| database.read(&Selection::all()));
    assert!(whole.unwrap().is_none());
    assert_eq!(
        database.read(&Selection::all()).unwrap().len() as u64,
        N_EVENTS
    );
}

#[test]
fn a_read_that_the_disk_fails_is_an_error_and_others_are_not() {
    let Cold { database, disk, .. } = cold();
    database.event_at(5).unwrap().unwrap();
    disk.fail_reads(Some(ErrorKind::Other));
    let failed = database.event_at(100).unwrap_err();
    assert!(matches!(failed, Error::Io { .. }), "{failed:?}");
    assert!(
        failed.to_string().contains("0000000001.segment"),
        "{failed}"
    );
    let soon = database.soon(|database| database.event_at(100));
    assert!(matches!(
        wait_for_all([soon]).remove(0),
        Err(Error::Io { .. })
    ));
    assert_eq!(database.event_at(5).unwrap().unwrap().position(), 5);
    // Who writes needs nothing that cannot be read.
    let event = NewEvent::new("account-1", "Deposited", "{}");
    database.commit(Commit::new([event])).unwrap();
    disk.fail_reads(None);
    assert_eq!(database.event_at(100).unwrap().unwrap().position(), 100);
}
