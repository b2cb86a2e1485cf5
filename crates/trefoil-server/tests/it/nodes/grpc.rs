//! gRPC calls to a node that does not have the namespace: answered as if it had, and streams go on when
//! the namespace moves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use trefoil_grpc::{
    AppendRequest, Client, Code, Event, ReadRequest, SubscribeRequest, TrackingInfo, error_of,
};

use super::{TestCluster, TestNode, metric, metric_so_far, owner_and_others};
use crate::grpc::{append, append_if, connect, event, fill, positions, query, read};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Three nodes, of which one has the default namespace, and clients of the others.
async fn three(cluster: &TestCluster) -> (TestNode, Vec<TestNode>, Client, Client) {
    let nodes: Vec<TestNode> = ["a", "b", "c"].map(|name| cluster.node(name)).into();
    let mut first = connect(&nodes[0].server).await;
    first
        .append(append(vec![event("First", &[])]))
        .await
        .unwrap();
    let (owner, others) = owner_and_others(nodes);
    let one = connect(&others[0].server).await;
    let other = connect(&others[1].server).await;
    (owner, others, one, other)
}

/// Events of a kilobyte each, more than fit into what is sent ahead.
async fn fill_much(client: &mut Client, n_events: usize) {
    let large = |n: usize| Event {
        data: vec![b'x'; 1000].into(),
        ..event("Large", &[&format!("n:{n}")])
    };
    let events: Vec<Event> = (0..n_events).map(large).collect();
    for part in events.chunks(1000) {
        client.append(append(part.to_vec())).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_node_answers_every_call() {
    let cluster = TestCluster::new();
    let (owner, others, mut one, mut other) = three(&cluster).await;
    let mut direct = connect(&owner.server).await;
    fill(&mut one, 5).await;
    let tracked = AppendRequest {
        tracking_info: Some(TrackingInfo {
            source: "elsewhere".into(),
            position: 7,
        }),
        ..append(vec![event("Tracked", &[])])
    };
    assert_eq!(other.append(tracked).await.unwrap(), 7);
    for client in [&mut one, &mut other, &mut direct] {
        assert_eq!(client.head().await.unwrap(), Some(7));
        assert_eq!(client.tracking("elsewhere").await.unwrap(), Some(7));
        let all = read(client, ReadRequest::default()).await;
        let found: Vec<u64> = all.iter().map(|event| event.position).collect();
        assert_eq!(found, [1, 2, 3, 4, 5, 6, 7]);
        let limited = ReadRequest {
            limit: Some(2),
            backwards: Some(true),
            ..ReadRequest::default()
        };
        let last = read(client, limited).await;
        let found: Vec<u64> = last.iter().map(|event| event.position).collect();
        assert_eq!(found, [7, 6]);
    }
    // A refusal arrives as it is.
    let refused = append_if(vec![event("New", &[])], query(&["First"], &[]), None);
    let here = direct.append(refused.clone()).await.unwrap_err();
    let there = one.append(refused).await.unwrap_err();
    assert_eq!(there.code(), Code::FailedPrecondition);
    assert_eq!(
        (there.code(), there.message(), error_of(&there)),
        (here.code(), here.message(), error_of(&here))
    );
    let answered = "trefoil_forwarded_requests_total{protocol=\"grpc\",outcome=\"answered\"}";
    assert!(metric(&others[0], answered) > 4);
    assert_eq!(metric(&owner, answered), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_goes_on_where_the_namespace_is() {
    let cluster = TestCluster::new();
    let (owner, others, mut one, mut other) = three(&cluster).await;
    fill_much(&mut one, 4000).await;
    let request = |limit, backwards| ReadRequest {
        limit,
        backwards: Some(backwards),
        batch_size: Some(20),
        ..ReadRequest::default()
    };
    let forwards: Vec<u64> = (1..=4001).collect();
    let backwards: Vec<u64> = forwards.iter().rev().copied().collect();
    let mut reads = Vec::new();
    for (request, expected) in [
        (request(None, false), &forwards[..]),
        (request(None, true), &backwards[..]),
        (request(Some(3500), false), &forwards[..3500]),
        (request(Some(3500), true), &backwards[..3500]),
        // More than there is: it ends where the log ended when it began.
        (request(Some(100_000), false), &forwards[..]),
    ] {
        // One that is not read from would keep others of the same connection.
        let mut client = connect(&others[0].server).await;
        let mut stream = client.read(request).await.unwrap();
        let first = stream.message().await.unwrap().unwrap();
        reads.push((stream, positions(&first), expected));
    }
    tokio::task::spawn_blocking(move || owner.stop())
        .await
        .unwrap();
    fill(&mut other, 10).await;
    for (mut stream, mut found, expected) in reads {
        while let Some(response) = timeout(PATIENCE, stream.message()).await.unwrap().unwrap() {
            assert!(response.events.len() <= 20);
            found.extend(positions(&response));
        }
        assert!(found == expected, "{} of {}", found.len(), expected.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_goes_on_where_the_namespace_is() {
    let cluster = TestCluster::new();
    let (owner, mut others, mut one, mut other) = three(&cluster).await;
    let mut follow = one.subscribe(SubscribeRequest::default()).await.unwrap();
    let later = SubscribeRequest {
        after: Some(1),
        ..SubscribeRequest::default()
    };
    let mut follow_later = other.subscribe(later).await.unwrap();
    let mut found = Vec::new();
    let mut found_later = vec![1];
    let mut head = 1;
    let mut nodes = vec![owner];
    for _ in 0..3 {
        fill(&mut one, 50).await;
        head += 50;
        for (follow, found) in [
            (&mut follow, &mut found),
            (&mut follow_later, &mut found_later),
        ] {
            while found.last() != Some(&head) {
                let next = timeout(PATIENCE, follow.message()).await.unwrap();
                let events = next.unwrap().unwrap().events;
                found.extend(events.iter().map(|event| event.position));
            }
            assert_eq!(*found, (1..=head).collect::<Vec<u64>>());
        }
        if let Some(owner) = nodes.pop() {
            tokio::task::spawn_blocking(move || owner.stop())
                .await
                .unwrap();
        }
    }
    // A node that stops ends the subscriptions of its own clients.
    others[0].server.begin_shutdown();
    let ended = timeout(PATIENCE, follow.message()).await.unwrap();
    assert!(matches!(ended, Ok(None)), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_stop_fails_no_append() {
    let cluster = TestCluster::new();
    let (owner, others, mut one, _other) = three(&cluster).await;
    let is_over = AtomicBool::new(false);
    let work = async |node: &TestNode| {
        let mut client = connect(&node.server).await;
        let mut n_appended = 0;
        while !is_over.load(Ordering::Relaxed) {
            let appended = client.append(append(vec![event("Load", &[])])).await;
            appended.unwrap();
            n_appended += 1;
        }
        n_appended
    };
    let stop = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        tokio::task::spawn_blocking(move || owner.stop())
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        is_over.store(true, Ordering::Relaxed);
    };
    let (a, b, c, d, ()) = tokio::join!(
        work(&others[0]),
        work(&others[0]),
        work(&others[1]),
        work(&others[1]),
        stop
    );
    assert_eq!(one.head().await.unwrap(), Some(1 + a + b + c + d));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_nothing_holds_little() {
    let cluster = TestCluster::new();
    let (owner, others, mut one, _other) = three(&cluster).await;
    fill_much(&mut one, 8000).await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut client = connect(&others[0].server).await;
        let mut stream = client.read(ReadRequest::default()).await.unwrap();
        stream.message().await.unwrap().unwrap();
        streams.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    // Each may hold a response of a megabyte and what was sent ahead, at either node.
    for node in [&owner, &others[0]] {
        let held = metric(node, "trefoil_client_memory_bytes");
        assert!(held < 20 * 4 * 1024 * 1024, "{held}");
    }
    // Others go on.
    fill(&mut one, 3).await;
    // Who leaves is not waited for.
    drop(streams);
    let open = "trefoil_grpc_calls_total{method=\"Read\",code=\"CANCELLED\"}";
    for _ in 0..100 {
        if metric_so_far(&owner, open) == Some(20) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:?} calls were cancelled", metric_so_far(&owner, open));
}
