//! RESP requests to a node that does not have the namespace: answered as if it had, in order, and
//! carried out once when the namespace moves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{TestCluster, TestNode, metric, owner_and_others};
use crate::client::rpc;
use crate::resp::value::Value;
use crate::resp::{Client, request};

/// Three nodes, of which one has the default namespace.
fn three(cluster: &TestCluster) -> (TestNode, Vec<TestNode>) {
    let nodes: Vec<TestNode> = ["a", "b", "c"].map(|name| cluster.node(name)).into();
    let mut client = Client::known(&nodes[0].server);
    assert_eq!(client.say("SET first 1"), "+OK");
    owner_and_others(nodes)
}

/// Replies to lines that are sent together.
fn pipeline(client: &mut Client, lines: &[&str]) -> Vec<String> {
    let mut bytes = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        bytes.extend(request(&words));
    }
    client.write(&bytes);
    lines.iter().map(|_| client.reply().to_string()).collect()
}

/// Commands whose replies are the same wherever they are sent to.
const LINES: &[&str] = &[
    "FLUSHALL",
    "SET k 1",
    "INCR k",
    "GET k",
    "PING",
    "GET none",
    "HSET h a 1 b 2",
    "HGETALL h",
    "LPUSH k x",
    "LRANGE l 0 -1",
    "NOSUCH x",
    "GET",
    "MULTI",
    "INCR k",
    "PING in",
    "NOSUCH",
    "EXEC",
    "MULTI",
    "INCR k",
    "EVENT.APPEND s-1 T {}",
    "HGETALL h",
    "EXEC",
    "EVENT.HEAD",
    "EVENT.READ s-1 COUNT 1",
    "WATCH k",
    "MULTI",
    "SET k 5",
    "EXEC",
    "WATCH k",
    "SET k 6",
    "MULTI",
    "SET k 7",
    "EXEC",
    "WATCH k",
    "SET k 8",
    "UNWATCH",
    "MULTI",
    "SET k 9",
    "EXEC",
    "TREFOIL.STRICT ON",
    "MULTI",
    "SET k 10",
    "LPUSH k x",
    "EXEC",
    "GET k",
    "TREFOIL.STRICT OFF",
    "TREFOIL.COMMITID once",
    "INCR k",
    "TREFOIL.COMMITID once",
    "INCR k",
    "TREFOIL.COMMITID twice",
    "MULTI",
    "INCR k",
    "EXEC",
    "TREFOIL.COMMITID twice",
    "MULTI",
    "INCR k",
    "EXEC",
    "EVENT.REQUIRE 0",
    "WAIT 0 0",
    "WAITAOF 1 0 0",
    "MULTI",
    "SET k 1",
    "DISCARD",
    "CLIENT GETNAME",
    "DBSIZE",
    "FLUSHALL",
    "DBSIZE",
];

#[test]
fn any_node_answers_every_command() {
    let cluster = TestCluster::new();
    let (owner, others) = three(&cluster);
    for version in ["2", "3"] {
        let ask = |node: &TestNode, is_together: bool| {
            let mut client = Client::known(&node.server);
            // Its greeting has the number of the client.
            client.ask(&["HELLO", version]);
            match is_together {
                true => pipeline(&mut client, LINES),
                false => LINES.iter().map(|line| client.say(line)).collect(),
            }
        };
        let without_times = |replies: Vec<String>| -> Vec<String> {
            // Positions and times of events are not the same.
            let head = LINES.iter().position(|line| *line == "EVENT.HEAD").unwrap();
            let is_timed = |index: &usize| (head - 1..=head + 1).contains(index);
            let replies = replies.into_iter().enumerate();
            { replies.filter(|(index, _)| !is_timed(index)) }
                .map(|(_, reply)| reply)
                .collect()
        };
        let expected = without_times(ask(&owner, false));
        for (node, is_together) in [(&others[0], false), (&others[1], true), (&owner, true)] {
            let found = without_times(ask(node, is_together));
            let differences: Vec<_> = { found.iter().zip(&expected).enumerate() }
                .filter(|(_, (found, expected))| found != expected)
                .collect();
            assert!(differences.is_empty(), "{differences:#?}");
        }
    }
    let answered = "trefoil_forwarded_requests_total{protocol=\"resp\",outcome=\"answered\"}";
    assert!(metric(&others[0], answered) > 50);
    assert_eq!(metric(&owner, answered), 0);
}

