//! Clocks that are set: deadlines are where the wall clock puts them, whatever it said before.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use trefoil::{Clock, Database, ManualTime, Options, Reply, Selection, Timestamp};

use super::{append, bulk, look, run, transaction};

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The first moment of these tests.
const START: Timestamp = Timestamp(1_700_000_000_000_000_000);

fn later(time: Timestamp, by: Duration) -> Timestamp {
    Timestamp(time.0 + i64::try_from(by.as_nanos()).unwrap())
}

fn options(time: &Arc<ManualTime>) -> Options {
    Options::default().with_clock(Clock::new(time.clone()))
}

/// A database in a directory in which an event and a key were written while the clock was a year
/// ahead. The clock is right again.
fn after_a_jump(directory: &std::path::Path) -> (Database, Arc<ManualTime>) {
    let time = ManualTime::new(START);
    let db = Database::open(directory, &options(&time)).unwrap();
    time.set(later(START, YEAR));
    let mut write = transaction(&["SET ahead 1 PX 60000"]);
    write.steps.push(append("account-1", None));
    db.transact(write).unwrap();
    time.set(START);
    (db, time)
}

fn integer(db: &Database, line: &str) -> i64 {
    match look(db, line) {
        Reply::Integer(number) => number,
        other => panic!("{line}: {other:?}"),
    }
}

/// Waits until the background has made this true.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_deadline_that_is_set_after_a_jump_was_corrected_is_as_near_as_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let (mut db, mut time) = after_a_jump(directory.path());
    for opened_again in [false, true] {
        if opened_again {
            db.close().unwrap();
            time = ManualTime::new(time_of(&time));
            db = Database::open(directory.path(), &options(&time)).unwrap();
        }
        run(&db, &["SET key 1 PX 60000"]);
        assert_eq!(integer(&db, "PTTL key"), 60_000);
        let year = i64::try_from(YEAR.as_millis()).unwrap();
        assert!(
            integer(&db, "PTTL ahead") > year - 600_000,
            "what was set ahead keeps its time"
        );
        time.advance(Duration::from_millis(59_999));
        assert_eq!(look(&db, "GET key"), bulk("1"));
        time.advance(Duration::from_millis(1));
        assert_eq!(look(&db, "GET key"), Reply::Nil);
        assert_eq!(run(&db, &["EXISTS key"]).replies, [Reply::Integer(0)]);
        wait_until("the key is removed", || integer(&db, "DBSIZE") == 1);
    }
}

fn time_of(time: &Arc<ManualTime>) -> Timestamp {
    Clock::new(time.clone()).now()
}

#[test]
fn events_after_a_jump_have_no_earlier_time_and_the_clock_says_how_far_it_is_behind() {
    let directory = tempfile::tempdir().unwrap();
    let (db, time) = after_a_jump(directory.path());
    db.transact(super::Transaction::default().with_steps([append("account-1", None)]))
        .unwrap();
    let events = db.read(&Selection::all()).unwrap();
    let times: Vec<_> = events.iter().map(|event| event.time()).collect();
    assert_eq!(times, [later(START, YEAR); 2]);
    db.close().unwrap();
    let options = options(&time);
    let db = Database::open(directory.path(), &options).unwrap();
    assert_eq!(options.clock.behind(), YEAR);
    db.close().unwrap();
}

#[test]
fn a_hold_that_began_after_a_jump_was_corrected_ends_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let (db, time) = after_a_jump(directory.path());
    run(&db, &["SEATS.INIT 1 A ROWS 3 SEATS 4 PRICE 10"]);
    run(&db, &["SEATS.RESERVE 1 A b1 u1 SEATS 1-1 HOLD 10"]);
    time.advance(Duration::from_secs(9));
    sleep(Duration::from_millis(10));
    assert_eq!(look(&db, "HGET booking:b1 status"), bulk("RESERVED"));
    time.advance(Duration::from_secs(1));
    wait_until("the hold ends", || {
        look(&db, "HGET booking:b1 status") == bulk("EXPIRED")
    });
}

#[test]
fn a_jump_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let time = ManualTime::new(START);
    let options = options(&time);
    let _db = Database::open(directory.path(), &options).unwrap();
    assert_eq!(options.clock.n_jumps(), 0);
    time.set(later(START, YEAR));
    wait_until("the jump is seen", || options.clock.n_jumps() == 1);
    time.set(START);
    wait_until("the way back is seen", || options.clock.n_jumps() == 2);
}
