//! State and events in one commit: what a transaction promises.

mod applications;
mod clock;
mod fuzz;
mod moments;
mod property;
mod seats;

use std::time::{Duration, Instant};

use bytes::Bytes;
use trefoil::{
    Call, Condition, Database, Error, Executed, Guard, NewEvent, Options, Query, QueryItem, Reply,
    Result, Selection, Step, Transaction, Wanted,
};

use crate::waiting::wait_for_all;

use crate::claim;

fn call(line: &str) -> Call {
    let words = line
        .split_whitespace()
        .map(|word| Bytes::from(word.to_owned()));
    let commands = Options::default().commands;
    commands.call(words.collect()).unwrap().unwrap()
}

fn transaction(lines: &[&str]) -> Transaction {
    Transaction::default().with_steps(lines.iter().map(|line| Step::Call(call(line))))
}

fn append(stream: &str, expected: Option<i64>) -> Step {
    let event = Box::new(NewEvent::new(stream, "Happened", "{}"));
    Step::Append { event, expected }
}

fn run(db: &Database, lines: &[&str]) -> Executed {
    db.transact(transaction(lines).lenient()).unwrap()
}

fn look(db: &Database, line: &str) -> Reply {
    db.look(&[call(line)]).unwrap().remove(0)
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(Bytes::from(text.to_owned()))
}

fn memory() -> Database {
    Database::in_memory(&Options::default()).unwrap()
}

#[test]
fn commands_and_events_are_one_commit() {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open(directory.path(), &Options::default()).unwrap();
    let mut reserve = transaction(&["HINCRBY stats available -1", "SETBIT seats 5 1"]);
    reserve.steps.push(append("seats-1", Some(-1)));
    let executed = db.transact(reserve).unwrap();
    assert_eq!(executed.commit, Some(1));
    let position = Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]);
    assert_eq!(
        executed.replies,
        [Reply::Integer(-1), Reply::Integer(0), position]
    );
    assert_eq!(executed.events.len(), 1);
    for _ in 0..2 {
        db.close().unwrap();
        let db = Database::open(directory.path(), &Options::default()).unwrap();
        assert_eq!(look(&db, "HGET stats available"), bulk("-1"));
        assert_eq!(look(&db, "GETBIT seats 5"), Reply::Integer(1));
        assert_eq!(db.read(&Selection::stream("seats-1")).unwrap().len(), 1);
        // Once from the log, once from the map.
        db.checkpoint().unwrap();
        db.close().unwrap();
    }
}

#[test]
fn a_command_that_fails_leaves_nothing_behind_and_the_others_take_effect() {
    let db = memory();
    run(&db, &["SET text abc"]);
    let executed = run(&db, &["INCR count", "HSET text f v", "INCR count"]);
    assert_eq!(executed.replies[0], Reply::Integer(1));
    assert!(matches!(&executed.replies[1], Reply::Error(text) if text.starts_with("WRONGTYPE")));
    assert_eq!(executed.replies[2], Reply::Integer(2));
    assert_eq!(look(&db, "GET count"), bulk("2"));
}

#[test]
fn a_transaction_that_only_reads_writes_nothing_though_it_has_an_id() {
    let db = memory();
    run(&db, &["SET text abc"]);
    for _ in 0..2 {
        let mut read = transaction(&["GET text"]);
        read.id = Some("once".into());
        let executed = db.transact(read).unwrap();
        assert_eq!((executed.commit, executed.replayed), (None, false));
        assert_eq!(executed.replies, [bulk("abc")]);
    }
    assert_eq!(db.last_commit().unwrap(), 1);
}

#[test]
fn a_transaction_that_fails_changes_nothing_unless_it_is_lenient() {
    let db = memory();
    run(&db, &["SET text abc"]);
    let mut strict = transaction(&["INCR count", "HSET text f v"]);
    strict.steps.push(append("log-1", None));
    // One that only reads needs no writer, and is answered alike.
    for strict in [strict, transaction(&["GET text", "HGET text f"])] {
        let failed = db.transact(strict).unwrap_err();
        assert!(
            matches!(failed, Error::CommandFailed { index: 1, .. }),
            "{failed}"
        );
    }
    assert_eq!(look(&db, "EXISTS count"), Reply::Integer(0));
    assert_eq!(db.head().unwrap(), 0);
    assert_eq!(db.last_commit().unwrap(), 1);
}

