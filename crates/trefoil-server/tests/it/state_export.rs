//! Export and import of the state: every type, seats with their holds, tracked positions, and what is refused.

use serde_json::Value;

use crate::client::{Reply, bearer, request, rpc};
use crate::harness::TestServer;
use crate::resp;

fn export(server: &TestServer, query: &str) -> Reply {
    let path = format!("/export{query}");
    request(server.address, "GET", &path, &bearer(), b"")
}

fn exported(server: &TestServer) -> String {
    let reply = export(server, "?state=true");
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text().to_owned()
}

/// Imports lines. Returns what was told last.
fn import(server: &TestServer, query: &str, lines: &str) -> Value {
    let path = format!("/import{query}");
    let reply = request(server.address, "POST", &path, &bearer(), lines.as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
    let last = reply.text().trim_end().lines().last().unwrap().to_owned();
    serde_json::from_str(last.strip_prefix("data: ").unwrap()).unwrap()
}

fn call(server: &TestServer, body: &str) -> Value {
    let reply = rpc(server.address, body);
    assert_eq!(reply.status, 200, "{body}: {}", reply.text());
    serde_json::from_slice(&reply.body).unwrap()
}

fn fill(server: &TestServer) {
    let mut redis = resp::Client::known(server);
    for line in [
        "SET text hello",
        "SET late soon PXAT 4102444800000",
        "RPUSH list a b c",
        "HSET hash f 1 g 2",
        "HPEXPIREAT hash 4102444800000 FIELDS 1 g",
        "SADD set x y",
        "ZADD zset 1.5 one inf two",
        "EVENT.APPEND account-1 Opened {}",
    ] {
        assert!(!redis.say(line).starts_with('-'), "{line}");
    }
    redis.ask(&["SET", "line\nbreak", "a\tb"]);
    call(
        server,
        r#"["commit",{"state":[["SET",{"$base64":"/wA="},{"$base64":"/v8="}]],"tracking":{"source":"upstream","position":7}}]"#,
    );
    call(
        server,
        r#"["seats.init",{"event":"gala","section":"A","rows":2,"seatsPerRow":5}]"#,
    );
    call(
        server,
        r#"["seats.reserve",{"event":"gala","section":"A","booking":"b-1","buyer":"ada","best":2,"hold":3600}]"#,
    );
}

#[test]
fn events_and_state_come_over_as_they_are() {
    let first = TestServer::production();
    fill(&first);
    let lines = exported(&first);
    for line in [
        r#"{"tracking":{"source":"upstream","position":7}}"#,
        r#"{"state":["SET","text","hello"]}"#,
        r#"{"state":["PEXPIREAT","late","4102444800000"]}"#,
        r#"{"state":["RPUSH","list","a","b","c"]}"#,
        r#"{"state":["HPEXPIREAT","hash","4102444800000","FIELDS","1","g"]}"#,
        r#"{"state":["SET",{"$base64":"bGluZQpicmVhaw=="},{"$base64":"YQli"}]}"#,
        r#"{"state":["SET",{"$base64":"/wA="},{"$base64":"/v8="}]}"#,
    ] {
        assert!(
            lines.lines().any(|found| found == line),
            "{line} in {lines}"
        );
    }
    assert_eq!(lines.matches("{\"timer\":").count(), 1, "{lines}");
    let events = export(&first, "").text().to_owned();
    assert!(lines.starts_with(&events) && !events.contains("\"state\""));

    let second = TestServer::production();
    let n_events = events.lines().count();
    let n_state = lines.lines().count() - n_events;
    let told = import(&second, "?state=new", &lines);
    assert_eq!(
        (&told["done"], &told["imported"]),
        (&true.into(), &n_events.into())
    );
    assert_eq!(told["state"], n_state);
    assert_eq!(exported(&second), lines);
    let check = r#"["seats.check",{"event":"gala","section":"A"}]"#;
    assert_eq!(call(&second, check), call(&first, check));
    let booking = r#"["seats.booking",{"booking":"b-1"}]"#;
    assert_eq!(call(&second, booking), call(&first, booking));

    // In two requests.
    let third = TestServer::production();
    let middle = events.len() + lines[events.len()..].find('\n').unwrap() + 1;
    import(&third, "?state=new", &lines[..middle]);
    // A tracked position is no key yet.
    let taken = import(
        &third,
        "?state=new",
        "{\"state\":[\"SET\",\"more\",\"1\"]}\n",
    );
    assert_eq!(taken["done"], true);
    let again = import(&third, "?state=new", &lines[middle..]);
    assert_eq!(again["error"], "STATE_EXISTS");
}

#[test]
fn what_cannot_be_taken_is_refused_and_changes_nothing() {
    let server = TestServer::production();
    let line = "{\"state\":[\"SET\",\"k\",\"1\"]}\n";
    let refused = |query: &str, lines: &str, code: &str, text: &str| {
        let told = import(&server, query, lines);
        assert_eq!(told["error"], code, "{told}");
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(text), "{message}");
        told["line"].as_u64().unwrap()
    };
    refused("", line, "INVALID_RECORD", "state=new, --with-state");
    refused(
        "?state=new&force=true",
        line,
        "INVALID_RECORD",
        "force replaces events",
    );
    let lines = format!("{line}{{\"state\":[\"FLUSHALL\"]}}\n");
    let at = refused(
        "?state=new",
        &lines,
        "IMPORT_FAILED",
        "flushall is no command",
    );
    assert_eq!(at, 2);
    refused(
        "?state=new",
        "{\"state\":7}\n",
        "INVALID_RECORD",
        "state must be an array",
    );
    refused("?state=new", "{}\n", "INVALID_RECORD", "stream is missing");
    let timer = "{\"timer\":{\"key\":\"k\",\"kind\":99,\"time\":1}}\n";
    refused("?state=new", timer, "IMPORT_FAILED", "timer of kind 99");
    assert_eq!(exported(&server), "");
    assert_eq!(import(&server, "?state=new", line)["state"], 1);
    refused("?state=new", line, "STATE_EXISTS", "without keys");
    assert_eq!(import(&server, "?state=more", line)["state"], 1);

    let path = "/import?state=old";
    let reply = request(server.address, "POST", path, &bearer(), b"");
    assert_eq!(reply.status, 400, "{}", reply.text());
    for (query, text) in [
        ("?state=yes", "state must be true or false"),
        ("?state=true&categories=a", "so categories must be left out"),
        ("?state=true&position=1", "so position must be left out"),
    ] {
        let reply = export(&server, query);
        assert_eq!(reply.status, 400);
        assert!(reply.text().contains(text), "{}", reply.text());
    }
}
