//! Requests that are wrong or too large.

use serde_json::{Value, json};

use super::{GROWTH_KIB_MAX, assert_alive};
use crate::harness::{Response, Server};

fn invalid(answer: &Response) -> (u16, String) {
    (answer.status, answer.code())
}

#[test]
fn what_is_not_a_call_is_refused_by_name() {
    let server = Server::in_test_mode();
    let mut client = server.client();
    let bodies = [
        "",
        " ",
        "{",
        "[",
        "nul",
        "\"text\"",
        "5",
        "{}",
        "[\"stream.get\"",
        "[\"stream.get\",]",
        "[\"stream.get\" \"a\"]",
        "[,]",
        "[\"a\u{0}b\"",
        "\u{feff}[\"sys.version\"]",
        "[\"\\ud800\"",
        "[1e999999999",
        "[\"sys.version\"] x",
        "[\"sys.version\"][]",
        "['sys.version']",
    ];
    for body in bodies {
        let answer = client.post("/rpc", body.as_bytes());
        assert_eq!(
            invalid(&answer),
            (400, "INVALID_REQUEST".to_owned()),
            "{body:?}: {answer:?}"
        );
    }
    for bytes in [
        &b"[\"\xff\xfe\"]"[..],
        b"\x00\x01\x02",
        b"[\"sys.version\",\"\xc3\x28\"]",
    ] {
        assert_eq!(client.post("/rpc", bytes).status, 400, "{bytes:?}");
    }
    assert_alive(&server);
}

const METHODS: [&str; 21] = [
    "stream.write",
    "stream.get",
    "stream.last",
    "stream.version",
    "category.get",
    "ns.create",
    "ns.delete",
    "ns.info",
    "ns.token",
    "ns.reopen",
    "ns.list",
    "ns.streams",
    "ns.categories",
    "sys.version",
    "sys.health",
    "sys.nodes",
    "commit",
    "position.at",
    "events.query",
    "events.head",
    "events.tracking",
];

/// Values of every type, as arguments and as options.
fn wrong_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("x"),
        json!([]),
        json!([1]),
        json!({}),
        json!({"a": 1}),
        json!({"type": 1}),
        json!({"type": "E", "data": []}),
        json!({"type": "E", "data": {}, "metadata": []}),
        json!({"position": "1"}),
        json!({"batchSize": {}}),
        json!({"globalPosition": []}),
        json!({"consumerGroup": 1}),
        json!({"consumerGroup": {"member": -1, "size": 0}}),
        json!({"limit": 0}),
        json!({"limit": "x"}),
        json!({"prefix": 1}),
        json!({"cursor": []}),
        json!({"id": 5}),
        json!({"id": "no uuid"}),
        json!({"expectedVersion": "1"}),
        json!({"events": 1}),
        json!({"events": [1]}),
        json!({"events": [], "conditions": [{}]}),
        json!({"token": 1}),
        json!({"description": 1}),
        json!({"metadata": 1}),
        json!({"type": {}}),
        json!({"correlation": 1}),
        json!({"position": -5}),
        json!({"position": 1e19}),
        json!({"items": 1}),
        json!({"items": [[]]}),
        json!({"items": [{"tags": [{}]}]}),
        json!({"items": [{"types": [null]}], "stream": []}),
        json!({"after": -1}),
        json!({"from": u64::MAX}),
        json!({"explain": "x"}),
        json!({"conditions": [{"query": {"items": [{"tag": "x"}]}}], "events": [{"type": "E", "data": 1}]}),
        json!({"conditions": [{"query": {}, "after": []}], "events": [{"type": "E", "data": 1}]}),
        json!({"tracking": {"source": 1, "position": 1}}),
        json!({"tracking": {"source": "a", "position": -1}}),
    ]
}

/// Every argument of every method, with values of every wrong type: never a 5xx, never a hang.
#[test]
fn wrong_types_are_the_clients_fault() {
    let server = Server::in_test_mode();
    let mut client = server.client();
    let values = wrong_values();
    let mut refused = 0;
    for method in METHODS {
        for first in &values {
            for second in &values {
                let call = json!([method, first, second, second]);
                let status = client.rpc(&call).status;
                assert!((200..500).contains(&status), "{call}: {status}");
                refused += u32::from(status == 400);
            }
        }
        assert_ne!(client.rpc(&json!([method])).status / 100, 5);
    }
    assert!(refused > 5000, "only {refused} were refused");
    assert_alive(&server);
}