#[test]
fn conditions_on_log_and_state_guard_everything() {
    let db = memory();
    run(&db, &["SET price 10", "HSET seat owner ada"]);
    db.transact(Transaction::default().with_steps([append("show-1", None)]))
        .unwrap();
    let attempt = |guards: Vec<Guard>, conditions: Vec<Condition>| -> Result<Executed> {
        db.transact(
            transaction(&["INCR sold"])
                .with_guards(guards)
                .with_conditions(conditions),
        )
    };
    let guard = |key: &'static str, field: Option<&'static str>, wanted| Guard {
        key: Bytes::from_static(key.as_bytes()),
        field: field.map(|field| Bytes::from_static(field.as_bytes())),
        wanted,
    };
    let ten = || Wanted::Equal(Bytes::from_static(b"10"));
    let holds = vec![
        guard("price", None, ten()),
        guard("price", None, Wanted::Present),
        guard("other", None, Wanted::Absent),
        guard(
            "seat",
            Some("owner"),
            Wanted::NotEqual(Bytes::from_static(b"bob")),
        ),
        guard("seat", Some("buyer"), Wanted::Absent),
    ];
    attempt(holds.clone(), vec![]).unwrap();
    for (index, held) in holds.into_iter().enumerate() {
        let opposite = match held.wanted {
            Wanted::Present => Wanted::Absent,
            Wanted::Absent => Wanted::Present,
            Wanted::Equal(value) => Wanted::NotEqual(value),
            Wanted::NotEqual(value) => Wanted::Equal(value),
        };
        let fails = Guard {
            wanted: opposite,
            ..held
        };
        let refused = attempt(vec![fails], vec![]).unwrap_err();
        assert!(
            matches!(refused, Error::GuardFailed { guard: 0 }),
            "{index}"
        );
    }
    let version = |expected| Condition::StreamVersion {
        stream: "show-1".into(),
        expected,
    };
    assert!(attempt(vec![], vec![version(3)]).is_err());
    let any = Query::from(QueryItem::any().of_type("Happened"));
    assert!(attempt(vec![], vec![Condition::no_match(any.clone())]).is_err());
    attempt(vec![], vec![version(0), Condition::no_match_after(any, 1)]).unwrap();
    assert_eq!(look(&db, "GET sold"), bulk("2"));
}

#[test]
fn expected_versions_count_the_events_of_earlier_steps() {
    let db = memory();
    let twice = |first, second| {
        Transaction::default().with_steps([append("a-1", Some(first)), append("a-1", Some(second))])
    };
    assert!(db.transact(twice(-1, -1)).is_err());
    assert_eq!(db.head().unwrap(), 0);
    db.transact(twice(-1, 0)).unwrap();
    assert!(db.transact(twice(1, 1)).is_err());
    assert_eq!(db.version("a-1").unwrap(), Some(1));
}

#[test]
fn a_transaction_with_an_id_is_executed_once() {
    let directory = tempfile::tempdir().unwrap();
    let named = || {
        let mut named = transaction(&["INCR count"]);
        named.steps.push(append("log-1", None));
        named.id = Some(Bytes::from_static(b"booking-7"));
        named
    };
    let db = Database::open(directory.path(), &Options::default()).unwrap();
    let first = db.transact(named()).unwrap();
    db.close().unwrap();
    let db = Database::open(directory.path(), &Options::default()).unwrap();
    for _ in 0..2 {
        let again = db.transact(named()).unwrap();
        assert!(again.replayed);
        assert_eq!(again.replies, first.replies);
        assert_eq!(again.events, first.events);
        assert_eq!(again.commit, first.commit);
        db.checkpoint().unwrap();
    }
    assert_eq!(look(&db, "GET count"), bulk("1"));
    assert_eq!(db.head().unwrap(), 1);
}

#[test]
fn a_watched_key_that_changed_stops_the_transaction() {
    let db = memory();
    let key = [Bytes::from_static(b"k")];
    let mut attempt = transaction(&["SET other 1"]);
    attempt.watch = Some(db.watch(&key).unwrap());
    run(&db, &["SET unrelated 1"]);
    db.transact(attempt).unwrap();
    for change in ["SET k 1", "SET k 1", "DEL k", "HSET k f 1", "FLUSHDB"] {
        let mut attempt = transaction(&["SET other 1"]);
        attempt.watch = Some(db.watch(&key).unwrap());
        run(&db, &[change]);
        let refused = db.transact(attempt).unwrap_err();
        assert!(matches!(refused, Error::WatchedKeyChanged), "{change}");
    }
    // What was not there is not changed by removing everything.
    let mut attempt = transaction(&["SET other 1"]);
    attempt.watch = Some(db.watch(&key).unwrap());
    run(&db, &["FLUSHDB"]);
    db.transact(attempt).unwrap();
}

#[test]
fn what_changes_nothing_is_no_commit() {
    let db = memory();
    run(&db, &["SET k v"]);
    let executed = run(&db, &["GET k", "DEL missing", "SET k v"]);
    assert_eq!(executed.commit, None);
    assert_eq!(db.last_commit().unwrap(), 1);
}

