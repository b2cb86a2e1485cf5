//! Import and export: streams in both directions, and the way back to the same events.

use std::io::{Read as _, Write as _};

use trefoil_server::Config;

use crate::client::{Connection, bearer, request, rpc};
use crate::harness::TestServer;

/// `count` lines of NDJSON from position `first` on.
fn lines(first: u64, count: u64) -> String {
    let line = |position: u64| {
        format!(
            "{{\"id\":\"00000000-0000-4000-8000-{position:012}\",\"stream\":\"a-{}\",\"type\":\"T\",\"pos\":{},\"gpos\":{position},\"data\":{{\"n\":{position}.0}},\"meta\":null,\"time\":\"2025-01-15T10:00:00.{:08}1Z\"}}\n",
            position % 7,
            position / 7,
            position,
        )
    };
    (first..first + count).map(line).collect()
}

fn import(server: &TestServer, path: &str, headers: &str, body: &[u8]) -> String {
    let headers = format!("{}{headers}", bearer());
    let reply = request(server.address, "POST", path, &headers, body);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert_eq!(reply.header("x-accel-buffering"), Some("no"));
    reply.text().to_owned()
}

fn export(server: &TestServer) -> String {
    let reply = request(server.address, "GET", "/export", &bearer(), b"");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    reply.text().to_owned()
}

