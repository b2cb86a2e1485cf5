//! What the log and `SLOWLOG` say about requests that failed or were slow.

use std::io::{BufReader, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::harness::{ADMIN, Resp, Server, Sse, Value, connect, read_head};

/// The lines of the log with this message.
fn lines(server: &Server, message: &str) -> Vec<Json> {
    let log = server.log();
    let lines = log.lines().filter(|line| line.starts_with('{'));
    let lines = lines.map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Json| line["message"] == message)
        .collect()
}

#[test]
fn slow_requests_are_in_the_log_and_in_slowlog() {
    let data = TempDir::new().unwrap();
    let server = Server::on(
        data.path(),
        &["--test-mode", "--slow-request-ms=100", "--log-format=json"],
    );
    let mut resp = server.resp();
    assert_eq!(resp.line("SLOWLOG LEN"), Value::Integer(0));
    assert_eq!(resp.line("CLIENT SETNAME me"), Value::ok());
    assert_eq!(resp.line("SET key quick"), Value::ok());
    assert_eq!(resp.line("DEBUG SLEEP 0.2"), Value::ok());
    assert_eq!(resp.line("SLOWLOG LEN"), Value::Integer(1));
    let shown = resp.line("SLOWLOG GET");
    let [Value::Array(entry)] = shown.elements().unwrap() else {
        panic!("{shown:?}");
    };
    let [
        id,
        Value::Integer(time),
        Value::Integer(micros),
        words,
        address,
        name,
    ] = &entry[..]
    else {
        panic!("{entry:?}");
    };
    assert!(*time > 1_700_000_000 && (200_000..5_000_000).contains(micros));
    assert_eq!((id, name), (&Value::Integer(0), &Value::bulk("me")));
    let sleep = ["DEBUG", "SLEEP", "0.2"].map(Value::bulk);
    assert_eq!(words.elements(), Some(&sleep[..]));
    assert!(address.bytes().starts_with(b"127.0.0.1:"));
    let lines = lines(&server, "request was slow");
    let [line] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    for (name, value) in [
        ("protocol", "resp"),
        ("method", "debug|sleep"),
        ("namespace", "default"),
        ("stage", "serve"),
    ] {
        assert_eq!(line[name], value, "{line}");
    }
    assert!(line["duration_us"].as_u64().unwrap() >= 200_000);
    // Another namespace sees nothing of it.
    let mut other = Resp::connect(server.resp_port).unwrap();
    let token = server.client().create_namespace("other");
    assert_eq!(other.call(&["AUTH", &token]), Value::ok());
    assert_eq!(other.line("SLOWLOG LEN"), Value::Integer(0));
    assert_eq!(other.line("SLOWLOG GET -1"), Value::Array(Vec::new()));
    assert_eq!(other.line("DEBUG SLEEP 0.11"), Value::ok());
    assert_eq!(other.line("SLOWLOG LEN"), Value::Integer(1));
    assert_eq!(resp.line("SLOWLOG RESET"), Value::ok());
    assert_eq!(resp.line("SLOWLOG LEN"), Value::Integer(0));
    assert_eq!(other.line("SLOWLOG LEN"), Value::Integer(1));
    for wrong in ["SLOWLOG GET x", "SLOWLOG GET -2", "SLOWLOG", "SLOWLOG NOPE"] {
        assert!(matches!(resp.line(wrong), Value::Error(_)), "{wrong}");
    }
}

#[test]
fn a_request_that_arrives_slowly_is_slow_over_http_too() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &["--slow-request-ms=50", "--log-format=json"]);
    let body = json!(["stream.write", "secret-1", { "type": "A", "data": {} }]).to_string();
    let mut connection = connect(server.port).unwrap();
    let head = format!(
        "POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    connection.write_all(body.as_bytes()).unwrap();
    let mut reader = BufReader::new(connection);
    assert_eq!(read_head(&mut reader).unwrap().0, 200);
    let lines = lines(&server, "request was slow");
    let [line] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    for (name, value) in [
        ("protocol", "http"),
        ("method", "stream.write"),
        ("stage", "receive"),
    ] {
        assert_eq!(line[name], value, "{line}");
    }
    let shown = server.resp().line("SLOWLOG GET");
    let entry = shown.elements().unwrap()[0].elements().unwrap();
    assert_eq!(
        entry[3].elements(),
        Some(&[Value::bulk("stream.write")][..])
    );
    assert_eq!(entry[5], Value::bulk("http"));
    assert!(!server.log().contains("secret"));
}

#[test]
fn refusals_are_logged_a_few_times_and_conflicts_are_not() {
    let data = TempDir::new().unwrap();
    let server = Server::on(
        data.path(),
        &["--open-namespaces-max=1", "--log-format=json"],
    );
    let mut client = server.client();
    let token = client.create_namespace("crowded-out");
    client.write("account-1", &json!({ "secret": "data" }));
    let conflict = json!(["stream.write", "account-1", { "type": "A", "data": {} },
        { "expectedVersion": 7 }]);
    for _ in 0..20 {
        assert_eq!(client.rpc(&conflict).code(), "STREAM_VERSION_CONFLICT");
    }
    // The subscription keeps its namespace open, so there is no room for another.
    let subscription = Sse::subscribe(&server, ADMIN, "category=account");
    assert!(subscription.next().is_some());
    let mut other = server.client_with(&token);
    for _ in 0..20 {
        let refused = other.rpc(&json!(["stream.get", "a-1"]));
        assert_eq!(refused.code(), "OVERLOADED");
    }
    let failed = lines(&server, "request failed");
    assert_eq!(failed.len(), 5, "{failed:?}");
    for line in &failed {
        for (name, value) in [
            ("level", "WARN"),
            ("protocol", "http"),
            ("method", "stream.get"),
            ("namespace", "crowded-out"),
            ("code", "OVERLOADED"),
        ] {
            assert_eq!(line[name], value, "{line}");
        }
    }
    let more = "more lines: request failed";
    let deadline = Instant::now() + Duration::from_secs(30);
    while lines(&server, more).is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(100));
    }
    let more = lines(&server, more);
    assert_eq!(more.len(), 1);
    assert_eq!(more[0]["left_out"], 15);
    let log = server.log();
    for hidden in ["account-1", "secret", &token, "STREAM_VERSION_CONFLICT"] {
        assert!(!log.contains(hidden), "{hidden} in {log}");
    }
}
