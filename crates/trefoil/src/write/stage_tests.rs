//! Tests of the stage: what it decides about the requests of a group.

use std::sync::Arc;

use bytes::Bytes;
use trefoil_core::{
    Commit, Error, Event, EventId, NewEvent, Query, QueryItem, Result, Timestamp, Tracking,
};
use trefoil_state::{Call, Reply};
use trefoil_storage::{MemoryStorage, Storage};

use super::execute::CheckedTransaction;
use super::stage::{Durable, Front, Stage};
use crate::index::Index;
use crate::read::Matcher;
use crate::read::condition::{CheckedCommit, CheckedConditions};
use crate::state::{ReadCache, StateStore};
use crate::write::transaction::{Step, Transaction};

/// An empty index and an empty state.
fn nothing_durable() -> (Index, StateStore) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let index = Index::open(Arc::clone(&storage), 1024, Arc::default()).unwrap();
    let read_cache = Arc::new(ReadCache::new(0, crate::Clock::default()));
    let store = StateStore::open(storage, Arc::default(), read_cache).unwrap();
    (index, store)
}

fn fetch(_: &[u64]) -> Result<Vec<Event>> {
    Ok(Vec::new())
}

fn search(_: Matcher<'_>, _: u64, _: u64) -> Result<Option<u64>> {
    Ok(None)
}

/// A stage that begins after commit 3 and position 10.
fn stage<'a>((index, store): &'a (Index, StateStore)) -> Stage<'a> {
    let durable = Durable {
        index,
        store,
        fetch: &fetch,
        search: &search,
    };
    let front = Front {
        commit: 3,
        position: 10,
        clock: Timestamp(50),
    };
    Stage::new(durable, front, (Timestamp(40), 1), usize::MAX)
}

fn checked(commit: Commit) -> CheckedCommit {
    let checked = CheckedConditions::default();
    CheckedCommit { commit, checked }
}

fn opened() -> NewEvent {
    NewEvent::new("account-1", "Opened", "{}").with_tag("owner:ada")
}

fn owner(name: &str) -> Query {
    let item = QueryItem {
        types: Vec::new(),
        tags: vec![format!("owner:{name}")],
    };
    Query { items: vec![item] }
}

#[test]
fn a_request_sees_those_before_it_in_the_group() {
    let beneath = nothing_durable();
    let first = checked(Commit::new([opened(), opened()]).expect_version("account-1", -1));
    let same = checked(Commit::new([opened()]).expect_version("account-1", -1));
    let next = checked(Commit::new([opened()]).expect_version("account-1", 1));
    let again = checked(Commit::new([opened()]).fail_if_new(owner("ada"), 12));
    let other = checked(Commit::new([opened()]).fail_if_any(owner("bob")));
    let mut stage = stage(&beneath);
    let committed = stage.commit(&first).unwrap();
    assert_eq!((committed.commit, committed.position), (4, 12));
    let refused = stage.commit(&same);
    let is_conflict = matches!(refused, Err(Error::VersionConflict { actual: 1, .. }));
    assert!(is_conflict, "{refused:?}");
    let committed = stage.commit(&next).unwrap();
    assert_eq!(committed.events[0].stream_position, Some(2));
    let refused = stage.commit(&again);
    let is_match = matches!(refused, Err(Error::ConditionFailed { position: 13, .. }));
    assert!(is_match, "{refused:?}");
    assert_eq!(stage.commit(&other).unwrap().position, 14);
    let end = stage.finish();
    assert_eq!((end.commit, end.position), (6, 14));
    // No event is older than the one before it.
    assert_eq!(end.clock, Timestamp(50));
    let [record] = stage.group().records.as_slice() else {
        panic!("{:?}", stage.group());
    };
    assert_eq!((record.first_commit, record.n_commits), (4, 3));
    assert_eq!(record.items.len(), stage.events().len());
}

#[test]
fn a_request_that_fails_leaves_no_trace() {
    let beneath = nothing_durable();
    let tracking = |position| Tracking {
        source: "upstream".to_owned(),
        position,
    };
    let call = |line: &str| {
        let words = line.split(' ').map(|word| Bytes::from(word.to_owned()));
        Step::Call(Call::new(words.collect()).unwrap().unwrap())
    };
    let append = |expected| Step::Append {
        event: Box::new(opened()),
        expected,
    };
    let execute = |steps| CheckedTransaction {
        transaction: Transaction {
            steps,
            ..Transaction::default()
        },
        checked: CheckedConditions::default(),
    };
    let failing = execute(vec![call("set a 1"), append(None), append(Some(7))]);
    let working = execute(vec![call("append a 2"), append(Some(-1)), append(Some(0))]);
    let reading = execute(vec![call("get a")]);
    let tracked = checked(Commit::new([opened()]).with_tracking(tracking(5)));
    let untracked = checked(Commit::new([opened()]).with_tracking(tracking(5)));
    let mut stage = stage(&beneath);
    let refused = stage.execute(&failing);
    let is_conflict = matches!(refused, Err(Error::VersionConflict { actual: 0, .. }));
    assert!(is_conflict, "{refused:?}");
    assert!(stage.is_empty());
    let executed = stage.execute(&working).unwrap();
    assert_eq!((executed.commit, executed.events.len()), (Some(4), 2));
    assert_eq!(stage.commit(&tracked).unwrap().commit, 5);
    let refused = stage.commit(&untracked);
    assert!(matches!(refused, Err(Error::TrackingConflict { .. })));
    let found = stage.execute(&reading).unwrap().replies;
    assert_eq!(found, [Reply::Bulk(Bytes::from_static(b"2"))]);
    assert_eq!(stage.finish().commit, 5);
    assert_eq!(stage.events().len(), 3);
}

#[test]
fn a_commit_that_is_there_twice_is_answered_twice_and_written_once() {
    let beneath = nothing_durable();
    let named = |data: &'static str| {
        NewEvent::new("account-1", "Opened", data).with_id(EventId::from_u128(7))
    };
    let first = checked(Commit::new([named("{}")]));
    let again = checked(Commit::new([named("{}")]));
    let other = checked(Commit::new([named("[]")]));
    let mut stage = stage(&beneath);
    let committed = stage.commit(&first).unwrap();
    let replayed = stage.commit(&again).unwrap();
    assert!(replayed.replayed && !committed.replayed);
    assert_eq!(replayed.events, committed.events);
    let refused = stage.commit(&other);
    assert!(matches!(
        refused,
        Err(Error::DuplicateId { position: 11, .. })
    ));
    assert_eq!(stage.events().len(), 1);
}