#[test]
fn what_was_exported_is_imported_as_it_was() {
    let first = TestServer::production();
    let events = (0..3000).map(|index| {
        let tags = if index % 2 == 0 {
            r#","tags":["a","b:1"]"#
        } else {
            ""
        };
        let stream = if index % 5 == 0 {
            String::new()
        } else {
            format!(r#""stream":"s-{}","#, index % 3)
        };
        format!(
            r#"{{{stream}"type":"T{index}","data":{{"n":{index}}},"metadata":{{"m":1.0}}{tags}}}"#
        )
    });
    let events: Vec<String> = events.collect();
    let call = format!(r#"["commit",{{"events":[{}]}}]"#, events.join(","));
    assert_eq!(rpc(first.address, &call).status, 200);
    let exported = export(&first);
    assert_eq!(exported.lines().count(), 3000);
    let second = TestServer::production();
    let progress = import(&second, "/import", "", exported.as_bytes());
    assert!(progress.starts_with("data: {\"imported\":1000,\"gpos\":1000}\n\ndata: {\"imported\":2000,\"gpos\":2000}\n\ndata: {\"imported\":3000,\"gpos\":3000}\n\ndata: {\"done\":true,\"imported\":3000,\"elapsed\":\""), "{progress}");
    assert!(progress.ends_with("s\"}\n\n"));
    assert_eq!(export(&second), exported);
    for call in [
        r#"["category.get","",{"batchSize":-1}]"#,
        r#"["stream.get","s-1",{"batchSize":-1}]"#,
    ] {
        assert_eq!(
            rpc(second.address, call).body,
            rpc(first.address, call).body
        );
    }
}

#[test]
fn what_was_redacted_is_known_as_such_when_it_is_imported() {
    let first = TestServer::production();
    let event = |data: &str| {
        format!(
            r#"["commit",{{"events":[{{"id":"00000000-0000-4000-8000-000000000001","stream":"a-1","type":"T","data":{data}}}]}}]"#
        )
    };
    assert_eq!(rpc(first.address, &event("1")).status, 200);
    let redact = r#"["event.redact",{"globalPosition":1}]"#;
    assert_eq!(rpc(first.address, redact).status, 200);
    let exported = export(&first);
    assert!(exported.contains(r#","redacted":true}"#), "{exported}");
    let second = TestServer::production();
    import(&second, "/import", "", exported.as_bytes());
    assert_eq!(export(&second), exported);
    // Nobody knows any more what it said, so whoever brings it again is right.
    for server in [&first, &second] {
        let again = rpc(server.address, &event("2"));
        assert_eq!(again.status, 200, "{}", again.text());
    }
    let lying = exported.replace(r#""data":null"#, r#""data":1"#);
    let third = TestServer::production();
    let refused = import(&third, "/import", "", lying.as_bytes());
    let why = "the data of a redacted event must be null";
    assert!(refused.contains(why), "{refused}");
}

#[test]
fn data_with_line_breaks_stays_on_its_line() {
    let server = TestServer::production();
    let call = "[\"stream.write\",\"a-1\",{\"type\":\"T\",\"data\":{\n\"n\":\r\n1}}]";
    assert_eq!(rpc(server.address, call).status, 200);
    let exported = export(&server);
    assert_eq!(exported.lines().count(), 1);
    assert!(exported.contains("\"data\":{ \"n\":  1}"), "{exported}");
}

/// Over gRPC data is bytes, also where it is JSON: what has no stream keeps them.
#[test]
fn data_without_a_stream_keeps_every_byte() {
    let server = TestServer::production();
    // {\n"n":\r\n1}
    let line = r#"{"stream":"","type":"T","gpos":7,"data64":"ewoibiI6DQoxfQ==","time":"2025-01-15T10:00:00Z"}"#;
    let progress = import(&server, "/import", "", line.as_bytes());
    assert!(progress.contains("\"imported\":1"), "{progress}");
    let exported = export(&server);
    assert!(
        exported.contains(r#""data64":"ewoibiI6DQoxfQ==""#),
        "{exported}"
    );
    let rows = rpc(server.address, r#"["category.get",""]"#);
    assert!(rows.text().contains("{\n\"n\":\r\n1}"), "{}", rows.text());
    let second = TestServer::production();
    import(&second, "/import", "", exported.as_bytes());
    assert_eq!(export(&second), exported, "the id that was made is kept");
    assert_eq!(
        rpc(second.address, r#"["category.get",""]"#).body,
        rows.body
    );
}

#[test]
fn progress_is_told_while_the_body_is_still_being_sent() {
    let server = TestServer::production();
    let mut connection = Connection::open(server.address);
    let head = format!(
        "POST /import HTTP/1.1\r\nhost: x\r\n{}transfer-encoding: chunked\r\n\r\n",
        bearer()
    );
    connection.write(head.as_bytes()).unwrap();
    let send = |connection: &mut Connection, text: &str| {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        connection.write(chunk.as_bytes()).unwrap();
    };
    send(&mut connection, &lines(1, 1000));
    let (status, _) = connection.head();
    assert_eq!(status, 200);
    assert_eq!(
        connection.chunk().unwrap(),
        b"data: {\"imported\":1000,\"gpos\":1000}\n\n"
    );
    assert_eq!(
        rpc(server.address, r#"["stream.version","a-1"]"#).text(),
        "142"
    );
    // A line may arrive in two pieces.
    let more = lines(1001, 1);
    send(&mut connection, &more[..50]);
    send(&mut connection, &more[50..]);
    connection.write(b"0\r\n\r\n").unwrap();
    let done = String::from_utf8(connection.chunk().unwrap()).unwrap();
    assert!(
        done.starts_with("data: {\"done\":true,\"imported\":1001,"),
        "{done}"
    );
    assert_eq!(connection.chunk(), None);
}

#[test]
fn batches_before_an_error_stay() {
    let server = TestServer::production();
    let body = format!("{}nonsense\n", lines(1, 1500));
    let answer = import(&server, "/import", "", body.as_bytes());
    let frames: Vec<&str> = answer.split("\n\n").collect();
    assert_eq!(frames[0], "data: {\"imported\":1000,\"gpos\":1000}");
    assert!(frames[1].starts_with(
        "data: {\"error\":\"INVALID_JSON\",\"message\":\"malformed JSON at line 1501: "
    ));
    assert!(frames[1].ends_with(",\"line\":1501}"));
    assert_eq!(export(&server).lines().count(), 1000);
}

#[test]
fn the_offending_line_is_named() {
    let server = TestServer::production();
    import(&server, "/import", "", lines(1, 20).as_bytes());
    let taken = format!("{}{}", lines(21, 5), lines(7, 1));
    let answer = import(&server, "/import", "", taken.as_bytes());
    assert_eq!(
        answer,
        "data: {\"error\":\"POSITION_EXISTS\",\"message\":\"global position already exists: 7\",\"line\":6}\n\n"
    );
    assert_eq!(export(&server).lines().count(), 20);
}

/// A line of a stream that is not there yet, with its own id unless one is given.
fn line(stream: &str, position: u64, global: u64, id: Option<&str>) -> String {
    let made = format!("00000000-0000-4000-8001-{global:012}");
    let id = id.unwrap_or(&made);
    format!(
        "{{\"id\":\"{id}\",\"stream\":\"{stream}\",\"type\":\"T\",\"pos\":{position},\"gpos\":{global},\"data\":{{}},\"meta\":null,\"time\":\"2025-01-15T10:00:00Z\"}}\n"
    )
}

/// Imports lines that must be refused, and says at which line and why.
fn refusal(server: &TestServer, body: &str) -> (u64, String) {
    let answer = import(server, "/import", "", body.as_bytes());
    let frame = answer.trim_end().strip_prefix("data: ").unwrap();
    let frame: serde_json::Value = serde_json::from_str(frame).unwrap();
    let message = frame["message"].as_str().unwrap().to_owned();
    (frame["line"].as_u64().unwrap(), message)
}

#[test]
fn whatever_is_wrong_with_a_line_it_is_that_line_that_is_named() {
    let server = TestServer::production();
    import(&server, "/import", "", lines(1, 20).as_bytes());
    let good = |global| line("b-1", global, global, None);
    let id = "00000000-0000-4000-8000-000000000003";
    for (wrong, reason) in [
        (
            line("a-1", 2, 33, None),
            "position 2 of stream a-1 is not after 2",
        ),
        (
            line("b-1", 31, 33, None),
            "position 31 of stream b-1 is not after 32",
        ),
        (
            line("c-1", 0, 33, Some(id)),
            "already exists at global position 3",
        ),
        (
            line("c-1", 0, 12, None),
            "global position already exists: 12",
        ),
        (
            line("c-1", 0, 26, None),
            "global position 26 is not after 32",
        ),
        (line("c-1", 0, 33, Some("x")), "id must be a UUID"),
        (
            line("c-1", 0, 33, None).replace("\"stream\":\"c-1\",", ""),
            "stream is missing",
        ),
    ] {
        let body = [&good(31), "\n", &good(32), &wrong, &good(34)].concat();
        let (line, message) = refusal(&server, &body);
        assert_eq!(line, 4, "{message}");
        assert!(message.contains(reason), "{message}");
    }
    assert_eq!(export(&server).lines().count(), 20);
}

#[test]
fn a_second_import_is_taken_where_the_order_allows() {
    let server = TestServer::production();
    import(&server, "/import", "", lines(100, 5).as_bytes());
    let later = line("other-1", 7, 200, None);
    let answer = import(&server, "/import", "", later.as_bytes());
    assert!(answer.contains("\"imported\":1"), "{answer}");
    let (_, message) = refusal(&server, &line("other-2", 0, 50, None));
    assert!(
        message.contains("global position 50 is not after 200"),
        "{message}"
    );
    assert!(
        message.contains("to merge, export what is here"),
        "{message}"
    );
    assert_eq!(export(&server), format!("{}{later}", lines(100, 5)));
}

#[test]
fn ids_that_cannot_be_kept_are_made_anew_if_the_client_says_so() {
    let server = TestServer::production();
    let known = "00000000-0000-4000-8000-000000000001";
    let body = |first: u64| {
        let stream = format!("a-{first}");
        let ids = [Some(known), Some(known), Some("17"), None];
        let numbered = (0..).zip(ids);
        let lines = numbered.map(|(n, id)| line(&stream, n, first + n, id));
        lines.collect::<Vec<String>>()
    };
    let (at, message) = refusal(&server, &body(1).concat());
    assert_eq!(
        (at, message.contains("newIds=true")),
        (3, true),
        "{message}"
    );
    let (at, message) = refusal(&server, &body(1)[..2].concat());
    assert_eq!(
        (at, message.contains("newIds=true")),
        (2, true),
        "{message}"
    );
    for first in [1, 5] {
        let body = body(first).concat();
        let answer = import(&server, "/import?newIds=true", "", body.as_bytes());
        assert!(answer.contains("\"imported\":4"), "{answer}");
    }
    let exported = export(&server);
    let ids: std::collections::BTreeSet<&str> = exported.lines().map(|line| &line[7..43]).collect();
    assert_eq!(ids.len(), 8, "{exported}");
    assert!(
        exported.starts_with(&format!("{{\"id\":\"{known}\"")),
        "{exported}"
    );
}

/// What has no stream came over gRPC, where ids may be repeated.
#[test]
fn repeated_ids_survive_an_export() {
    let server = TestServer::production();
    let id = Some("00000000-0000-4000-8000-000000000001");
    let body: String = (1..=2500).map(|global| line("", 0, global, id)).collect();
    let body = body.replace("\"pos\":0", "\"pos\":-1");
    let answer = import(&server, "/import", "", body.as_bytes());
    assert!(
        answer.contains("\"done\":true,\"imported\":2500"),
        "{answer}"
    );
    let exported = export(&server);
    assert!(exported == body, "{}", &exported[..400]);
    let second = TestServer::production();
    import(&second, "/import", "", exported.as_bytes());
    assert!(export(&second) == exported);
}

#[test]
fn a_position_with_a_fraction_is_refused() {
    let server = TestServer::production();
    for (from, to, name) in [
        ("\"gpos\":2,", "\"gpos\":2.5,", "gpos"),
        ("\"pos\":0,\"gpos\":2,", "\"pos\":0.5,\"gpos\":2,", "pos"),
        ("\"gpos\":2,", "\"gpos\":9007199254740992,", "gpos"),
    ] {
        let body = lines(1, 3);
        assert!(body.contains(from), "{body}");
        let answer = import(&server, "/import", "", body.replace(from, to).as_bytes());
        assert_eq!(
            answer,
            format!(
                "data: {{\"error\":\"INVALID_RECORD\",\"message\":\"invalid record at line 2: {name} must \
                 be a whole number from 0 to 9007199254740991\",\"line\":2}}\n\n"
            )
        );
        assert_eq!(export(&server), "");
    }
    // One that is only written with a point has no fraction.
    let body = lines(1, 3).replace("\"gpos\":2,", "\"gpos\":2.0,");
    import(&server, "/import", "", body.as_bytes());
    assert_eq!(export(&server), lines(1, 3));
}

#[test]
fn force_begins_anew() {
    let server = TestServer::production();
    import(&server, "/import", "", lines(1, 20).as_bytes());
    import(&server, "/import?force=true", "", lines(3, 4).as_bytes());
    assert_eq!(export(&server), lines(3, 4));
    let write = r#"["stream.write","b-1",{"type":"T","data":{}}]"#;
    assert_eq!(
        rpc(server.address, write).text(),
        r#"{"globalPosition":7,"position":0}"#
    );
}

#[test]
fn a_forced_import_that_fails_replaces_nothing() {
    let server = TestServer::production();
    import(&server, "/import", "", lines(1, 20).as_bytes());
    let twice = format!("{}{}", lines(1, 3), lines(1, 1));
    for body in [
        "not JSON\n",
        &format!("{}not JSON\n", lines(1, 5000)),
        &twice,
    ] {
        let answer = import(&server, "/import?force=true", "", body.as_bytes());
        assert!(answer.contains("\"error\""), "{answer}");
        assert_eq!(export(&server), lines(1, 20));
    }
    // A client that leaves midway has not replaced anything either.
    let head = format!(
        "POST /import?force=true HTTP/1.1\r\nhost: x\r\n{}content-length: 1000000\r\n\r\n",
        bearer()
    );
    let mut connection = std::net::TcpStream::connect(server.address).unwrap();
    connection.write_all(head.as_bytes()).unwrap();
    connection.write_all(lines(1, 3).as_bytes()).unwrap();
    drop(connection);
    assert_eq!(export(&server), lines(1, 20));
    let write = r#"["stream.write","b-1",{"type":"T","data":{}}]"#;
    assert_eq!(
        rpc(server.address, write).text(),
        r#"{"globalPosition":21,"position":0}"#
    );
    // It makes way for the next one.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let replace = || {
        let body = lines(2, 3);
        let path = "/import?force=true";
        request(server.address, "POST", path, &bearer(), body.as_bytes())
    };
    while !replace().text().contains("\"done\"") {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(export(&server), lines(2, 3));
}

#[test]
fn bodies_may_be_compressed_both_ways() {
    let server = TestServer::production();
    let plain = lines(1, 5000);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    let answer = import(&server, "/import", "content-encoding: gzip\r\n", &packed);
    assert!(
        answer.contains("\"done\":true,\"imported\":5000"),
        "{answer}"
    );
    let headers = format!("{}accept-encoding: gzip\r\n", bearer());
    let reply = request(server.address, "GET", "/export", &headers, b"");
    assert_eq!(reply.header("content-encoding"), Some("gzip"));
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(&reply.body[..])
        .read_to_string(&mut text)
        .unwrap();
    assert!(text == plain);
    let broken = import(
        &server,
        "/import",
        "content-encoding: gzip\r\n",
        b"not gzip at all",
    );
    assert!(broken.contains("\"error\":\"READ_ERROR\""), "{broken}");
}

#[test]
fn a_line_that_is_too_long_ends_the_import() {
    let server = TestServer::production();
    let mut body = lines(1, 1).into_bytes();
    body.resize(body.len() + 32 * 1024 * 1024, b'x');
    let answer = import(&server, "/import", "", &body);
    assert!(
        answer.contains("\"error\":\"READ_ERROR\",\"message\":\"line 2 is too long, the limit is "),
        "{answer}"
    );
    assert!(answer.contains("\"line\":2}"), "{answer}");
}

#[test]
fn an_import_takes_no_more_memory_than_there_is() {
    let server = TestServer::with(Config {
        client_memory_max: 1024 * 1024,
        ..Config::default()
    });
    // Written in smaller batches than usual.
    let padding = format!("{{\"x\":\"{}\",\"n\":", "x".repeat(50_000));
    let body = lines(1, 100).replace("{\"n\":", &padding);
    let imported = import(&server, "/import", "", body.as_bytes());
    assert!(
        imported.contains("\"done\":true,\"imported\":100"),
        "{imported}"
    );
    // One line that is larger than all of it.
    let padding = format!("{{\"x\":\"{}\",\"n\":", "x".repeat(1_000_000));
    let body = lines(101, 1).replace("{\"n\":", &padding);
    let refused = import(&server, "/import", "", body.as_bytes());
    assert!(refused.contains("\"error\":\"OVERLOADED\""), "{refused}");
    assert!(refused.contains("client-memory-max"), "{refused}");
}
