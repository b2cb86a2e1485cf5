//! `Read`: where it begins and ends, how it is cut into responses, and which head they tell.

use trefoil_grpc::{Code, ErrorType, ReadRequest};

use super::{append, check_failure, connect, event, fill, positions, query, responses};
use crate::harness::TestServer;

#[tokio::test]
async fn an_empty_log_is_one_response_without_a_head() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    assert_eq!(client.head().await.unwrap(), None);
    for request in [
        ReadRequest::default(),
        ReadRequest {
            backwards: Some(true),
            limit: Some(5),
            ..ReadRequest::default()
        },
    ] {
        let all = responses(&mut client, request).await.unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!((positions(&all[0]), all[0].head), (vec![], None));
    }
}

/// `(start, backwards, limit) -> (positions, head)` in a log of six events.
#[tokio::test]
async fn start_is_inclusive_and_the_head_follows_the_limit() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 6).await;
    assert_eq!(client.head().await.unwrap(), Some(6));
    type Case = (Option<u64>, bool, Option<u32>, Vec<u64>, Option<u64>);
    let cases: Vec<Case> = vec![
        (None, false, None, vec![1, 2, 3, 4, 5, 6], Some(6)),
        (None, true, None, vec![6, 5, 4, 3, 2, 1], Some(6)),
        (None, false, Some(2), vec![1, 2], Some(2)),
        (None, false, Some(100), vec![1, 2, 3, 4, 5, 6], Some(6)),
        (None, true, Some(2), vec![6, 5], Some(5)),
        (Some(0), false, None, vec![1, 2, 3, 4, 5, 6], Some(6)),
        (Some(0), true, None, vec![], Some(6)),
        (Some(3), false, None, vec![3, 4, 5, 6], Some(6)),
        (Some(3), false, Some(1), vec![3], Some(3)),
        (Some(3), true, None, vec![3, 2, 1], Some(6)),
        (Some(3), true, Some(2), vec![3, 2], Some(2)),
        (Some(6), false, None, vec![6], Some(6)),
        (Some(7), false, None, vec![], Some(6)),
        (Some(7), false, Some(2), vec![], None),
        (Some(100), true, None, vec![6, 5, 4, 3, 2, 1], Some(6)),
        (Some(u64::MAX), false, None, vec![], Some(6)),
        (Some(u64::MAX), true, Some(1), vec![6], Some(6)),
    ];
    for (start, backwards, limit, expected, head) in cases {
        let case = format!("{start:?} {backwards} {limit:?}");
        let request = ReadRequest {
            start,
            backwards: Some(backwards),
            limit,
            ..ReadRequest::default()
        };
        let all = responses(&mut client, request).await.unwrap();
        assert_eq!(all.len(), 1, "{case}");
        assert_eq!(
            (positions(&all[0]), all[0].head),
            (expected, head),
            "{case}"
        );
    }
}

#[tokio::test]
async fn a_limit_of_zero_is_answered_with_no_response() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 6).await;
    for backwards in [false, true] {
        let request = ReadRequest {
            backwards: Some(backwards),
            limit: Some(0),
            ..ReadRequest::default()
        };
        assert_eq!(responses(&mut client, request).await.unwrap(), []);
    }
}

#[tokio::test]
async fn queries_choose_and_an_event_that_two_items_match_comes_once() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let events = vec![
        event("A", &["x"]),
        event("B", &["x", "y"]),
        event("A", &["y"]),
        event("C", &[]),
    ];
    client.append(append(events)).await.unwrap();
    let mut either = query(&["A"], &[]);
    either.items.extend(query(&[], &["y"]).items);
    for (query, expected) in [
        (query(&["A"], &[]), vec![1, 3]),
        (query(&["A", "C"], &[]), vec![1, 3, 4]),
        (query(&[], &["x", "y"]), vec![2]),
        (query(&["A"], &["y"]), vec![3]),
        (query(&[], &[]), vec![1, 2, 3, 4]),
        (either, vec![1, 2, 3]),
        (query(&["D"], &[]), vec![]),
        (query(&[], &["xnot"]), vec![]),
    ] {
        let request = ReadRequest {
            query: Some(query.clone()),
            ..ReadRequest::default()
        };
        let all = responses(&mut client, request).await.unwrap();
        assert_eq!(positions(&all[0]), expected, "{query:?}");
        assert_eq!(all[0].head, Some(4), "{query:?}");
    }
}

