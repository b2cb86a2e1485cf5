//! Large events: no message is larger than clients accept, and nobody waits for one who does not
//! read.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use trefoil::{NamespacesOptions, Options};
use trefoil_grpc::{Code, ErrorType, Event, ReadRequest, SubscribeRequest};
use trefoil_server::Config;

use super::{append, check_failure, connect, event, positions, responses, wait_for_metric};
use crate::harness::TestServer;

const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

fn large(bytes: usize) -> Event {
    Event {
        data: Bytes::from(vec![b'x'; bytes]),
        ..event("Large", &["large"])
    }
}

/// A server that takes events larger than a message may be.
fn generous_server() -> TestServer {
    let options = NamespacesOptions::default()
        .with_database(Options::default().with_event_data_bytes_max(16 * 1024 * 1024));
    TestServer::with_options(Config::default(), options)
}

#[tokio::test]
async fn batches_are_split_by_bytes() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let sizes = [5000; 800].into_iter().chain([2_900_000; 3]).chain([10; 5]);
    let mut expected = 0;
    for size in sizes {
        client.append(append(vec![large(size)])).await.unwrap();
        expected += 1;
    }
    for backwards in [false, true] {
        let request = ReadRequest {
            backwards: Some(backwards),
            ..ReadRequest::default()
        };
        let all = responses(&mut client, request).await.unwrap();
        assert!(all.len() >= 7, "{}", all.len());
        assert!(
            all.iter()
                .all(|part| part.encoded_len() <= MESSAGE_BYTES_MAX)
        );
        assert!(all.iter().all(|part| part.head == Some(expected)));
        let mut whole: Vec<u64> = all.iter().flat_map(positions).collect();
        if backwards {
            whole.reverse();
        }
        assert!(whole.into_iter().eq(1..=expected), "{backwards}");
    }
}

#[tokio::test]
async fn an_event_larger_than_a_message_is_named_after_what_came_before_it() {
    let server = generous_server();
    let mut client = connect(&server).await;
    let events = vec![large(10), large(10), large(5_000_000), large(10)];
    client.append(append(events)).await.unwrap();
    let mut stream = client.read(ReadRequest::default()).await.unwrap();
    let first = stream.message().await.unwrap().unwrap();
    assert_eq!((positions(&first), first.head), (vec![1, 2], Some(4)));
    let text = "the event at position 3 takes 5000";
    let failed = stream.message().await;
    check_failure(failed, Code::OutOfRange, ErrorType::Io, text);

    let request = SubscribeRequest::default();
    let mut stream = client.subscribe(request).await.unwrap();
    let first = stream.message().await.unwrap().unwrap();
    assert_eq!(first.events.len(), 2);
    let failed = stream.message().await;
    check_failure(failed, Code::OutOfRange, ErrorType::Io, text);

    // Where it comes first there is nothing to send before it, and what follows can be read.
    let from = |start| ReadRequest {
        start: Some(start),
        ..ReadRequest::default()
    };
    let failed = responses(&mut client, from(3)).await;
    check_failure(failed, Code::OutOfRange, ErrorType::Io, text);
    let rest = responses(&mut client, from(4)).await.unwrap();
    assert_eq!(positions(&rest[0]), [4]);
}

/// Just below the limit an event still gets through, with its tags and the head beside it.
#[tokio::test]
async fn an_event_as_large_as_a_message_is_sent() {
    let server = generous_server();
    let mut client = connect(&server).await;
    for bytes in [MESSAGE_BYTES_MAX - 64, MESSAGE_BYTES_MAX] {
        client.append(append(vec![large(bytes)])).await.unwrap();
    }
    let request = ReadRequest::default();
    let mut stream = client.read(request).await.unwrap();
    let first = stream.message().await.unwrap().unwrap();
    assert_eq!(first.events.len(), 1);
    assert!(first.encoded_len() <= MESSAGE_BYTES_MAX);
    let failed = stream.message().await;
    check_failure(failed, Code::OutOfRange, ErrorType::Io, "at position 2");
}

#[tokio::test]
async fn a_reader_that_leaves_stops_its_read_and_one_that_sleeps_holds_up_nobody() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    for _ in 0..40 {
        client.append(append(vec![large(1_000_000)])).await.unwrap();
    }
    let mut asleep = connect(&server).await;
    let mut sleeping = asleep.read(ReadRequest::default()).await.unwrap();
    let mut leaving = connect(&server).await;
    let mut left = leaving.read(ReadRequest::default()).await.unwrap();
    left.message().await.unwrap().unwrap();
    drop(left);
    wait_for_metric(
        server.address,
        r#"trefoil_grpc_calls_total{method="Read",code="CANCELLED"} 1"#,
    )
    .await;
    let others = tokio::time::timeout(Duration::from_secs(10), async {
        client
            .append(append(vec![event("Small", &[])]))
            .await
            .unwrap();
        let request = ReadRequest {
            limit: Some(3),
            ..ReadRequest::default()
        };
        responses(&mut client, request).await.unwrap()
    });
    let others = others.await.unwrap();
    assert!(others.iter().flat_map(positions).eq([1, 2, 3]));
    let mut count = 0;
    while let Some(part) = sleeping.message().await.unwrap() {
        count += part.events.len();
    }
    assert_eq!(count, 40);
}
