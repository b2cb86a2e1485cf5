//! Tests of readers and checkpoints: neither waits for the other, and neither changes what the other
//! has.

use bytes::Bytes;
use trefoil_core::Direction;
use trefoil_state::{Call, CommandMoment, Keyspace, Reply};

use super::View;
use crate::{Database, Options, Transaction};

fn call(line: &str) -> Call {
    let words = line
        .split_whitespace()
        .map(|word| Bytes::from(word.to_owned()));
    Call::new(words.collect()).unwrap().unwrap()
}

fn write(database: &Database, line: &str) {
    let executed = database.transact(Transaction::of_call(call(line))).unwrap();
    assert!(
        !matches!(executed.replies[0], Reply::Error(_)),
        "{executed:?}"
    );
}

/// Returns what a view answers, in which nothing expires.
fn ask(view: &mut View, line: &str) -> Reply {
    let mut keyspace = Keyspace::new(view, CommandMoment::default()).unwrap();
    call(line).run(&mut keyspace).unwrap()
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(Bytes::from(text.to_owned()))
}

fn n_entries(view: &View) -> usize {
    view.scan(b"s", b"t", Direction::Forwards).count()
}

/// A reader finds what there was while checkpoints change and remove what it has not read yet.
fn check(database: &Database) {
    let view = || View::new(&database.engine().unwrap().store);
    write(database, "SET changed 1");
    write(database, "SET removed 1");
    write(database, "SET kept 1");
    database.checkpoint().unwrap();
    let (mut early, mut read_before) = (view(), view());
    assert_eq!(ask(&mut read_before, "GET changed"), bulk("1"));
    assert_eq!(ask(&mut view(), "GET changed"), bulk("1"));
    for round in 2..5 {
        write(database, &format!("SET changed {round}"));
        write(database, "DEL removed");
        write(database, &format!("SET new{round} 1"));
        let mut unwritten = view();
        // This would never return if it waited for those who read.
        database.checkpoint().unwrap();
        for (view, changed, n) in [
            (&mut early, "1".to_owned(), 3),
            (&mut unwritten, round.to_string(), round + 1),
        ] {
            assert_eq!(ask(view, "GET changed"), bulk(&changed));
            assert_eq!(ask(view, "GET kept"), bulk("1"));
            assert_eq!(n_entries(view), n);
        }
        assert_eq!(ask(&mut early, "GET removed"), bulk("1"));
        assert_eq!(ask(&mut early, "GET new2"), Reply::Nil);
        assert_eq!(ask(&mut read_before, "GET removed"), bulk("1"));
        assert_eq!(ask(&mut unwritten, "GET removed"), Reply::Nil);
        let mut late = view();
        assert_eq!(ask(&mut late, "GET changed"), bulk(&round.to_string()));
        assert_eq!(ask(&mut late, "GET removed"), Reply::Nil);
    }
}

#[test]
fn a_checkpoint_and_a_reader_do_not_mind_each_other() {
    check(&Database::in_memory(&Options::default()).unwrap());
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), &Options::default()).unwrap();
    check(&database);
    database.close().unwrap();
}
