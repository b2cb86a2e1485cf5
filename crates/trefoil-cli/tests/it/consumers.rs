//! Open subscriptions as their namespace sees them: what each follows, and how far it is behind.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{ADMIN, Client, Server, Sse};

const PATIENCE: Duration = Duration::from_secs(30);

fn subscriptions(client: &mut Client) -> Vec<Value> {
    let listed = client.rpc(&json!(["ns.subscriptions"])).ok();
    listed.as_array().unwrap().clone()
}

/// Waits until the subscriptions are as they should be.
#[track_caller]
fn wait_for(client: &mut Client, is_right: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let open = subscriptions(client);
        if is_right(&open) {
            return open;
        }
        assert!(Instant::now() < deadline, "{open:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_namespace_sees_its_own_subscriptions_and_how_far_they_are() {
    let server = Server::in_test_mode();
    let mut admin = server.client();
    let token = admin.create_namespace("followed");
    let mut client = server.client_with(&token);
    for n in 0..3 {
        client.write("account-1", &json!({"n": n}));
    }
    let one = Sse::subscribe(&server, &token, "category=account&consumer=0&size=1");
    let open = wait_for(&mut client, |open| open.len() == 1 && open[0]["lag"] == 0);
    let expected =
        json!({"category": "account", "items": [], "consumerGroup": {"member": 0, "size": 1}});
    assert_eq!(open[0]["query"], expected);
    let facts =
        ["protocol", "endpoint", "position", "events", "lagMs"].map(|name| open[0][name].clone());
    assert_eq!(json!(facts), json!(["HTTP", "/subscribe", 3, 3, 0]));
    assert!(open[0]["since"].as_str().unwrap().ends_with('Z'));
    // An event that it does not get is not something to wait for either.
    client.write("other-1", &json!({}));
    let open = wait_for(&mut client, |open| open[0]["position"] == 4);
    assert_eq!(
        (&open[0]["events"], &open[0]["lag"]),
        (&json!(3), &json!(0))
    );
    let two = Sse::open(&server, &format!("/events?stream=a-1&token={token}"), &[]);
    let open = wait_for(&mut client, |open| open.len() == 2);
    let page = json!(["ns.subscriptions", {"limit": 1, "cursor": open[0]["id"]}]);
    let page = client.rpc(&page).ok();
    assert_eq!(
        (page.as_array().unwrap().len(), &page[0]["endpoint"]),
        (1, &json!("/events"))
    );
    assert_eq!(subscriptions(&mut admin), Vec::<Value>::new());
    drop((one, two));
    wait_for(&mut client, |open| open.is_empty());
}

#[test]
fn a_subscriber_that_does_not_read_is_seen_to_be_behind() {
    let server = Server::in_test_mode();
    let mut client = server.client();
    let mut stuck = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let request = format!(
        "GET /events?category=big HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"
    );
    stuck.write_all(request.as_bytes()).unwrap();
    stuck.read_exact(&mut [0; 16]).unwrap();
    wait_for(&mut client, |open| open.len() == 1);
    let data = json!({"text": "x".repeat(200_000)});
    for _ in 0..100 {
        client.write("big-1", &data);
    }
    let open = wait_for(&mut client, |open| {
        open[0]["lag"].as_u64() > Some(10) && open[0]["lagMs"].as_u64() > Some(100)
    });
    let (position, lag) = (open[0]["position"].as_u64(), open[0]["lag"].as_u64());
    assert_eq!(position.unwrap() + lag.unwrap(), 100);
    drop(stuck);
    wait_for(&mut client, |open| open.is_empty());
}
