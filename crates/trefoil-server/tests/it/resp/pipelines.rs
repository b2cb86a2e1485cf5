//! Bytes in any pieces, requests in any number, and clients that break the rules.

use std::collections::HashSet;
use std::io::Write as _;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use trefoil_server::{Config, RespConfig};

use super::value::Value;
use super::{Client, request};
use crate::harness::TestServer;

#[test]
fn a_pipeline_is_answered_in_order_however_it_is_split() {
    let server = TestServer::test_mode();
    let mut bytes = Vec::new();
    for words in [
        &["SET", "a", "1"][..],
        &["INCR", "a"],
        &["GET", "a"],
        &["PING"],
        &["MULTI"],
        &["INCRBY", "a", "5"],
        &["EXEC"],
        &["HGETALL", "none"],
        &["NOSUCH"],
        &["DEL", "a"],
    ] {
        bytes.extend(request(words));
    }
    bytes.extend_from_slice(b"PING \"in line\"\r\n\r\n*0\r\nECHO 'x'\n");
    let expected = "+OK 2 \"2\" +PONG +OK +QUEUED [7] [] -ERR unknown command 'NOSUCH', with args \
                    beginning with:  1 \"in line\" \"x\"";
    let mut client = Client::connect(&server);
    let mut check = |pieces: [&[u8]; 2]| {
        for piece in pieces {
            client.write(piece);
        }
        let replies: Vec<String> = (0..12).map(|_| client.reply().to_string()).collect();
        assert_eq!(replies.join(" "), expected);
    };
    for at in 0..bytes.len() {
        check(bytes.split_at(at).into());
    }
    for byte in bytes.chunks(1) {
        client.write(byte);
    }
    let replies: Vec<String> = (0..12).map(|_| client.reply().to_string()).collect();
    assert_eq!(replies.join(" "), expected);
    assert!(client.buffer.is_empty());
}

#[test]
fn random_picks_of_one_pipeline_differ() {
    let server = TestServer::test_mode();
    let mut client = Client::connect(&server);
    let members: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let words: Vec<&str> = ["SADD", "s"]
        .into_iter()
        .chain(members.iter().map(String::as_str))
        .collect();
    client.write(&request(&words));
    assert_eq!(client.reply(), Value::Integer(100));
    client.write(&request(&["SRANDMEMBER", "s"]).repeat(64));
    let picked: HashSet<String> = (0..64).map(|_| client.reply().to_string()).collect();
    // About 47 are expected; that there are so few by chance does not happen.
    assert!(picked.len() > 16, "{picked:?}");
}

#[test]
fn thousands_of_requests_in_one_piece_are_all_answered() {
    let server = TestServer::test_mode();
    let mut client = Client::connect(&server);
    let n = 20_000;
    let mut bytes = Vec::new();
    for _ in 0..n {
        bytes.extend(request(&["INCR", "n"]));
        bytes.extend(request(&["GET", "n"]));
    }
    let mut writer = client.socket.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
    for i in 1..=n {
        assert_eq!(client.reply(), Value::Integer(i));
        assert_eq!(client.reply(), Value::Bulk(i.to_string().into_bytes()));
    }
    writing.join().unwrap();
}

#[test]
fn a_large_value_goes_in_and_comes_out() {
    let server = TestServer::test_mode();
    let mut client = Client::connect(&server);
    let large = "x".repeat(20 * 1024 * 1024);
    assert_eq!(client.ask(&["SET", "large", &large]), "+OK");
    client.send(&["GET", "large"]);
    assert_eq!(client.reply(), Value::Bulk(large.into_bytes()));
}

#[track_caller]
fn check_violation(client: &mut Client, bytes: &[u8], expected: &str) {
    let _ = client.socket.write_all(bytes);
    let expected = format!("-ERR Protocol error: {expected}");
    assert_eq!(client.reply().to_string(), expected);
    client.check_closed();
}

#[test]
fn who_breaks_the_protocol_is_told_once_and_hung_up_on() {
    let server = TestServer::production();
    let long = vec![b'1'; 70_000];
    let cases: [(&[u8], &str); 6] = [
        (b"*x\r\n", "invalid multibulk length"),
        (b"*1\r\n$-5\r\n", "invalid bulk length"),
        (b"*1\r\n+OK\r\n", "expected '$', got '+'"),
        (b"*1\r\n$104857601\r\n", "invalid bulk length"),
        (b"\"\r\n", "unbalanced quotes in request"),
        (&long, "too big inline request"),
    ];
    for (bytes, expected) in cases {
        check_violation(&mut Client::connect(&server), bytes, expected);
        check_violation(&mut Client::known(&server), bytes, expected);
    }
    // What came before is answered.
    let mut client = Client::known(&server);
    client.write(b"PING\r\n*1\r\n$4\r\nPING\r\n*1\r\nPING\r\n");
    assert_eq!(client.reply().to_string(), "+PONG");
    assert_eq!(client.reply().to_string(), "+PONG");
    check_violation(&mut client, b"", "expected '$', got 'P'");
}