#[tokio::test]
async fn a_read_is_cut_into_batches_of_the_wanted_size() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 5).await;
    let parts = |batch_size, limit, backwards| ReadRequest {
        batch_size: Some(batch_size),
        limit,
        backwards: Some(backwards),
        ..ReadRequest::default()
    };
    let shape = async |client: &mut trefoil_grpc::Client, request| {
        let all = responses(client, request).await.unwrap();
        let shape = all.iter().map(|part| (positions(part), part.head.unwrap()));
        shape.collect::<Vec<_>>()
    };
    let whole = shape(&mut client, parts(2, None, false)).await;
    assert_eq!(whole, [(vec![1, 2], 5), (vec![3, 4], 5), (vec![5], 5)]);
    let limited = shape(&mut client, parts(2, Some(3), false)).await;
    assert_eq!(limited, [(vec![1, 2], 2), (vec![3], 3)]);
    let backwards = shape(&mut client, parts(2, Some(4), true)).await;
    assert_eq!(backwards, [(vec![5, 4], 4), (vec![3, 2], 2)]);
    // The smallest batch is one event.
    assert_eq!(shape(&mut client, parts(0, None, false)).await.len(), 5);
}

#[tokio::test]
async fn a_batch_has_1024_events_unless_told_otherwise_and_4096_at_most() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 5000).await;
    for (batch_size, expected) in [
        (None, [1024, 1024, 1024, 1024, 904].as_slice()),
        (Some(4096), &[4096, 904]),
        (Some(u32::MAX), &[4096, 904]),
    ] {
        let request = ReadRequest {
            batch_size,
            ..ReadRequest::default()
        };
        let all = responses(&mut client, request).await.unwrap();
        let sizes: Vec<usize> = all.iter().map(|part| part.events.len()).collect();
        assert_eq!(sizes, expected, "{batch_size:?}");
        let whole: Vec<u64> = all.iter().flat_map(positions).collect();
        assert!(whole.into_iter().eq(1..=5000));
    }
}

#[tokio::test]
async fn a_read_does_not_pass_the_head_of_its_first_response() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 3000).await;
    let request = ReadRequest {
        batch_size: Some(10),
        ..ReadRequest::default()
    };
    let mut stream = client.read(request).await.unwrap();
    let first = stream.message().await.unwrap().unwrap();
    assert_eq!((first.events.len(), first.head), (10, Some(3000)));
    fill(&mut client, 500).await;
    let mut last = 0;
    while let Some(part) = stream.message().await.unwrap() {
        assert_eq!(part.head, Some(3000));
        last = part.events.last().unwrap().position;
    }
    assert_eq!(last, 3000);
}

#[tokio::test]
async fn a_read_that_should_subscribe_is_refused() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let request = ReadRequest {
        subscribe: Some(true),
        ..ReadRequest::default()
    };
    let refused = responses(&mut client, request).await;
    check_failure(
        refused,
        Code::InvalidArgument,
        ErrorType::InvalidArgument,
        "call Subscribe",
    );
}

#[tokio::test]
async fn a_query_beyond_the_limits_is_refused_by_name() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let request = ReadRequest {
        query: Some(query(&["T"], &[&"x".repeat(4097)])),
        ..ReadRequest::default()
    };
    let refused = responses(&mut client, request).await;
    check_failure(
        refused,
        Code::InvalidArgument,
        ErrorType::InvalidArgument,
        "length of a tag in a query is 4097, the limit is 4096",
    );
}