#[test]
fn names_beyond_their_limit_are_refused_with_the_limit() {
    let server = Server::in_test_mode();
    let mut client = server.client();
    let long = "n".repeat(1 << 20);
    let event = |event_type: &str| json!({"type": event_type, "data": {}});
    for call in [
        json!(["stream.write", long, event("E")]),
        json!(["stream.write", "a-1", event(&long)]),
        json!(["stream.write", "n".repeat(1025), event("E")]),
        json!(["stream.write", "a-1", event(&"t".repeat(4097))]),
        json!(["ns.create", long]),
        json!(["stream.get", long]),
        json!(["commit", {"events": [{"stream": "a-1", "type": "E", "data": {}, "tags": [long]}]}]),
        json!(["commit", {"events": [{"stream": "a-1", "type": "E", "data": {}, "tags": vec!["t"; 2049]}]}]),
        json!(["commit", {"conditions": [{"stream": long, "expectedVersion": 0}],
            "events": [{"stream": "a-1", "type": "E", "data": {}}]}]),
    ] {
        let answer = client.rpc(&call);
        assert_eq!(
            invalid(&answer),
            (400, "INVALID_REQUEST".to_owned()),
            "{}",
            answer.text()
        );
        let message = answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            message.contains("limit"),
            "{}",
            &message[..200.min(message.len())]
        );
        assert!(message.len() < 1000, "the answer repeats the attack");
    }
    let kept = json!(["stream.write", "n".repeat(1024), event(&"t".repeat(4096))]);
    assert_eq!(client.rpc(&kept).status, 200, "the limit itself is allowed");
    let data = json!({"x": "x".repeat(3 << 20)});
    let answer = client.rpc(&json!(["stream.write", "a-1", {"type": "E", "data": data}]));
    assert_eq!(invalid(&answer), (413, "INVALID_REQUEST".to_owned()));
    assert!(
        answer.text().contains("event data length"),
        "{}",
        answer.text()
    );
    assert_alive(&server);
}

/// The same for what is not a call.
#[test]
fn wrong_types_in_the_contract_of_the_community_are_refused() {
    let server = Server::in_test_mode();
    let mut client = server.client();
    let mut refused = 0;
    for first in wrong_values() {
        for second in wrong_values() {
            for (path, body) in [
                ("/dcb/read", json!({"query": first, "options": second})),
                ("/dcb/append", json!({"events": first, "condition": second})),
                (
                    "/dcb/append",
                    json!({"events": {"type": "E", "data": first}, "condition": second}),
                ),
                (
                    "/dcb/append",
                    json!({"events": [{"type": "E", "data": 1, "tags": first, "id": second}]}),
                ),
            ] {
                let answer = client.post(path, body.to_string().as_bytes());
                let (status, text) = (answer.status, answer.text());
                assert!(status == 200 || status == 400, "{path} {body}: {text}");
                refused += u32::from(status == 400);
            }
        }
    }
    assert!(refused > 5000, "only {refused} were refused");
    for body in ["", "{", "[]", "null", "5", "\"x\"", "{}{}", "\u{feff}{}"] {
        for path in ["/dcb/read", "/dcb/append"] {
            let answer = client.post(path, body.as_bytes());
            assert_eq!(
                invalid(&answer),
                (400, "INVALID_REQUEST".to_owned()),
                "{path} {body:?}"
            );
        }
    }
    assert_alive(&server);
}