/// Waits for what the background does.
fn wait_until(what: &str, is_done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_done() {
        assert!(Instant::now() < deadline, "never {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn expired_keys_are_removed_in_the_background() {
    let db = memory();
    run(&db, &["SET short v PX 30", "HSET kept f v"]);
    std::thread::sleep(Duration::from_millis(40));
    assert_eq!(look(&db, "GET short"), Reply::Nil);
    wait_until("cleaned", || look(&db, "DBSIZE") == Reply::Integer(1));
    assert_eq!(look(&db, "HGET kept f"), bulk("v"));
}

#[test]
fn garbage_is_removed_by_a_commit_of_the_background() {
    let db = memory();
    run(&db, &["SADD big a b c d"]);
    let deleted = run(&db, &["DEL big"]);
    assert_eq!(deleted.commit, Some(2));
    wait_until("cleaned", || db.last_commit().unwrap() == 3);
}

#[test]
fn removing_all_events_keeps_the_state() {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open(directory.path(), &Options::default()).unwrap();
    run(
        &db,
        &[
            "SET text abc",
            "SADD members a b",
            "EXPIREAT members 9999999999",
        ],
    );
    db.checkpoint().unwrap();
    let mut later = transaction(&["HSET hash f v"]);
    later.steps.push(append("log-1", None));
    db.transact(later).unwrap();
    db.clear().unwrap();
    for _ in 0..2 {
        assert_eq!(db.head().unwrap(), 0);
        assert_eq!(look(&db, "DBSIZE"), Reply::Integer(3));
        assert_eq!(look(&db, "GET text"), bulk("abc"));
        assert_eq!(look(&db, "SCARD members"), Reply::Integer(2));
        assert_eq!(
            look(&db, "EXPIRETIME members"),
            Reply::Integer(9_999_999_999)
        );
        assert_eq!(look(&db, "HGET hash f"), bulk("v"));
        db.checkpoint().unwrap();
    }
    let mut next = transaction(&["APPEND text d"]);
    next.steps.push(append("log-1", Some(-1)));
    db.transact(next).unwrap();
    db.close().unwrap();
    let report = trefoil::tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
}

/// Whatever is in the way of removing all events, nothing is lost and writing goes on.
#[test]
fn removing_all_events_fails_without_consequences() {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open(directory.path(), &Options::default()).unwrap();
    let mut first = transaction(&["SET text a"]);
    first.steps.push(append("log-1", None));
    db.transact(first).unwrap();
    // Before the events that are there are let go of, and after it.
    for (obstacle, text) in [("2", "ab"), ("generation.new", "abc")] {
        let obstacle = directory.path().join(obstacle);
        match text {
            "ab" => std::fs::write(&obstacle, "").unwrap(),
            _ => std::fs::create_dir(&obstacle).unwrap(),
        }
        let failed = db.clear();
        assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
        let mut next = transaction(&[&format!("APPEND text {}", &text[text.len() - 1..])]);
        next.steps
            .push(append("log-1", Some(text.len() as i64 - 2)));
        db.transact(next).unwrap();
        assert_eq!(look(&db, "GET text"), bulk(text));
        assert_eq!(db.head().unwrap(), text.len() as u64);
        match text {
            "ab" => std::fs::remove_file(&obstacle).unwrap(),
            _ => std::fs::remove_dir(&obstacle).unwrap(),
        }
    }
    db.clear().unwrap();
    assert_eq!(
        (db.head().unwrap(), look(&db, "GET text")),
        (0, bulk("abc"))
    );
    db.close().unwrap();
    let report = trefoil::tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
}

#[test]
fn one_transaction_that_is_refused_does_not_touch_its_neighbours() {
    let db = memory();
    let mut refused = transaction(&["INCR count"]);
    refused.id = Some(Bytes::from(vec![b'x'; 300]));
    let together = vec![
        transaction(&["INCR count"]),
        refused,
        transaction(&["INCR count"]),
    ];
    let executed = wait_for_all([db.transact_all_async(together)])
        .remove(0)
        .unwrap();
    assert_eq!(executed.len(), 3);
    assert!(
        matches!(&executed[1], Err(Error::Invalid(_))),
        "{:?}",
        executed[1]
    );
    let last = executed[2].as_ref().unwrap();
    assert_eq!(last.replies, [Reply::Integer(2)]);
}

#[test]
fn a_time_that_cannot_be_noted_fails_its_commit_alone_and_keeps_nobody_out() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Database::open(directory.path(), &Options::default());
    // A directory in the place of the file.
    std::fs::create_dir(directory.path().join("due")).unwrap();
    let db = open().unwrap();
    let refused = db.transact(transaction(&["SET short v PX 100000"]));
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    run(&db, &["SET kept v"]);
    db.close().unwrap_err();
    let db = open().unwrap();
    assert_eq!(look(&db, "EXISTS short kept"), Reply::Integer(1));
}
