//! The async forms return what the blocking ones return, and a subscription is a stream.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use trefoil::{
    Commit, Condition, Database, Error, Event, List, NamespaceId, Namespaces, NamespacesOptions,
    NewEvent, NewNamespace, Options, Query, Selection, Subscription, Transaction,
};

use crate::waiting::wait_for_all;

fn wait_for<F: Future>(future: F) -> F::Output {
    wait_for_all([future]).remove(0)
}

fn event(number: usize) -> NewEvent {
    NewEvent::new("order-1", "Placed", number.to_string())
}

fn next(subscription: &mut Subscription) -> Option<trefoil::Result<Event>> {
    wait_for(std::future::poll_fn(|context| {
        pin!(&mut *subscription).poll_next(context)
    }))
}

#[test]
fn every_read_has_the_same_result_in_both_forms() {
    let directory = tempfile::tempdir().unwrap();
    wait_for(async {
        let db = Database::open_async(directory.path(), &Options::default()).await?;
        db.commit_async(Commit::new((0..10).map(event))).await?;
        let orders = Selection::category("order").limit(7);
        assert_eq!(db.read_async(&orders).await?, db.read(&orders)?);
        let with_head = db.read_with_head_async(&orders).await?;
        assert_eq!(with_head, db.read_with_head(&orders)?);
        let page = db.read_page_async(&orders, 100).await?;
        assert_eq!(page.next, db.read_page(&orders, 100)?.next);
        let last = db.last_async("order-1", None).await?;
        assert_eq!(last, db.last("order-1", None)?);
        assert_eq!(db.version_async("order-1").await?, Some(9));
        assert_eq!(db.info_async().await?.events, 10);
        let list = List::new(10);
        assert_eq!(db.streams_async(&list).await?, db.streams(&list)?);
        assert_eq!(db.categories_async(&list).await?, db.categories(&list)?);
        let none = [Condition::no_match(Query::all())];
        let refused = db.check_async(&none).await;
        assert!(matches!(refused, Err(Error::ConditionFailed { .. })));
        db.checkpoint_async().await?;
        db.clear_async().await?;
        assert_eq!(db.head().unwrap(), 0);
        db.close_async().await?;
        let closed = db.read_async(&orders).await;
        assert!(matches!(closed, Err(Error::Closed(_))), "{closed:?}");
        for end in [db.head(), db.last_commit()] {
            assert!(matches!(end, Err(Error::Closed(_))), "{end:?}");
        }
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn namespaces_come_and_go_without_blocking() {
    let directory = tempfile::tempdir().unwrap();
    wait_for(async {
        let options = NamespacesOptions::default();
        let namespaces = Namespaces::open_async(directory.path(), options).await?;
        let id = NamespaceId::new("shop")?;
        let new = NewNamespace::default();
        let (_, token) = namespaces.create_async(&id, new).await?;
        assert_eq!(namespaces.authenticate(&token), Some(id.clone()));
        let db = namespaces.database_async(&id).await?;
        db.commit_async(Commit::new([event(1)])).await?;
        assert_eq!(namespaces.counts_async("shop").await?.events, 1);
        let other = namespaces.rotate_token_async("shop", None).await?;
        assert_ne!(other.reveal(), token.reveal());
        assert_eq!(namespaces.delete_async("shop").await?, 1);
        namespaces.close_async().await
    })
    .unwrap();
}

#[test]
fn a_subscription_is_a_stream_from_the_past_into_the_present_and_to_its_end() {
    let db = Database::in_memory(&Options::default()).unwrap();
    db.commit(Commit::new((0..600).map(event))).unwrap();
    let mut orders = db.subscribe(Selection::category("order"));
    for position in 1..=600 {
        let event = next(&mut orders).unwrap().unwrap();
        assert_eq!(event.position(), position);
    }
    let writer = std::thread::spawn({
        let db = db.clone();
        move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            db.commit(Commit::new([event(600)])).unwrap();
        }
    });
    assert_eq!(next(&mut orders).unwrap().unwrap().position(), 601);
    writer.join().unwrap();
    db.close().unwrap();
    let ended = next(&mut orders);
    assert!(matches!(ended, Some(Err(Error::Closed(_)))), "{ended:?}");
    assert!(next(&mut orders).is_none());
}

#[test]
fn a_page_that_nobody_waits_for_any_more_is_not_lost() {
    let db = Database::in_memory(&Options::default()).unwrap();
    db.commit(Commit::new((0..600).map(event))).unwrap();
    let mut orders = db.subscribe(Selection::category("order"));
    let mut seen = Vec::new();
    while seen.len() < 600 {
        // Begins to read a page, and goes away.
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(events) = pin!(orders.next_page()).poll(&mut context) {
            seen.extend(events.unwrap());
        }
        seen.extend(wait_for(orders.next_page()).unwrap());
    }
    let positions: Vec<u64> = seen.iter().map(Event::position).collect();
    assert_eq!(positions, (1..=600).collect::<Vec<_>>());
}

#[test]
fn keys_of_a_watch_that_was_given_up_count_as_changed() {
    let db = Database::in_memory(&Options::default()).unwrap();
    let mut watch = db.watch(&["a".into()]).unwrap();
    wait_for(db.watch_more_async(&mut watch, &["b".into()])).unwrap();
    wait_for(db.transact_async(Transaction::new().with_watch(watch))).unwrap();

    let mut watch = db.watch(&["a".into()]).unwrap();
    {
        let keys = ["b".into()];
        let mut context = Context::from_waker(Waker::noop());
        let mut watching = pin!(db.watch_more_async(&mut watch, &keys));
        if watching.as_mut().poll(&mut context).is_ready() {
            return;
        }
    }
    let refused = db.transact(Transaction::new().with_watch(watch));
    assert!(
        matches!(refused, Err(Error::WatchedKeyChanged)),
        "{refused:?}"
    );
}
