//! Retention policies on the built server: they hold after it was killed, also in a namespace that nobody
//! visits, and writers do not wait for them.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::harness::Server;

/// How long anything may take on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many seconds events are kept: longer than it takes to write them.
const MAX_AGE: u64 = 15;

/// How many events servers say they have removed.
fn n_removed(server: &Server) -> u64 {
    let answer = server.anonymous().get("/metrics");
    let line = answer
        .text()
        .lines()
        .find_map(|line| line.strip_prefix("trefoil_removed_events_total "));
    line.unwrap().parse().unwrap()
}

fn wait_for_removals(server: &Server, n: u64) {
    let deadline = Instant::now() + PATIENCE;
    while n_removed(server) < n {
        assert!(Instant::now() < deadline, "{} removed", n_removed(server));
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_policy_holds_after_a_kill_in_a_namespace_that_nobody_visits() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let token = server.client().create_namespace("tenant");
    let mut client = server.client_with(&token);
    let policy = json!({"category": "session", "maxAge": MAX_AGE});
    client.rpc(&json!(["retention.set", policy])).ok();
    for number in 0..20 {
        client.write("session-1", &json!({ "number": number }));
        client.write("account-1", &json!({ "number": number }));
    }
    assert_eq!(n_removed(&server), 0);
    server.kill();
    let server = Server::on(data.path(), &[]);
    wait_for_removals(&server, 20);
    let mut client = server.client_with(&token);
    let left = |client: &mut crate::harness::Client, category: &str| {
        let page = client.rpc(&json!(["category.get", category])).ok();
        page.as_array().unwrap().len()
    };
    assert_eq!(left(&mut client, "session"), 0);
    assert_eq!(left(&mut client, "account"), 20);
    let version = client.rpc(&json!(["stream.version", "session-1"])).ok();
    assert_eq!(version, json!(19));
    // What is removed stays so after another kill, and the policy is still there.
    server.kill();
    let server = Server::on(data.path(), &[]);
    let mut client = server.client_with(&token);
    assert_eq!(left(&mut client, "session"), 0);
    let listed = client.rpc(&json!(["retention.list"])).ok();
    assert_eq!(
        listed,
        json!([{"category": "session", "maxAge": MAX_AGE, "maxCount": null}])
    );
}

#[test]
fn writers_do_not_wait_while_a_policy_removes_much() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let mut client = server.client();
    let events: Vec<_> = (0..5000)
        .map(|number| {
            let stream = format!("many-{}", number % 1000);
            json!({"stream": stream, "type": "Written", "data": {}})
        })
        .collect();
    for _ in 0..10 {
        client.rpc(&json!(["commit", { "events": events }])).ok();
    }
    let policy = json!({"category": "many", "maxCount": 1});
    client.rpc(&json!(["retention.set", policy])).ok();
    let (mut slowest, mut n_writes) = (Duration::ZERO, 0_u64);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let began = Instant::now();
        client.write("account-1", &json!({}));
        slowest = slowest.max(began.elapsed());
        n_writes += 1;
        let removed = n_removed(&server);
        if removed >= 49_000 {
            break;
        }
        assert!(Instant::now() < deadline, "{removed} removed");
    }
    println!("{n_writes} writes meanwhile, the slowest took {slowest:?}");
    // A busy machine may delay any write by seconds.
    assert!(slowest < Duration::from_secs(20), "{slowest:?}");
    let version = client.rpc(&json!(["stream.version", "account-1"])).ok();
    assert_eq!(version, json!(n_writes - 1));
}
