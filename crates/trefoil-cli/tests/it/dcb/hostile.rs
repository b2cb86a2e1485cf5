//! What brought other stores down or to a halt: appends of nothing, clients that leave while their
//! condition is looked into, conditions on a type alone.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use trefoil::{Query, QueryItem};
use trefoil_grpc::{AppendCondition, AppendRequest};

use super::backend::{Backend, Protocol, over_every_protocol};
use super::grpc::Grpc;
use super::store::{Fact, Refusal, Unless, item};
use crate::harness::{ADMIN, SMALL_PARTS, Server, connect};

over_every_protocol!(an_append_of_nothing_is_answered);

/// Only UmaDB's protocol has appends of nothing: their condition counts, and the answer is 0.
fn an_append_of_nothing_is_answered(backend: &mut Backend) {
    let store = &mut *backend.connect();
    store.append(&[Fact::new("Moved", ["a"])], &[]).unwrap();
    let matching = Unless::any(&item(&[], &["a"]).into());
    let other = Unless::any(&item(&[], &["b"]).into());
    for unless in [Vec::new(), vec![other], vec![matching]] {
        let answer = store.append(&[], &unless);
        let is_refused = unless
            .first()
            .is_some_and(|unless| unless.query == item(&[], &["a"]).into());
        match (backend.protocol, answer) {
            (Protocol::Grpc, Ok(0)) => assert!(!is_refused),
            (Protocol::Grpc, Err(Refusal::Conflict { .. })) => assert!(is_refused),
            (Protocol::Library | Protocol::Http, Err(Refusal::Invalid(_))) => {}
            (_, answer) => panic!("{answer:?}"),
        }
    }
    assert_eq!(store.append(&[Fact::new("Moved", ["a"])], &[]), Ok(2));
    assert_eq!(store.all(&Query::all()).positions(), [1, 2]);
}

/// Events that are tagged `even` or `odd` in turn: a query for both finds nothing in two long lists.
fn fill(server: &Server, n_events: usize) {
    let mut client = server.client();
    for first in (0..n_events).step_by(5000) {
        let event = |number: usize| {
            let tag = ["even", "odd"][number % 2];
            json!({"type": "Counted", "data": number, "tags": [tag]})
        };
        let events: Vec<Value> = (first..first + 5000).map(event).collect();
        client.rpc(&json!(["commit", {"events": events}])).ok();
    }
}

/// So many lists that never meet that to look through them all takes long.
fn endless() -> Query {
    let item = |number: usize| QueryItem {
        types: vec!["Counted".to_owned(), format!("Other{number}")],
        tags: vec!["even".to_owned(), "odd".to_owned()],
    };
    (0..500).map(item).collect()
}

/// Processor time of the server so far, in ticks.
fn ticks(server: &Server) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<u64> = fields
        .split(' ')
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    fields[11] + fields[12]
}

/// Waits until the server has nothing to do any more.
fn wait_until_idle(server: &Server) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let before = ticks(server);
        thread::sleep(Duration::from_millis(300));
        if ticks(server) - before <= 3 {
            return;
        }
        assert!(Instant::now() < deadline, "the server goes on for nobody");
    }
}

/// Sends an append whose condition takes long. The answer to a request before it stays unread, so
/// that the connection is reset when the client drops it, not merely closed from its side.
fn endless_over_http(server: &Server) -> TcpStream {
    let items = endless().items.into_iter();
    let items = items.map(|item| json!({"types": item.types, "tags": item.tags}));
    let condition = json!({"query": {"items": items.collect::<Vec<_>>()}});
    let events = json!([{"type": "Never", "data": {}}]);
    let call = json!(["commit", {"events": events, "conditions": [condition]}]).to_string();
    let health = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let head = format!(
        "POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN}\r\n\
         Content-Length: {}\r\n\r\n",
        call.len()
    );
    let mut stream = connect(server.port).unwrap();
    stream.write_all(health.as_bytes()).unwrap();
    stream.peek(&mut [0]).unwrap();
    stream.write_all((head + &call).as_bytes()).unwrap();
    stream
}

