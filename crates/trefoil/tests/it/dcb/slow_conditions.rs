//! A condition that takes long is looked into beside the writer. What is written meanwhile, however
//! much, still counts.

use std::thread;

use tempfile::TempDir;
use trefoil::{Commit, Committed, Database, Error, NewEvent, Options, Query, QueryItem, Result};

use crate::waiting::wait_for_all;

const ROUNDS: usize = 8;

fn event(tag: &str) -> NewEvent {
    NewEvent::without_stream("Counted", "1").with_tag(tag)
}

/// Two long lists that never meet, asked for often, and at last a tag that nobody has yet.
fn slow(late: &str) -> Query {
    let item = |number: usize| {
        let item = QueryItem::any().of_type("Counted");
        item.of_type(format!("Other{number}"))
            .tagged("even")
            .tagged("odd")
    };
    let items = (0..60).map(item);
    items.chain([QueryItem::any().tagged(late)]).collect()
}

/// Appends more than the writer looks at by itself, then the event that must not be there.
fn interfere(database: &Database, late: &str) -> u64 {
    for batch in 0..6 {
        let events = (0..400).map(|number| event(["even", "odd"][(batch + number) % 2]));
        database.commit(Commit::new(events)).unwrap();
    }
    database
        .commit(Commit::new([event(late)]))
        .unwrap()
        .position
}

fn assert_serial(answer: Result<Committed>, late: u64) -> bool {
    match answer {
        Ok(committed) => {
            assert!(
                committed.position < late,
                "{late} was passed over: {committed:?}"
            );
            false
        }
        Err(Error::ConditionFailed { position, .. }) => {
            assert_eq!(position, late);
            true
        }
        Err(error) => panic!("{error:?}"),
    }
}

#[test]
fn what_is_written_while_a_condition_is_looked_into_counts() {
    let directory = TempDir::new().unwrap();
    let options = Options::default().with_tail_events_max(500);
    let database = Database::open(directory.path(), &options).unwrap();
    let events = (0..20_000).map(|number| event(["even", "odd"][number % 2]));
    database.commit(Commit::new(events)).unwrap();
    let mut n_refused = 0;
    for round in 0..ROUNDS {
        let late = format!("late:{round}");
        let commit = Commit::new([event("decided")]).fail_if_any(slow(&late));
        let database = &database;
        let (blocking, waiting, late) = thread::scope(|scope| {
            let same = commit.clone();
            let blocking = scope.spawn(|| database.commit(commit));
            let waiting = scope.spawn(|| wait_for_all([database.commit_async(same)]).remove(0));
            let late = interfere(database, &late);
            (blocking.join().unwrap(), waiting.join().unwrap(), late)
        });
        n_refused += usize::from(assert_serial(blocking, late));
        n_refused += usize::from(assert_serial(waiting, late));
    }
    eprintln!("{n_refused} of {} came too late", 2 * ROUNDS);
    assert!(
        n_refused > 0,
        "no condition took as long as the appends beside it"
    );
    let decided = Query::from(QueryItem::any().tagged("decided"));
    let decided = database.read(&trefoil::Selection::query(decided)).unwrap();
    assert_eq!(decided.len(), 2 * ROUNDS - n_refused);
}
