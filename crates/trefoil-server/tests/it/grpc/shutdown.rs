//! The end of a server: streams end, calls under way are answered.

use std::time::{Duration, Instant};

use trefoil_grpc::{ReadRequest, ServingStatus, SubscribeRequest};

use super::{append, connect, event, fill, read};
use crate::harness::TestServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_and_watches_end_and_idle_connections_too() {
    let mut server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 1).await;
    let mut feed = client.subscribe(SubscribeRequest::default()).await.unwrap();
    assert!(feed.message().await.unwrap().is_some());
    let mut watch = client.watch_health("").await.unwrap();
    assert!(watch.message().await.unwrap().is_some());
    let _idle = connect(&server).await;
    let began = Instant::now();
    server.begin_shutdown();
    assert!(feed.message().await.unwrap().is_none());
    let last = watch.message().await.unwrap().unwrap();
    assert_eq!(last.status(), ServingStatus::NotServing);
    assert!(watch.message().await.unwrap().is_none());
    server.wait();
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert!(client.head().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_under_way_are_answered() {
    let mut server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 4000).await;
    let request = ReadRequest {
        batch_size: Some(1),
        ..ReadRequest::default()
    };
    let mut reading = client.read(request).await.unwrap();
    assert!(reading.message().await.unwrap().is_some());
    let appends: Vec<_> = (0..50)
        .map(|_| {
            let mut client = client.clone();
            tokio::spawn(async move { client.append(append(vec![event("A", &[])])).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    server.begin_shutdown();
    let mut count = 1;
    while let Some(response) = reading.message().await.unwrap() {
        count += response.events.len();
    }
    assert_eq!(count, 4000);
    for append in appends {
        // One that came too late is refused, but none is left without an answer.
        if let Err(status) = append.await.unwrap() {
            assert_eq!(status.code(), trefoil_grpc::Code::Unavailable, "{status:?}");
        }
    }
    server.wait();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_not_read_is_cut_off() {
    let mut server = TestServer::production();
    let mut client = connect(&server).await;
    for _ in 0..30 {
        let mut large = event("Large", &[]);
        large.data = vec![b'x'; 1_000_000].into();
        client.append(append(vec![large])).await.unwrap();
    }
    assert_eq!(read(&mut client, ReadRequest::default()).await.len(), 30);
    let mut asleep = client.read(ReadRequest::default()).await.unwrap();
    assert!(asleep.message().await.unwrap().is_some());
    let began = Instant::now();
    server.begin_shutdown();
    server.wait();
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    let mut end = asleep.message().await;
    while matches!(end, Ok(Some(_))) {
        end = asleep.message().await;
    }
    assert!(
        end.is_err(),
        "a read that was cut off must not look complete"
    );
}
