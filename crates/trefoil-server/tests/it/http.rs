//! The protocol itself: headers, connections, compression, HTTP/2, timeouts.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use trefoil::Token;
use trefoil_server::Config;

use crate::client::{Connection, bearer, request, rpc};
use crate::harness::TestServer;

#[test]
fn answers_say_what_they_are() {
    let server = TestServer::production();
    let reply = rpc(server.address, r#"["stream.version","a-1"]"#);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let version = concat!("Trefoil/", env!("CARGO_PKG_VERSION"));
    assert_eq!(reply.header("server"), Some(version));
    assert_eq!(reply.body, b"null");
    let reply = request(server.address, "GET", "/nope", "", b"");
    assert_eq!(reply.header("content-type"), Some("application/json"));
}

#[test]
fn a_connection_serves_many_requests() {
    let server = TestServer::production();
    let mut connection = Connection::open(server.address);
    for position in 0..50 {
        let call = br#"["stream.write","a-1",{"type":"T","data":{}}]"#;
        connection.send("POST", "/rpc", &bearer(), call);
        let expected = format!(
            r#"{{"globalPosition":{},"position":{position}}}"#,
            position + 1
        );
        assert_eq!(connection.reply().text(), expected);
    }
    // Several at once are answered in order, errors and all.
    for call in ["[", r#"["stream.version","a-1"]"#, "[]"] {
        connection.send("POST", "/rpc", &bearer(), call.as_bytes());
    }
    let replies = [connection.reply(), connection.reply(), connection.reply()];
    assert_eq!(replies.map(|reply| reply.status), [400, 200, 400]);
}

#[test]
fn a_body_may_come_in_chunks_or_after_being_asked_for() {
    let server = TestServer::production();
    let mut connection = Connection::open(server.address);
    let head = "POST /rpc HTTP/1.1\r\nhost: x\r\n";
    let chunked = format!("{head}{}transfer-encoding: chunked\r\n\r\n", bearer());
    connection.write(chunked.as_bytes()).unwrap();
    for piece in ["5\r\n[\"sys\r\n", "a\r\n.version\"]\r\n", "0\r\n\r\n"] {
        connection.write(piece.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(connection.reply().status, 200);
    let asking = format!(
        "{head}{}expect: 100-continue\r\ncontent-length: 15\r\n\r\n",
        bearer()
    );
    connection.write(asking.as_bytes()).unwrap();
    assert_eq!(connection.head().0, 100);
    connection.write(br#"["sys.version"]"#).unwrap();
    assert_eq!(connection.reply().status, 200);
}

#[test]
fn large_answers_are_compressed_for_those_who_take_it() {
    let server = TestServer::production();
    let data = "x".repeat(50_000);
    let write = format!(r#"["stream.write","a-1",{{"type":"T","data":{{"x":"{data}"}}}}]"#);
    assert_eq!(rpc(server.address, &write).status, 200);
    let read = br#"["stream.get","a-1"]"#;
    let plain = request(server.address, "POST", "/rpc", &bearer(), read);
    assert_eq!(plain.header("content-encoding"), None);
    let get = |accepted: &str, call: &[u8]| {
        let headers = format!("{}accept-encoding: {accepted}\r\n", bearer());
        request(server.address, "POST", "/rpc", &headers, call)
    };
    for accepted in ["gzip", "deflate, gzip;q=0.5, br"] {
        let reply = get(accepted, read);
        assert_eq!(reply.header("content-encoding"), Some("gzip"), "{accepted}");
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&reply.body[..])
            .read_to_end(&mut text)
            .unwrap();
        assert_eq!(text, plain.body);
        assert!(reply.body.len() < 2000);
    }
    for accepted in ["identity", "gzip;q=0", "br"] {
        assert_eq!(
            get(accepted, read).header("content-encoding"),
            None,
            "{accepted}"
        );
    }
    let small = get("gzip", br#"["sys.version"]"#);
    assert_eq!(small.header("content-encoding"), None);
}

#[test]
fn compressed_requests_are_taken() {
    let server = TestServer::production();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder
        .write_all(br#"["stream.write","a-1",{"type":"T","data":{}}]"#)
        .unwrap();
    let packed = encoder.finish().unwrap();
    let headers = format!("{}content-encoding: gzip\r\n", bearer());
    let reply = request(server.address, "POST", "/rpc", &headers, &packed);
    assert_eq!(reply.text(), r#"{"globalPosition":1,"position":0}"#);
    let reply = request(
        server.address,
        "POST",
        "/rpc",
        &headers,
        &packed[..packed.len() - 4],
    );
    assert_eq!(reply.status, 400, "{}", reply.text());
    let headers = format!("{}content-encoding: br\r\n", bearer());
    assert_eq!(
        request(server.address, "POST", "/rpc", &headers, b"x").status,
        415
    );
}

#[test]
fn large_reads_arrive_whole() {
    let server = TestServer::production();
    let data = "y".repeat(50_000);
    for _ in 0..150 {
        let call = format!(r#"["stream.write","a-1",{{"type":"T","data":{{"y":"{data}"}}}}]"#);
        assert_eq!(rpc(server.address, &call).status, 200);
    }
    for size in ["-1", "1000", "10000"] {
        let call = format!(r#"["stream.get","a-1",{{"batchSize":{size}}}]"#);
        let reply = rpc(server.address, &call);
        assert_eq!(reply.header("transfer-encoding"), Some("chunked"));
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(rows.len(), 150);
    }
}

/// What is written while an answer is on its way is not in it, and its head says so.
#[test]
fn large_queries_arrive_whole_and_end_where_the_log_ended() {
    let server = TestServer::production();
    let data = "y".repeat(50_000);
    let append = || {
        let event = format!(r#"{{"type":"T","data":"{data}","tags":["t"]}}"#);
        let call = format!(r#"["commit",{{"events":[{event}]}}]"#);
        assert_eq!(rpc(server.address, &call).status, 200);
    };
    (0..400).for_each(|_| append());
    let query = r#"{"items":[{"tags":["t"]}]}"#;
    let mut slow = Connection::open(server.address);
    let call = format!(r#"["events.query",{query}]"#);
    slow.send("POST", "/rpc", &bearer(), call.as_bytes());
    let (status, _) = slow.head();
    assert_eq!(status, 200);
    let mut body = slow.chunk().unwrap();
    append();
    while let Some(chunk) = slow.chunk() {
        body.extend(chunk);
    }
    let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["events"].as_array().unwrap().len(), 400);
    assert_eq!(answer["head"], 400);
    for path in ["/dcb/read", r#"/dcb/read?options={"backwards":true}"#] {
        let reply = request(server.address, "GET", path, &bearer(), b"");
        assert_eq!(reply.header("transfer-encoding"), Some("chunked"));
        let events: Vec<serde_json::Value> = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(events.len(), 401);
    }
}

#[test]
fn http2_is_spoken_without_asking() {
    let server = TestServer::production();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(server.address)
            .await
            .unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
                .await
                .unwrap();
        tokio::spawn(connection);
        let get = |method: &str, path: &str, body: &'static str| {
            hyper::Request::builder()
                .method(method)
                .uri(format!("http://localhost{path}"))
                .header(
                    "authorization",
                    format!("Bearer {}", Token::development().reveal()),
                )
                .body(Full::new(bytes::Bytes::from_static(body.as_bytes())))
                .unwrap()
        };
        let write = r#"["stream.write","a-1",{"type":"T","data":{}}]"#;
        for position in 1..=20 {
            let reply = sender
                .send_request(get("POST", "/rpc", write))
                .await
                .unwrap();
            assert_eq!(reply.status(), 200);
            let body = reply.into_body().collect().await.unwrap().to_bytes();
            assert!(body.starts_with(format!("{{\"globalPosition\":{position},").as_bytes()));
        }
        let reply = sender
            .send_request(get("GET", "/subscribe?stream=a-1", ""))
            .await
            .unwrap();
        let mut frames = reply.into_body();
        let ready = frames.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(ready, ": ready\n\n");
        let pokes = frames.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(pokes.starts_with(b"event: poke\ndata: {\"stream\":\"a-1\",\"position\":0,"));
    });
}

#[test]
fn slow_clients_are_let_go() {
    let limit = Duration::from_millis(300);
    let server = TestServer::with(Config {
        head_timeout: limit,
        idle_timeout: limit * 4,
        body_timeout: limit,
        ..Config::default()
    });
    let since = |started: Instant, least: Duration| {
        let elapsed = started.elapsed();
        assert!(
            elapsed >= least && elapsed < least + Duration::from_secs(3),
            "{elapsed:?}"
        );
    };
    // Half a head.
    let started = Instant::now();
    let mut connection = Connection::open(server.address);
    connection.write(b"POST /rpc HTT").unwrap();
    assert!(connection.rest().is_empty());
    since(started, limit);
    // Nothing at all, and nothing more.
    let started = Instant::now();
    let mut connection = Connection::open(server.address);
    assert!(connection.rest().is_empty());
    since(started, limit * 4);
    let mut connection = Connection::open(server.address);
    connection.send("GET", "/health", "", b"");
    assert_eq!(connection.reply().status, 200);
    let started = Instant::now();
    assert!(connection.rest().is_empty());
    since(started, limit * 3);
    // Half a body.
    let started = Instant::now();
    let mut connection = Connection::open(server.address);
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: x\r\n{}content-length: 9\r\n\r\n[",
        bearer()
    );
    connection.write(head.as_bytes()).unwrap();
    let reply = connection.reply();
    assert_eq!(reply.status, 408, "{}", reply.text());
    assert!(
        reply.text().contains("made no progress for"),
        "{}",
        reply.text()
    );
    since(started, limit);
}

#[test]
fn too_many_connections_are_told_so() {
    let server = TestServer::with(Config {
        connections_max: 2,
        ..Config::default()
    });
    let mut held: Vec<Connection> = (0..2).map(|_| Connection::open(server.address)).collect();
    for connection in &mut held {
        connection.send("POST", "/rpc", &bearer(), b"[\"sys.version\"]");
        assert_eq!(connection.reply().status, 200);
    }
    let mut refused = Connection::open(server.address);
    refused.send("POST", "/rpc", &bearer(), b"[\"sys.version\"]");
    let reply = refused.reply();
    assert_eq!(
        (reply.status, reply.header("retry-after")),
        (503, Some("1"))
    );
    assert!(reply.text().contains("\"OVERLOADED\""), "{}", reply.text());
    // Whether the server lives can be asked nevertheless.
    let health = || request(server.address, "GET", "/health", "", b"").status;
    assert_eq!(health(), 200);
    drop(held);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(rpc(server.address, "[\"sys.version\"]").status, 200);
}
