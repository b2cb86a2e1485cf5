//! Input that is wrong, huge or hostile: one clear error each, and nobody else is hindered.

use std::io::Write as _;
use std::net::Shutdown;

use crate::client::{Connection, Reply, bearer, request, rpc};
use crate::harness::TestServer;

fn refused(reply: &Reply, status: u16, message: &str) {
    let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(reply.status, status, "{}", reply.text());
    assert_eq!(body["error"]["code"], "INVALID_REQUEST");
    let text = body["error"]["message"].as_str().unwrap();
    assert!(text.contains(message), "{text}");
}

#[test]
fn names_and_data_have_limits_that_errors_name() {
    let server = TestServer::production();
    let long = "n".repeat(1_000_000);
    let write = |stream: &str, event_type: &str, data: &str| {
        let call =
            format!(r#"["stream.write","{stream}",{{"type":"{event_type}","data":{data}}}]"#);
        rpc(server.address, &call)
    };
    refused(
        &write(&long, "T", "{}"),
        400,
        "stream name length is 1000000, the limit is 1024",
    );
    refused(
        &write("a-1", &long, "{}"),
        400,
        "event type length is 1000000, the limit is 4096",
    );
    let data = format!(r#"{{"x":"{}"}}"#, "x".repeat(3 * 1024 * 1024));
    refused(
        &write("a-1", "T", &data),
        413,
        "event data length is 3145736, the limit is 3145728",
    );
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    refused(
        &write("a-1", "T", &deep),
        400,
        "message.data is nested too deeply, the limit is 128",
    );
    let fine = format!(r#"{{"x":{}{}}}"#, "[".repeat(127), "]".repeat(127));
    assert_eq!(write("a-1", "T", &fine).status, 200);
    for call in [
        format!(r#"["stream.get","{long}"]"#),
        format!(r#"["stream.last","{long}"]"#),
        format!(r#"["stream.version","{long}"]"#),
        format!(r#"["category.get","{long}"]"#),
        format!(r#"["ns.create","{long}"]"#),
    ] {
        refused(
            &rpc(server.address, &call),
            400,
            "length is 1000000, the limit is ",
        );
    }
    let tags = vec!["\"t\""; 2049].join(",");
    let call = format!(r#"["commit",{{"events":[{{"type":"T","data":1,"tags":[{tags}]}}]}}]"#);
    refused(
        &rpc(server.address, &call),
        400,
        "length of commit.events[0].tags is 2049, the limit is 2048",
    );
    let call = format!(
        r#"["commit",{{"events":[{}]}}]"#,
        vec!["0"; 100_001].join(",")
    );
    refused(
        &rpc(server.address, &call),
        400,
        "length of commit.events is 100001, the limit is 100000",
    );
}

#[test]
fn a_million_arguments_are_ignored() {
    let server = TestServer::production();
    let call = format!(r#"["sys.version"{}]"#, ",1".repeat(1_000_000));
    assert_eq!(rpc(server.address, &call).status, 200);
    let keys: Vec<String> = (0..200_000)
        .map(|index| format!("\"k{index}\":{index}"))
        .collect();
    let call = format!(r#"["stream.get","a-1",{{{}}}]"#, keys.join(","));
    assert_eq!(rpc(server.address, &call).text(), "[]");
    let deep = "[".repeat(1_000_000);
    refused(&rpc(server.address, &deep), 400, "Malformed JSON request");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let server = TestServer::production();
    for body in [
        &b"[\"stream.get\",\"\xff\"]"[..],
        b"\0\0\0\0",
        b"\xef\xbb\xbf[]",
    ] {
        let reply = request(server.address, "POST", "/rpc", &bearer(), body);
        refused(&reply, 400, "Malformed JSON request");
    }
}

#[test]
fn a_body_beyond_the_limit_is_refused() {
    let server = TestServer::production();
    let limit = 100 * 1024 * 1024;
    // Announced: the answer comes before the body.
    let mut connection = Connection::open(server.address);
    let head = "POST /rpc HTTP/1.1\r\nhost: x\r\n";
    let announced = format!("{head}{}content-length: {}\r\n\r\n", bearer(), limit + 1);
    connection.write(announced.as_bytes()).unwrap();
    refused(&connection.reply(), 413, "the limit is 104857600 bytes");
    // In chunks: the answer comes when the limit is reached, and the rest is thrown away.
    let mut connection = Connection::open(server.address);
    let chunked = format!("{head}{}transfer-encoding: chunked\r\n\r\n", bearer());
    connection.write(chunked.as_bytes()).unwrap();
    let chunk = [b"100000\r\n", &vec![b' '; 0x10_0000][..], b"\r\n"].concat();
    for _ in 0..110 {
        connection.write(&chunk).unwrap();
    }
    connection.write(b"0\r\n\r\n").unwrap();
    refused(&connection.reply(), 413, "the limit is 104857600 bytes");
    // Small on the wire, large when unpacked.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..110 {
        encoder.write_all(&chunk).unwrap();
    }
    let packed = encoder.finish().unwrap();
    let headers = format!("{}content-encoding: gzip\r\n", bearer());
    let reply = request(server.address, "POST", "/rpc", &headers, &packed);
    refused(&reply, 413, "the limit is 104857600 bytes");
    assert_eq!(
        request(server.address, "GET", "/health", "", b"").status,
        200
    );
}

#[test]
fn what_is_no_http_is_cut_off() {
    let server = TestServer::production();
    let long_head = format!("GET /health HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(200_000));
    for bytes in [
        &b"\x16\x03\x01\x02\x00nonsense\r\n\r\n"[..],
        b"GET\r\n\r\n",
        long_head.as_bytes(),
    ] {
        let mut connection = Connection::open(server.address);
        // The server may close while it is being sent to.
        let _ = connection.write(bytes);
        let answer = connection.rest();
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"),
            "{answer:?}"
        );
    }
    assert_eq!(
        request(server.address, "GET", "/health", "", b"").status,
        200
    );
}

#[test]
fn clients_that_hang_up_are_forgotten() {
    let server = TestServer::production();
    let head = "POST /rpc HTTP/1.1\r\nhost: x\r\n";
    for _ in 0..50 {
        let mut connection = Connection::open(server.address);
        let text = format!("{head}{}content-length: 1000\r\n\r\n[", bearer());
        connection.write(text.as_bytes()).unwrap();
        connection
            .reader
            .get_ref()
            .shutdown(Shutdown::Write)
            .unwrap();
        let answer = connection.rest();
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"),
            "{answer:?}"
        );
    }
    // Those that have sent everything get what they asked for.
    for version in 0..50 {
        let mut connection = Connection::open(server.address);
        let call = br#"["stream.write","a-1",{"type":"T","data":{}}]"#;
        connection.send("POST", "/rpc", &bearer(), call);
        connection
            .reader
            .get_ref()
            .shutdown(Shutdown::Write)
            .unwrap();
        let expected = format!(
            r#"{{"globalPosition":{},"position":{version}}}"#,
            version + 1
        );
        assert_eq!(connection.reply().text(), expected);
        assert!(connection.rest().is_empty());
    }
}
