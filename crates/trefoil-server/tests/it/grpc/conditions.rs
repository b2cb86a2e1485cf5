//! Conditions of appends: what fails them, also where UmaDB falls over.

use std::time::Duration;

use trefoil_grpc::{AppendCondition, AppendRequest, Code, ErrorType, Query, Status};

use super::{append, append_if, check_failure, connect, event, fill, query};
use crate::harness::TestServer;

#[track_caller]
fn check_conflict<T>(result: Result<T, Status>, position: u64) {
    let text =
        format!("integrity error: condition failed: the event at position {position} matches");
    assert_eq!(
        result.as_ref().err().map(Status::message),
        Some(text.as_str())
    );
    let code = Code::FailedPrecondition;
    check_failure(result, code, ErrorType::Integrity, "");
}

#[tokio::test]
async fn a_match_after_the_known_position_fails_an_append() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let events = vec![event("A", &["x"]), event("B", &["x"]), event("A", &["y"])];
    client.append(append(events)).await.unwrap();
    let attempt = |query: Query, after| append_if(vec![event("N", &["new"])], query, after);
    for (query, after, position) in [
        (query(&["A"], &["x"]), None, 1),
        (query(&[], &["x"]), Some(1), 2),
        (query(&["A"], &[]), Some(2), 3),
        (query(&["A", "B"], &[]), Some(0), 1),
        (query(&[], &[]), Some(2), 3),
        (Query::default(), None, 1),
    ] {
        let refused = client.append(attempt(query, after)).await;
        check_conflict(refused, position);
    }
    let mut position = 3;
    for (query, after) in [
        (query(&["A"], &["x"]), Some(1)),
        (query(&[], &["x"]), Some(3)),
        (query(&["A"], &["x", "y"]), None),
        (query(&["C"], &[]), None),
        (query(&["A"], &[]), Some(1_000_000)),
        (query(&["A"], &[]), Some(u64::MAX)),
    ] {
        position += 1;
        let done = client.append(attempt(query, after)).await;
        assert_eq!(done.unwrap(), position);
    }
}

#[tokio::test]
async fn an_append_does_not_conflict_with_its_own_events() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let events = || vec![event("A", &["own"]), event("A", &["own"])];
    let attempt = || append_if(events(), query(&["A"], &["own"]), None);
    assert_eq!(client.append(attempt()).await.unwrap(), 2);
    check_conflict(client.append(attempt()).await, 1);
}

#[tokio::test]
async fn a_condition_without_a_query_means_any_event() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let attempt = |after| AppendRequest {
        condition: Some(AppendCondition {
            fail_if_events_match: None,
            after,
        }),
        ..append(vec![event("A", &[])])
    };
    assert_eq!(client.append(attempt(None)).await.unwrap(), 1);
    check_conflict(client.append(attempt(None)).await, 1);
    assert_eq!(client.append(attempt(Some(1))).await.unwrap(), 2);
}

/// UmaDB's writer dies of this.
#[tokio::test]
async fn an_append_of_nothing_is_refused_by_a_match_and_the_server_lives() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    client
        .append(append(vec![event("A", &["x"])]))
        .await
        .unwrap();
    let refused = client
        .append(append_if(vec![], query(&[], &["x"]), None))
        .await;
    check_conflict(refused, 1);
    let passed = append_if(vec![], query(&[], &["x"]), Some(1));
    assert_eq!(client.append(passed).await.unwrap(), 0);
    let next = client.append(append(vec![event("A", &["x"])])).await;
    assert_eq!(next.unwrap(), 2);
}

/// UmaDB reads the whole log for this, on the thread that writes.
#[tokio::test]
async fn conditions_on_types_alone_do_not_slow_down_others() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 50_000).await;
    let began = std::time::Instant::now();
    for n in 0..100 {
        let attempt = append_if(
            vec![event("Rare", &[])],
            query(&["Rare"], &[]),
            Some(50_000 + n),
        );
        assert_eq!(client.append(attempt).await.unwrap(), 50_001 + n);
    }
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}

/// In UmaDB a client that leaves during a long condition stalls the writer.
#[tokio::test]
async fn clients_that_leave_during_a_condition_hold_up_nobody() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 20_000).await;
    // Two frequent tags that never meet cost the most there is to pay.
    let items = (0..500).flat_map(|n| query(&[], &[&format!("n:{n}"), "never"]).items);
    let mut long = query(&["Filled"], &["never"]);
    long.items.extend(items);
    for _ in 0..50 {
        let mut leaving = client.clone();
        let attempt = append_if(vec![event("Late", &[])], long.clone(), None);
        let left = tokio::time::timeout(Duration::from_micros(300), leaving.append(attempt));
        let _ = left.await;
    }
    let next = tokio::time::timeout(
        Duration::from_secs(10),
        client.append(append(vec![event("Next", &[])])),
    );
    assert!(next.await.unwrap().unwrap() > 20_000);
}

#[tokio::test]
async fn of_many_that_want_the_same_exactly_one_wins() {
    let server = TestServer::production();
    let first = connect(&server).await;
    let attempts = (0..64).map(|n| {
        let mut client = first.clone();
        tokio::spawn(async move {
            let claim = vec![event("Claimed", &["name:ada", &format!("by:{n}")])];
            let attempt = append_if(claim, query(&["Claimed"], &["name:ada"]), None);
            client.append(attempt).await
        })
    });
    let mut won = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        match attempt.await.unwrap() {
            Ok(position) => {
                assert_eq!(position, 1);
                won += 1;
            }
            Err(status) => check_conflict::<()>(Err(status), 1),
        }
    }
    assert_eq!(won, 1);
}
