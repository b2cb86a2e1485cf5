//! Tests of the pool of open databases.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::time::timer::TimerThread;
use crate::{Clock, Commit, NewEvent};

fn id(text: &str) -> NamespaceId {
    NamespaceId::new(text).unwrap()
}

/// No deadlines of closed namespaces.
fn deadlines() -> Arc<ClosedDeadlines> {
    let timer = TimerThread::start(Clock::default()).unwrap();
    Arc::new(ClosedDeadlines::new(Arc::new(timer)))
}

/// A pool of in-memory databases that counts what is open.
struct Counted {
    pool: DatabasePool,
    opened: AtomicUsize,
}

impl Counted {
    fn new(open_max: usize) -> Self {
        Self {
            pool: DatabasePool::new(open_max, deadlines()),
            opened: AtomicUsize::new(0),
        }
    }

    fn get(&self, name: &str) -> Result<OpenDatabase> {
        self.pool.get(
            &id(name),
            || Ok(()),
            || Ok(()),
            || {
                self.opened.fetch_add(1, Ordering::SeqCst);
                Database::in_memory(&Options::default())
            },
        )
    }

    fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }
}

#[test]
fn the_least_recently_used_is_closed_and_opened_again_when_wanted() {
    let counted = Counted::new(2);
    let first = Database::clone(&counted.get("a").unwrap());
    counted.get("b").unwrap();
    counted.get("a").unwrap();
    assert_eq!(counted.opened(), 2);
    // "b" goes, "a" stays.
    counted.get("c").unwrap();
    counted.get("a").unwrap();
    assert_eq!(counted.opened(), 3);
    let mut subscription = first.subscribe(trefoil_core::Selection::all());
    assert!(subscription.next_timeout(Duration::ZERO).is_ok());
    for round in 0..3 {
        for number in 0..10 {
            counted.get(&format!("n{number}")).unwrap();
        }
        assert_eq!(counted.opened(), 3 + 10 * (round + 1));
    }
    assert!(
        matches!(
            subscription.next_timeout(Duration::ZERO),
            Err(Error::Closed(_))
        ),
        "it was closed"
    );
}

#[test]
fn what_is_held_is_not_closed_and_the_limit_is_named() {
    let counted = Counted::new(2);
    let a = counted.get("a").unwrap();
    let b = counted.get("b").unwrap();
    let copy = b.clone();
    drop(b);
    let error = counted.get("c").unwrap_err();
    assert!(
        matches!(&error, Error::Overloaded(text) if text.contains('2')),
        "{error}"
    );
    counted.get("a").unwrap();
    drop(copy);
    counted.get("c").unwrap();
    a.commit(Commit::new([NewEvent::new("x-1", "X", "{}")]))
        .unwrap();
}

#[test]
fn users_of_one_namespace_share_its_opening_and_others_do_not_wait() {
    let counted = Counted::new(8);
    let opening = Barrier::new(2);
    let opened_other = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            counted.pool.get(
                &id("slow"),
                || Ok(()),
                || Ok(()),
                || {
                    counted.opened.fetch_add(1, Ordering::SeqCst);
                    opening.wait();
                    opened_other.wait();
                    Database::in_memory(&Options::default())
                },
            )
        });
        opening.wait();
        for _ in 0..4 {
            scope.spawn(|| counted.get("slow").unwrap());
        }
        // This would hang if the opening of "slow" held a lock.
        counted.get("other").unwrap();
        opened_other.wait();
    });
    assert_eq!(counted.opened(), 2);
}

#[test]
fn a_database_that_cannot_be_opened_harms_nobody_and_is_tried_again() {
    let counted = Counted::new(2);
    let fail = || Err(Error::invalid("broken"));
    let failed = counted
        .pool
        .get(&id("a"), || Ok(()), || Ok(()), fail)
        .unwrap_err();
    assert_eq!(failed.to_string(), "broken");
    counted.get("b").unwrap();
    counted.get("a").unwrap();
    assert_eq!(counted.opened(), 2);
}

#[test]
fn closing_closes_all_and_opens_none() {
    let counted = Counted::new(2);
    let held = counted.get("a").unwrap();
    let mut subscription = held.subscribe(trefoil_core::Selection::all());
    counted.pool.close(&Clock::default()).unwrap();
    assert!(matches!(
        subscription.next_timeout(Duration::ZERO),
        Err(Error::Closed(_))
    ));
    assert!(matches!(counted.get("b"), Err(Error::Closed(_))));
}

#[test]
fn what_something_is_due_of_takes_no_place_and_is_closed_again() {
    let counted = Counted::new(2);
    let _held = counted.get("a").unwrap();
    let looked_after = counted.pool.look_after(
        || counted.get("c"),
        |_| {
            // Two others are open besides, and no more.
            let _held = counted.get("b").unwrap();
            assert!(counted.get("d").is_err());
            assert!(counted.pool.is_open(&id("c")));
            Ok(())
        },
    );
    looked_after.unwrap();
    let open = ["a", "b", "c"].map(|name| counted.pool.is_open(&id(name)));
    assert_eq!(open.into_iter().filter(|is_open| *is_open).count(), 2);
    assert!(open[0], "it is held");
}

#[test]
fn what_could_not_be_opened_stays_due() {
    let closed = deadlines();
    let pool = DatabasePool::new(2, Arc::clone(&closed));
    closed.note(id("a"), 7);
    let fail = || Err(Error::invalid("broken"));
    assert!(pool.get(&id("a"), || Ok(()), || Ok(()), fail).is_err());
    assert_eq!(closed.take_due(8), Some(id("a")));
}

#[test]
fn a_request_that_must_not_wait_gets_only_what_is_open() {
    let counted = Counted::new(1);
    assert!(counted.pool.opened(&id("a")).is_none());
    let opening = Barrier::new(2);
    let looked = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let open = || {
                opening.wait();
                looked.wait();
                Database::in_memory(&Options::default())
            };
            counted
                .pool
                .get(&id("a"), || Ok(()), || Ok(()), open)
                .unwrap();
        });
        opening.wait();
        // This would hang if it waited for the opening.
        assert!(counted.pool.opened(&id("a")).is_none());
        looked.wait();
    });
    let held = counted.pool.opened(&id("a")).unwrap();
    assert!(counted.get("b").is_err(), "what it gets is held");
    drop(held);
    counted.get("b").unwrap();
    assert!(counted.pool.opened(&id("a")).is_none(), "it was closed");
}
