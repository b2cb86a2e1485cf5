//! Transactions that meet, and transactions that are large.

use std::io::Write as _;

use super::value::Value;
use super::{Client, request};
use crate::harness::TestServer;

#[test]
fn watching_clients_lose_no_update() {
    let server = TestServer::test_mode();
    let (n_clients, n_each) = (8, 25);
    std::thread::scope(|scope| {
        for _ in 0..n_clients {
            scope.spawn(|| {
                let mut client = Client::connect(&server);
                for _ in 0..n_each {
                    increment(&mut client);
                }
            });
        }
    });
    let total = Client::connect(&server).say("GET n");
    assert_eq!(total, format!("\"{}\"", n_clients * n_each));
}

/// Adds one by reading and writing, until nobody comes between.
fn increment(client: &mut Client) {
    loop {
        assert_eq!(client.say("WATCH n"), "+OK");
        client.send(&["GET", "n"]);
        let n: u64 = match client.reply() {
            Value::Bulk(digits) => String::from_utf8(digits).unwrap().parse().unwrap(),
            _ => 0,
        };
        let mut bytes = request(&["MULTI"]);
        bytes.extend(request(&["SET", "n", &(n + 1).to_string()]));
        bytes.extend(request(&["EXEC"]));
        client.write(&bytes);
        client.reply();
        client.reply();
        match client.reply() {
            Value::Array(_) => return,
            Value::Nil(nil) => assert_eq!(nil, "*-1"),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn conditions_lose_no_update_either() {
    let server = TestServer::test_mode();
    let n_clients = 8;
    Client::connect(&server).say("SET n 0");
    std::thread::scope(|scope| {
        for _ in 0..n_clients {
            scope.spawn(|| {
                let mut client = Client::connect(&server);
                loop {
                    let Value::Bulk(digits) = ask(&mut client, &["GET", "n"]) else {
                        panic!("n is gone");
                    };
                    let n = String::from_utf8(digits).unwrap();
                    client.say("MULTI");
                    client.say("INCR n");
                    let stream = ["EVENT.APPEND", "count-1", "Counted", &n, "EXPECT"];
                    let expected = (n.parse::<i64>().unwrap() - 1).to_string();
                    client.ask(&[&stream[..], &[&expected]].concat());
                    match ask(&mut client, &["EXEC", "IFEQ", "n", &n]) {
                        Value::Array(_) => return,
                        Value::Nil(_) => {}
                        other => panic!("{other}"),
                    }
                }
            });
        }
    });
    let mut client = Client::connect(&server);
    assert_eq!(client.say("GET n"), format!("\"{n_clients}\""));
    assert_eq!(
        client.say("EVENT.VERSION count-1"),
        (n_clients - 1).to_string()
    );
}

fn ask(client: &mut Client, words: &[&str]) -> Value {
    client.send(words);
    client.reply()
}

#[test]
fn a_hundred_thousand_commands_wait_for_one_exec() {
    let server = TestServer::test_mode();
    let mut client = Client::connect(&server);
    let n = 100_000;
    let mut bytes = request(&["MULTI"]);
    for offset in 0..n {
        bytes.extend(request(&["SETBIT", "seats", &offset.to_string(), "1"]));
    }
    bytes.extend(request(&["EXEC"]));
    let mut writer = client.socket.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
    assert_eq!(client.reply().to_string(), "+OK");
    for _ in 0..n {
        assert_eq!(client.reply().to_string(), "+QUEUED");
    }
    writing.join().unwrap();
    assert!(matches!(client.reply(), Value::Array(replies) if replies.len() == n));
    assert_eq!(client.say("BITCOUNT seats"), n.to_string());
}

#[test]
fn an_error_in_a_pipeline_does_not_reach_its_neighbours() {
    let server = TestServer::test_mode();
    let mut client = Client::connect(&server);
    let mut bytes = request(&["SET", "a", "1"]);
    bytes.extend(request(&["EVENT.APPEND", "s-1", "T", "this is no JSON"]));
    bytes.extend(request(&["LPUSH", "a", "x"]));
    bytes.extend(request(&["EVENT.APPEND", "s-1", "T", "{}", "EXPECT", "5"]));
    bytes.extend(request(&["INCR", "a"]));
    client.write(&bytes);
    let replies: Vec<String> = (0..5).map(|_| client.reply().to_string()).collect();
    let expected = [
        "+OK",
        "-ERR event data is not valid JSON",
        "-WRONGTYPE Operation against a key holding the wrong kind of value",
        "-CONFLICT Expected version 5, stream 's-1' is at version -1",
        "2",
    ];
    assert_eq!(replies, expected);
}