#[test]
fn strangers_may_send_little() {
    let server = TestServer::production();
    let client = || Client::connect(&server);
    check_violation(
        &mut client(),
        b"*11\r\n",
        "unauthenticated multibulk length",
    );
    let text = "unauthenticated bulk length";
    check_violation(&mut client(), b"*1\r\n$16385\r\n", text);
    // The same is fine right after authentication, in one piece.
    let mut known = client();
    let token = trefoil::Token::development();
    let large = "x".repeat(100_000);
    let mut bytes = request(&["AUTH", token.reveal()]);
    bytes.extend(request(&["SET", "k", &large]));
    bytes.extend(request(&[
        "MGET", "1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "k",
    ]));
    known.write(&bytes);
    assert_eq!(known.reply().to_string(), "+OK");
    assert_eq!(known.reply().to_string(), "+OK");
    assert!(matches!(known.reply(), Value::Array(values) if values.len() == 11));
}

#[test]
fn a_client_that_does_not_read_its_replies_is_not_read_from_and_then_given_up_on() {
    let server = TestServer::with(Config {
        test_mode: true,
        resp: Some(RespConfig {
            reply_timeout: Duration::from_millis(500),
            ..RespConfig::default()
        }),
        ..Config::default()
    });
    let mut client = Client::connect(&server);
    let value = "x".repeat(64 * 1024);
    assert_eq!(client.ask(&["SET", "k", &value]), "+OK");
    // A gigabyte of replies is asked for, and none of it read.
    let gets = request(&["GET", "k"]).repeat(1000);
    let began = Instant::now();
    let timeout = Some(Duration::from_secs(1));
    client.socket.set_write_timeout(timeout).unwrap();
    let mut written = 0;
    let ended = loop {
        match client.socket.write(&gets) {
            Ok(bytes) => written += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => break error,
        }
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "{written} bytes were taken"
        );
    };
    assert!(written < 64 * 1024 * 1024, "{written} bytes, {ended}");
    assert_eq!(Client::connect(&server).say("PING"), "+PONG");
}

/// How many bytes of replies are not taken, of the client that has most of them.
fn unsent(client: &mut Client) -> usize {
    let list = client.say("CLIENT LIST");
    let fields = list.split_whitespace();
    let sizes = fields.filter_map(|field| field.strip_prefix("omem="));
    sizes.map(|size| size.parse().unwrap()).max().unwrap()
}

fn wait_until_unsent(client: &mut Client) {
    let began = Instant::now();
    while unsent(client) == 0 {
        let waited = began.elapsed();
        assert!(waited < Duration::from_secs(20), "nothing is unsent");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn short_replies_that_a_client_does_not_take_at_once_come_in_order_and_keep_nobody() {
    let server = TestServer::test_mode();
    let (mut slow, mut other) = (Client::connect(&server), Client::connect(&server));
    let filling = "x".repeat(4000);
    assert_eq!(slow.ask(&["SET", "k", &filling]), "+OK");
    // Each is answered in a turn of its own, and together they are more than sockets hold.
    let n = 12_000;
    let mut writer = slow.second();
    let writing = std::thread::spawn(move || {
        for number in 0..n {
            let number = number.to_string();
            let bytes = [request(&["GET", "k"]), request(&["ECHO", &number])].concat();
            writer.write(&bytes);
        }
    });
    wait_until_unsent(&mut other);
    for number in 0..n {
        assert_eq!(slow.reply(), Value::Bulk(filling.clone().into_bytes()));
        assert_eq!(slow.reply(), Value::Bulk(number.to_string().into_bytes()));
    }
    writing.join().unwrap();
}

#[test]
fn a_client_that_says_that_nothing_more_comes_gets_its_replies() {
    let server = TestServer::test_mode();
    for _ in 0..50 {
        let mut client = Client::connect(&server);
        client.write(&[request(&["INCR", "n"]), request(&["PING"])].concat());
        client.socket.shutdown(Shutdown::Write).unwrap();
        assert!(matches!(client.reply(), Value::Integer(_)));
        assert_eq!(client.reply().to_string(), "+PONG");
        client.check_closed();
    }
}

#[test]
fn replies_that_a_client_does_not_take_are_listed() {
    let server = TestServer::test_mode();
    let (mut slow, mut other) = (Client::connect(&server), Client::connect(&server));
    slow.ask(&["SET", "large", &"x".repeat(1_000_000)]);
    for _ in 0..50 {
        slow.send(&["GET", "large"]);
    }
    wait_until_unsent(&mut other);
    for _ in 0..50 {
        slow.reply();
    }
    assert_eq!(unsent(&mut other), 0);
}
