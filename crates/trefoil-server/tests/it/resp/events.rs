//! Events over RESP and over HTTP are the same events.

use super::Client;
use super::value::Value;
use crate::client::request;
use crate::harness::TestServer;

#[test]
fn what_one_protocol_writes_the_other_reads() {
    let server = TestServer::test_mode();
    let mut client = Client::connect(&server);
    let body = br#"["stream.write","account-1",{"type":"Opened","data":{"by":"http"}}]"#;
    assert_eq!(
        request(server.address, "POST", "/rpc", "", body).status,
        200
    );
    let appended = client.ask(&[
        "EVENT.APPEND",
        "account-1",
        "Deposited",
        "{\"by\":\"resp\"}",
    ]);
    assert_eq!(appended, "[2 1]");
    let shown = client.say("EVENT.READ account-1 COUNT 1");
    assert!(shown.contains(r#""data" "{\"by\":\"http\"}""#), "{shown}");
    let read = request(
        server.address,
        "POST",
        "/rpc",
        "",
        br#"["stream.get","account-1"]"#,
    );
    assert!(read.text().contains(r#"{"by":"resp"}"#), "{}", read.text());
}

#[test]
fn long_reads_are_answered_whole() {
    let server = TestServer::test_mode();
    let mut client = Client::connect(&server);
    let data = format!("\"{}\"", "x".repeat(1000));
    assert_eq!(client.say("MULTI"), "+OK");
    for n in 0..6000 {
        let stream = format!("a-{}", n % 10);
        client.ask(&["EVENT.APPEND", &stream, "T", &data, "TAG", "t"]);
    }
    client.send(&["EXEC"]);
    assert!(matches!(client.reply(), Value::Array(replies) if replies.len() == 6000));
    client.send(&["EVENT.QUERY", "COUNT", "10000", "TAG", "t"]);
    let Value::Array(reply) = client.reply() else {
        panic!("not a list");
    };
    assert_eq!(reply[0], Value::Integer(6000));
    assert!(matches!(&reply[1], Value::Array(events) if events.len() == 6000));
    client.send(&["EVENT.CATEGORY", "a"]);
    assert!(matches!(client.reply(), Value::Array(events) if events.len() == 1000));
}
