//! The gRPC server, driven by the client of `trefoil-grpc`: every rule of UmaDB's protocol.

mod access;
mod appends;
mod both_worlds;
mod conditions;
mod hostile;
mod ids;
mod reads;
mod shutdown;
mod sizes;
mod subscriptions;
mod tls;

use std::net::SocketAddr;

use trefoil::Token;
use trefoil_grpc::{
    AppendCondition, AppendRequest, Client, Code, Connect, ErrorResponse, ErrorType, Event, Query,
    QueryItem, ReadRequest, ReadResponse, SequencedEvent, Status, error_of,
};

use crate::client::request;
use crate::harness::TestServer;

/// A client with the development token.
pub(crate) async fn connect(server: &TestServer) -> Client {
    connect_as(server, Some(Token::development().reveal()))
        .await
        .unwrap()
}

pub(crate) async fn connect_as(server: &TestServer, token: Option<&str>) -> Result<Client, Status> {
    let connect = Connect {
        url: format!("http://{}", server.grpc),
        token: token.map(str::to_owned),
        ..Connect::default()
    };
    Client::connect(connect).await
}

pub(crate) fn event(event_type: &str, tags: &[&str]) -> Event {
    Event {
        event_type: event_type.into(),
        tags: tags.iter().map(|&tag| tag.into()).collect(),
        data: "{}".into(),
        ..Event::default()
    }
}

pub(crate) fn append(events: Vec<Event>) -> AppendRequest {
    AppendRequest {
        events,
        ..AppendRequest::default()
    }
}

/// An append that fails if an event matches the query.
pub(crate) fn append_if(events: Vec<Event>, query: Query, after: Option<u64>) -> AppendRequest {
    AppendRequest {
        events,
        condition: Some(AppendCondition {
            fail_if_events_match: Some(query),
            after,
        }),
        tracking_info: None,
    }
}

/// A query of one item.
pub(crate) fn query(types: &[&str], tags: &[&str]) -> Query {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.into()).collect();
    Query {
        items: vec![QueryItem {
            types: texts(types),
            tags: texts(tags),
        }],
    }
}

/// Appends so many events of one type, one tag each: `n:1`, `n:2` and so on.
pub(crate) async fn fill(client: &mut Client, count: usize) {
    let events = (1..=count).map(|n| event("Filled", &[&format!("n:{n}")]));
    client.append(append(events.collect())).await.unwrap();
}

/// Every response of a read.
pub(crate) async fn responses(
    client: &mut Client,
    request: ReadRequest,
) -> Result<Vec<ReadResponse>, Status> {
    let mut stream = client.read(request).await?;
    let mut all = Vec::new();
    while let Some(response) = stream.message().await? {
        all.push(response);
    }
    Ok(all)
}

/// Every event of a read.
pub(crate) async fn read(client: &mut Client, request: ReadRequest) -> Vec<SequencedEvent> {
    let all = responses(client, request).await.unwrap();
    all.into_iter().flat_map(|part| part.events).collect()
}

pub(crate) fn positions(response: &ReadResponse) -> Vec<u64> {
    response.events.iter().map(|event| event.position).collect()
}

/// Checks the code of a failure and that its details say the same as its text.
#[track_caller]
fn check_failure<T>(result: Result<T, Status>, code: Code, error_type: ErrorType, text: &str) {
    let Err(status) = result else {
        panic!("the call succeeded, {text:?} was expected");
    };
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().contains(text), "{status:?}");
    let expected = ErrorResponse {
        message: status.message().to_owned(),
        error_type: error_type.into(),
    };
    assert_eq!(error_of(&status), Some(expected));
}

/// Waits until the metrics of the server have this line.
async fn wait_for_metric(address: SocketAddr, line: &str) {
    for _ in 0..200 {
        let metrics = request(address, "GET", "/metrics", "", b"");
        if metrics.text().lines().any(|found| found == line) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let metrics = request(address, "GET", "/metrics", "", b"");
    panic!("no {line:?} in\n{}", metrics.text());
}
