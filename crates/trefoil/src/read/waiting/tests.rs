//! What is left in the table when those who waited are gone, and when the log has ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use trefoil_core::{Commit, NewEvent, Query, QueryItem, Selection};

use super::{SubscriberWait, WaitPlace, WaitTable, WaitingSubscribers};
use crate::index::TermKind;
use crate::{Database, Options};

fn enter(waiting: &Arc<WaitingSubscribers>, read: Selection) -> Option<WaitPlace> {
    waiting.enter(&Arc::new(SubscriberWait::new(read)), || 0)
}

/// How many wait, and under how many terms.
fn counts(waiting: &WaitingSubscribers) -> (usize, usize) {
    let WaitTable {
        by_term, n_of_kind, ..
    } = &*waiting.table.lock();
    let n_terms = by_term.values().map(|same| same.len()).sum();
    assert_eq!(n_terms, n_of_kind.iter().sum::<usize>());
    assert!(by_term.values().all(|same| !same.is_empty()));
    (waiting.n_waiting.load(Ordering::Relaxed), n_terms)
}

fn of_many_terms() -> Selection {
    let tag = |n: usize| QueryItem::any().tagged(format!("tag{n}"));
    let query: Query = (0..10).map(tag).collect();
    Selection::query(query.or(QueryItem::any().of_type("A").of_type("B")))
}

#[test]
fn who_leaves_or_is_told_leaves_nothing_behind() {
    let database = Database::in_memory(&Options::default()).unwrap();
    let engine = database.engine().unwrap();
    let waiting = &engine.writer.waiting;
    let places: Vec<_> = (0..5).map(|_| enter(waiting, of_many_terms())).collect();
    assert_eq!(counts(waiting), (5, 60));
    drop(places);
    assert_eq!(counts(waiting), (0, 0));

    let told = enter(waiting, of_many_terms());
    let other = enter(waiting, Selection::category("other"));
    let event = NewEvent::new("a-1", "B", "{}").with_tags(["tag3", "tag5"]);
    database.commit(Commit::new([event])).unwrap();
    assert_eq!(counts(waiting), (1, 1));
    assert_eq!(
        waiting.table.lock().n_of_kind[TermKind::Category as usize],
        1
    );
    drop((told, other));
    assert_eq!(counts(waiting), (0, 0));
}

#[test]
fn nobody_enters_a_log_that_has_ended() {
    let database = Database::in_memory(&Options::default()).unwrap();
    let engine = database.engine().unwrap();
    let waiting = &engine.writer.waiting;
    let before = enter(waiting, of_many_terms());
    assert!(before.is_some());
    waiting.end();
    assert_eq!(counts(waiting), (0, 0));
    assert!(enter(waiting, Selection::all()).is_none());
    drop(before);
    assert_eq!(counts(waiting), (0, 0));
}