fn endless_over_grpc() -> AppendRequest {
    let items = endless()
        .items
        .into_iter()
        .map(|item| trefoil_grpc::QueryItem {
            types: item.types,
            tags: item.tags,
        });
    let event = trefoil_grpc::Event {
        event_type: "Never".to_owned(),
        ..trefoil_grpc::Event::default()
    };
    AppendRequest {
        events: vec![event],
        condition: Some(AppendCondition {
            fail_if_events_match: Some(trefoil_grpc::Query {
                items: items.collect(),
            }),
            after: None,
        }),
        tracking_info: None,
    }
}

/// Appends that each find out whether a tag is new.
fn append_fresh(server: &Server, n: usize) {
    let mut client = server.client();
    for number in 0..n {
        let tag = format!("fresh:{number}");
        let commit = json!({"events": [{"type": "Fresh", "data": {}, "tags": [tag]}],
            "conditions": [{"query": {"items": [{"tags": [tag]}]}}]});
        client.rpc(&json!(["commit", commit])).ok();
    }
}

/// While conditions are looked into that take long, others append; when the clients have left, the
/// looking ends. How many events make a condition outlast those appends depends on the machine and
/// its disk: where they were too few, there are twice as many the next time.
#[test]
fn a_long_condition_holds_nobody_up_and_ends_with_its_client() {
    let n_events = [20_000, 40_000, 80_000, 160_000];
    assert!(
        n_events.into_iter().any(no_long_condition_is_answered),
        "long conditions were answered although others were faster and their clients had left"
    );
}

/// Whether appends whose condition takes long came to nothing, because others appended meanwhile
/// and their clients left then.
fn no_long_condition_is_answered(n_events: usize) -> bool {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &SMALL_PARTS);
    fill(&server, n_events);
    let leaving: Vec<_> = (0..8).map(|_| endless_over_http(&server)).collect();
    let grpc = Grpc::connect(server.grpc_port, ADMIN);
    let is_outlasted = thread::scope(|scope| {
        let others = scope.spawn(|| append_fresh(&server, 20));
        let finished = async {
            while !others.is_finished() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let mut requests = grpc.client.clone();
        let is_outlasted = grpc.runtime.block_on(async {
            tokio::select! {
                _ = requests.append(endless_over_grpc()) => false,
                () = finished => true,
            }
        });
        others.join().unwrap();
        is_outlasted
    });
    drop((leaving, grpc));
    wait_until_idle(&server);
    let never = json!(["events.query", {"items": [{"types": ["Never"]}]}]);
    is_outlasted && server.client().rpc(&never).ok()["events"] == json!([])
}

/// An append of nothing has a condition all the same; when its client has left, nobody wants to
/// know how it ends.
#[test]
fn the_long_condition_of_an_append_of_nothing_ends_with_its_client() {
    const CLIENTS: u64 = 64;
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &SMALL_PARTS);
    fill(&server, 20_000);
    wait_until_idle(&server);
    let request = AppendRequest {
        events: Vec::new(),
        ..endless_over_grpc()
    };
    let Grpc { runtime, client } = Grpc::connect(server.grpc_port, ADMIN);
    let before = ticks(&server);
    let answer = runtime.block_on(client.clone().append(request.clone()));
    assert_eq!(answer.unwrap(), 0);
    let once = ticks(&server) - before;
    let before = ticks(&server);
    runtime.block_on(async {
        for _ in 0..CLIENTS {
            let (mut client, request) = (client.clone(), request.clone());
            tokio::spawn(async move { client.append(request).await });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    });
    drop((client, runtime));
    wait_until_idle(&server);
    let spent = ticks(&server) - before;
    assert!(spent < once * CLIENTS / 2, "{spent} ticks, {once} for one");
}
