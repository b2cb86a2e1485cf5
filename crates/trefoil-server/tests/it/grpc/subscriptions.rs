//! `Subscribe`: from the past into the present, without gap or duplicate.

use std::time::Duration;

use tokio::time::timeout;
use trefoil_grpc::{
    Client, Code, ErrorType, SequencedEvent, Status, Streaming, SubscribeRequest, SubscribeResponse,
};

use super::{append, check_failure, connect, event, fill, query, wait_for_metric};
use crate::client::{bearer, request};
use crate::harness::TestServer;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A subscription and the events of it that were not looked at yet.
struct Feed {
    stream: Streaming<SubscribeResponse>,
    pending: std::vec::IntoIter<SequencedEvent>,
}

impl Feed {
    async fn open(client: &mut Client, request: SubscribeRequest) -> Self {
        Self {
            stream: client.subscribe(request).await.unwrap(),
            pending: Vec::new().into_iter(),
        }
    }

    /// The position of the next event; `None` at the end.
    async fn next(&mut self) -> Result<Option<u64>, Status> {
        loop {
            if let Some(event) = self.pending.next() {
                return Ok(Some(event.position));
            }
            match timeout(PATIENCE, self.stream.message()).await.unwrap()? {
                Some(response) => self.pending = response.events.into_iter(),
                None => return Ok(None),
            }
        }
    }

    async fn take(&mut self, count: usize) -> Vec<u64> {
        let mut positions = Vec::new();
        while positions.len() < count {
            positions.push(self.next().await.unwrap().unwrap());
        }
        positions
    }
}

fn after(after: Option<u64>) -> SubscribeRequest {
    SubscribeRequest {
        after,
        ..SubscribeRequest::default()
    }
}

#[tokio::test]
async fn a_subscription_goes_from_the_past_into_the_present() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 1000).await;
    for (from, first) in [(None, 1), (Some(0), 1), (Some(1), 2), (Some(999), 1000)] {
        let mut feed = Feed::open(&mut client, after(from)).await;
        let head = client.head().await.unwrap().unwrap();
        let expected: Vec<u64> = (first..=head).collect();
        assert_eq!(feed.take(expected.len()).await, expected, "{from:?}");
        for _ in 0..3 {
            let new = client.append(append(vec![event("New", &[])])).await;
            assert_eq!(feed.take(1).await, [new.unwrap()]);
        }
    }
}

#[tokio::test]
async fn a_subscription_may_begin_ahead_of_the_head() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let mut feed = Feed::open(&mut client, after(Some(2))).await;
    fill(&mut client, 4).await;
    assert_eq!(feed.take(2).await, [3, 4]);
}

#[tokio::test]
async fn a_subscription_after_the_last_position_there_is_ends_at_once() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 4).await;
    let mut feed = Feed::open(&mut client, after(Some(u64::MAX))).await;
    assert_eq!(feed.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_subscription_to_a_query_gets_what_matches() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let request = SubscribeRequest {
        query: Some(query(&["B"], &["x"])),
        ..SubscribeRequest::default()
    };
    client
        .append(append(vec![event("B", &["x"])]))
        .await
        .unwrap();
    let mut feed = Feed::open(&mut client, request).await;
    let events = vec![
        event("A", &["x"]),
        event("B", &["y"]),
        event("B", &["x", "y"]),
    ];
    client.append(append(events)).await.unwrap();
    assert_eq!(feed.take(2).await, [1, 4]);
}

#[tokio::test]
async fn responses_hold_at_most_as_many_events_as_are_wanted() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 600).await;
    for (batch_size, largest) in [(Some(3), 3), (Some(0), 1), (None, 1024)] {
        let request = SubscribeRequest {
            batch_size,
            ..SubscribeRequest::default()
        };
        let mut stream = client.subscribe(request).await.unwrap();
        let mut count = 0;
        while count < 600 {
            let response = timeout(PATIENCE, stream.message()).await.unwrap();
            let events = response.unwrap().unwrap().events;
            assert!((1..=largest).contains(&events.len()), "{batch_size:?}");
            count += events.len();
        }
        assert_eq!(count, 600);
    }
}

#[tokio::test]
async fn many_writers_are_followed_without_gap_or_duplicate() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let mut feed = Feed::open(&mut client, after(None)).await;
    let writers = (0..8).map(|_| {
        let mut client = client.clone();
        tokio::spawn(async move {
            for _ in 0..50 {
                client.append(append(vec![event("W", &[])])).await.unwrap();
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    assert!(feed.take(400).await.into_iter().eq(1..=400));
    for writer in writers {
        writer.await.unwrap();
    }
}

#[tokio::test]
async fn a_subscriber_that_leaves_is_forgotten() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let feed = Feed::open(&mut client, after(None)).await;
    wait_for_metric(server.address, "trefoil_subscribers 1").await;
    drop(feed);
    wait_for_metric(server.address, "trefoil_subscribers 0").await;
    let line = r#"trefoil_grpc_calls_total{method="Subscribe",code="CANCELLED"} 1"#;
    wait_for_metric(server.address, line).await;
}

#[tokio::test]
async fn a_subscription_to_events_that_are_removed_fails() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 3).await;
    let mut feed = Feed::open(&mut client, after(None)).await;
    assert_eq!(feed.take(3).await, [1, 2, 3]);
    let path = "/import?force=true";
    let cleared = request(server.address, "POST", path, &bearer(), b"");
    assert_eq!(cleared.status, 200);
    let failed = feed.next().await;
    check_failure(failed, Code::Unavailable, ErrorType::Io, "removed");
}