#[test]
fn queries_beyond_their_limits_are_refused_with_the_limit() {
    let server = Server::in_test_mode();
    let mut client = server.client();
    let before = server.status("VmRSS");
    let event = json!({"type": "E", "data": 1});
    let names: Vec<String> = (0..10_001).map(|n| format!("n{n}")).collect();
    let many_items = json!({"items": vec![json!({}); 10_001]});
    let many_tags = json!({"items": [{"tags": names}]});
    let many_terms = json!({"items": [{"tags": names[..5001]}, {"types": names[..5000]}]});
    let few = json!({"query": {"items": [{"tags": names[..6000]}]}});
    for (query, limit) in [
        (many_items, 10_000),
        (many_tags, 10_000),
        (many_terms, 10_000),
    ] {
        let condition = json!({"query": query});
        for answer in [
            client.rpc(&json!(["events.query", query])),
            client.rpc(&json!(["commit", {"conditions": [condition], "events": [event]}])),
            client.post("/dcb/read", json!({"query": query}).to_string().as_bytes()),
            client.post(
                "/dcb/append",
                json!({"events": event, "condition": {"failIfEventsMatch": query}})
                    .to_string()
                    .as_bytes(),
            ),
        ] {
            assert_eq!(invalid(&answer), (400, "INVALID_REQUEST".to_owned()));
            let told = answer.text();
            assert!(told.contains(&format!("the limit is {limit}")), "{told}");
            assert!(told.len() < 1000, "the answer repeats the attack");
        }
    }
    for commit in [
        json!({"conditions": vec![json!({"query": {}}); 10_001], "events": [event]}),
        json!({"conditions": [few, few], "events": [event]}),
    ] {
        let answer = client.rpc(&json!(["commit", commit]));
        assert_eq!(invalid(&answer), (400, "INVALID_REQUEST".to_owned()));
        assert!(
            answer.text().contains("the limit is 10000"),
            "{}",
            answer.text()
        );
    }
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    for call in [
        format!(r#"["events.query",{{"items":[{{"tags":{deep}}}]}}]"#),
        format!(r#"["events.query",{deep}]"#),
        format!(r#"["events.query",{{}},{{"after":{deep}}}]"#),
        format!(r#"["commit",{{"conditions":{deep},"events":[]}}]"#),
        format!(r#"["commit",{{"tracking":{deep},"events":[]}}]"#),
    ] {
        assert_eq!(client.post("/rpc", call.as_bytes()).status, 400);
    }
    let largest =
        json!(["events.query", {"items": [{"types": names[..5000]}, {"tags": names[..5000]}]}]);
    assert_eq!(client.rpc(&largest).ok(), json!({"events": [], "head": 0}));
    assert_alive(&server);
    let grown = server.status("VmRSS").saturating_sub(before);
    assert!(grown < GROWTH_KIB_MAX, "grew by {grown} KiB");
}

#[test]
fn deep_and_wide_json_is_bounded() {
    let server = Server::in_test_mode();
    let mut client = server.client();
    let before = server.status("VmRSS");
    let deep = |n: usize| format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n));
    let write = |data: &str| format!(r#"["stream.write","deep-1",{{"type":"E","data":{data}}}]"#);
    assert_eq!(
        client.post("/rpc", write(&deep(100)).as_bytes()).status,
        200
    );
    for n in [200, 10_000, 1_000_000] {
        assert_eq!(
            client.post("/rpc", write(&deep(n)).as_bytes()).status,
            400,
            "{n} deep"
        );
    }
    let arrays = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(client.post("/rpc", arrays.as_bytes()).status, 400);
    let wide = vec!["1"; 1_000_000].join(",");
    let answer = client.post("/rpc", format!("[\"sys.version\",{wide}]").as_bytes());
    assert_eq!(
        answer.status / 100,
        2,
        "surplus arguments are ignored: {}",
        answer.text()
    );
    let events = vec![r#"{"stream":"w-1","type":"E","data":{}}"#; 100_001].join(",");
    let answer = client.post(
        "/rpc",
        format!(r#"["commit",{{"events":[{events}]}}]"#).as_bytes(),
    );
    assert_eq!(invalid(&answer), (400, "INVALID_REQUEST".to_owned()));
    assert!(answer.text().contains("100000"), "{}", answer.text());
    assert_eq!(
        client.rpc(&json!(["stream.version", "w-1"])).ok(),
        Value::Null
    );
    let wide = write(&format!("{{\"a\":[{wide}]}}"));
    assert_eq!(
        client.post("/rpc", wide.as_bytes()).status,
        200,
        "2 MB of numbers are an event"
    );
    assert_alive(&server);
    let grown = server.status("VmRSS").saturating_sub(before);
    assert!(grown < GROWTH_KIB_MAX, "grew by {grown} KiB");
}