#[test]
fn settings_of_a_client_stay_here_and_large_values_pass() {
    let cluster = TestCluster::new();
    let (owner, others) = three(&cluster);
    let mut client = Client::known(&others[0].server);
    assert_eq!(client.say("CLIENT SETNAME shop"), "+OK");
    let large = "x".repeat(3_000_000);
    assert_eq!(client.ask(&["SET", "large", &large]), "+OK");
    client.send(&["GET", "large"]);
    assert_eq!(client.reply(), Value::Bulk(large.clone().into_bytes()));
    // Requests and replies that are larger than what fits between two nodes.
    let mut bytes = Vec::new();
    for n in 0..20 {
        bytes.extend(request(&["GET", "large"]));
        bytes.extend(request(&["SET", &format!("large{n}"), &large[..500_000]]));
        bytes.extend(request(&["CLIENT", "GETNAME"]));
    }
    std::thread::scope(|scope| {
        let mut writer = client.second();
        scope.spawn(move || writer.write(&bytes));
        for _ in 0..20 {
            assert_eq!(client.reply(), Value::Bulk(large.clone().into_bytes()));
            assert_eq!(client.reply(), Value::Simple("OK".into()));
            assert_eq!(client.reply(), Value::Bulk(b"shop".to_vec()));
        }
    });
    let mut fields = vec!["HSET".to_owned(), "hash".to_owned()];
    fields.extend((0..20_000).flat_map(|n| [format!("f{n}"), n.to_string()]));
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    assert_eq!(client.ask(&fields), "20000");
    client.send(&["HGETALL", "hash"]);
    let Value::Array(items) = client.reply() else {
        panic!("no array");
    };
    assert_eq!(items.len(), 40_000);
    // No replies are wanted, then one is not, then all are.
    let lines = ["CLIENT REPLY OFF", "INCR n", "GET large", "CLIENT REPLY ON"];
    let mut bytes = Vec::new();
    for line in lines {
        bytes.extend(request(&line.split(' ').collect::<Vec<_>>()));
    }
    client.write(&bytes);
    assert_eq!(client.reply().to_string(), "+OK");
    client.write(
        &[
            request(&["CLIENT", "REPLY", "SKIP"]),
            request(&["INCR", "n"]),
        ]
        .concat(),
    );
    assert_eq!(client.say("INCR n"), "3");
    // Another namespace, in the middle.
    let made = rpc(
        owner.server.address,
        &json!(["ns.create", "shop"]).to_string(),
    );
    let made: serde_json::Value = serde_json::from_slice(&made.body).unwrap();
    others[0].namespaces.catch_up().unwrap();
    let token = made["token"].as_str().unwrap();
    let default = trefoil::Token::development();
    let replies = [
        client.ask(&["AUTH", "shop", token]),
        client.say("GET n"),
        client.say("SET n 9"),
        client.ask(&["AUTH", default.reveal()]),
        client.say("GET n"),
        client.say("RESET"),
        client.say("GET n"),
    ];
    let expected = ["+OK", "$-1", "+OK", "+OK", "\"3\"", "+RESET"];
    assert_eq!(replies[..6], expected);
    assert!(replies[6].starts_with("-NOAUTH"), "{}", replies[6]);
}

#[test]
fn a_planned_stop_fails_no_request_and_repeats_none() {
    let cluster = TestCluster::new();
    let (owner, others) = three(&cluster);
    let is_over = AtomicBool::new(false);
    let n_done = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|number| {
                let (node, is_over) = (&others[number % 2], &is_over);
                scope.spawn(move || {
                    let mut client = Client::known(&node.server);
                    let key = format!("n{number}");
                    let mut n = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let lines = [
                            format!("INCR {key}"),
                            "MULTI".into(),
                            format!("INCR {key}"),
                            format!("INCR {key}"),
                            "EXEC".into(),
                            format!("GET {key}"),
                            format!("INCR {key}"),
                        ];
                        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
                        let replies = pipeline(&mut client, &lines);
                        let expected = [
                            format!("{}", n + 1),
                            "+OK".into(),
                            "+QUEUED".into(),
                            "+QUEUED".into(),
                            format!("[{} {}]", n + 2, n + 3),
                            format!("\"{}\"", n + 3),
                            format!("{}", n + 4),
                        ];
                        assert_eq!(replies, expected);
                        n += 4;
                    }
                    n
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        owner.stop();
        std::thread::sleep(Duration::from_millis(700));
        is_over.store(true, Ordering::Relaxed);
        { clients.into_iter() }
            .map(|client| client.join().unwrap())
            .collect::<Vec<u64>>()
    });
    let mut client = Client::known(&others[0].server);
    for (number, n) in n_done.into_iter().enumerate() {
        assert!(n > 0);
        assert_eq!(client.say(&format!("GET n{number}")), format!("\"{n}\""));
    }
}

#[test]
fn what_is_watched_does_not_move_and_what_is_queued_does() {
    let cluster = TestCluster::new();
    let (owner, others) = three(&cluster);
    let mut watching = Client::known(&others[0].server);
    assert_eq!(watching.say("WATCH k"), "+OK");
    assert_eq!(watching.say("MULTI"), "+OK");
    assert_eq!(watching.say("SET k watched"), "+QUEUED");
    let mut queuing = Client::known(&others[1].server);
    assert_eq!(queuing.say("GET k"), "$-1");
    assert_eq!(queuing.say("MULTI"), "+OK");
    assert_eq!(queuing.say("SET k queued"), "+QUEUED");
    let mut at_owner = Client::known(&owner.server);
    assert_eq!(at_owner.say("WATCH k"), "+OK");
    owner.stop();
    let refused = watching.say("EXEC");
    assert!(refused.starts_with("-WRONGNODE"), "{refused}");
    assert!(refused.ends_with("connect again"), "{refused}");
    watching.check_closed();
    assert_eq!(queuing.say("EXEC"), "[+OK]");
    assert_eq!(queuing.say("GET k"), "\"queued\"");
}

#[test]
fn a_namespace_that_comes_here_is_used_here() {
    let cluster = TestCluster::new();
    let nodes: Vec<TestNode> = ["a", "b"].map(|name| cluster.node(name)).into();
    assert_eq!(Client::known(&nodes[0].server).say("SET k 1"), "+OK");
    let (owner, others) = owner_and_others(nodes);
    let mut client = Client::known(&others[0].server);
    assert_eq!(client.say("INCR k"), "2");
    let answered = "trefoil_forwarded_requests_total{protocol=\"resp\",outcome=\"answered\"}";
    let before = metric(&others[0], answered);
    assert_eq!(before, 1);
    owner.stop();
    assert_eq!(pipeline(&mut client, &["INCR k", "GET k"]), ["3", "\"3\""]);
    assert_eq!(client.say("INCR k"), "4");
    assert_eq!(metric(&others[0], answered), before);
}
