//! The audit log: what is in it, who may read it, and that it is there before the answer.

use serde_json::{Value, json};
use trefoil::{Namespaces, NamespacesOptions, Scope, Token};
use trefoil_server::Config;

use super::{TokenServer, scoped};
use crate::client::{bearer_of, request};
use crate::harness::TestServer;

/// What each record says was done to which namespace, by which token.
fn shown(records: &Value) -> Vec<(u64, String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let records = records.as_array().unwrap().iter();
    let shown = records.map(|record| {
        let by = &record["by"];
        assert_eq!(by["protocol"], "http");
        assert!(text(&by["address"]).starts_with("127.0.0.1:"), "{record}");
        let by = format!("{}/{}", text(&by["namespace"]), text(&by["token"]));
        let number = record["number"].as_u64().unwrap();
        (
            number,
            text(&record["action"]),
            text(&record["namespace"]),
            by,
        )
    });
    shown.collect()
}

#[test]
fn what_is_done_to_namespaces_and_tokens_is_noted_with_who_did_it() {
    let server = TokenServer::new();
    let admin = server.namespaces.ensure_admin(None).unwrap().unwrap();
    let admin = admin.reveal();
    let created = server.call(admin, r#"["ns.create","shop"]"#);
    let main = created["token"].as_str().unwrap();
    server.call(
        main,
        r#"["token.create",{"name":"x","scopes":["read"],"keys":["k:"]}]"#,
    );
    server.call(main, r#"["token.rotate",{"name":"x","overlap":60}]"#);
    server.refusal(main, r#"["token.revoke",{"name":"nobody"}]"#);
    server.call(main, r#"["token.revoke",{"name":"x"}]"#);
    let renewed = server.call(main, r#"["ns.token","shop"]"#);
    server.call(
        renewed["token"].as_str().unwrap(),
        r#"["ns.delete","shop"]"#,
    );
    // What changes nothing, and what is refused, is not noted.
    server.refusal(main, r#"["ns.create","other"]"#);
    server.call(admin, r#"["ns.list"]"#);

    let records = server.call(admin, r#"["audit.read"]"#);
    let by_main = "shop/main";
    let expected = [
        (8, "ns.delete", by_main),
        (7, "ns.token", by_main),
        (6, "token.revoke", by_main),
        (5, "token.revoke", by_main),
        (4, "token.revoke", by_main),
        (3, "token.rotate", by_main),
        (2, "token.create", by_main),
        (1, "ns.create", "default/server"),
    ];
    let expected = expected
        .map(|(number, action, by)| (number, action.to_owned(), "shop".to_owned(), by.to_owned()));
    assert_eq!(shown(&records), expected);
    assert_eq!(
        records[3]["failed"],
        json!({"record": 4, "error": "there is no token 'nobody'"})
    );
    let details =
        json!({"name": "x", "scopes": ["read"], "streams": [], "keys": ["k:"], "expires": null});
    assert_eq!(records[6]["details"], details);
    // No record has a token.
    assert!(!records.to_string().contains("ns_"), "{records}");

    let page = server.call(admin, r#"["audit.read",{"limit":2,"before":4}]"#);
    let numbers = shown(&page).into_iter().map(|(number, ..)| number);
    assert!(numbers.eq([3, 2]));
}

#[test]
fn only_the_administrator_of_the_server_reads_the_log() {
    let server = TokenServer::new();
    let main = server.create("shop");
    let local = server.token("default", "local", scoped(&Scope::EVERY));
    for token in [&main, &local] {
        let (code, _) = server.refusal(token, r#"["audit.read"]"#);
        assert_eq!(code, "AUTH_UNAUTHORIZED");
    }
    server.call(Token::development().reveal(), r#"["audit.read"]"#);
    let (_, text) = server.refusal(
        Token::development().reveal(),
        r#"["audit.read",{"after":1}]"#,
    );
    assert_eq!(text, "options has no field \"after\", only limit, before");
}

#[test]
fn nothing_is_done_that_cannot_be_noted() {
    let data = tempfile::tempdir().unwrap();
    let options = NamespacesOptions::default();
    let namespaces = Namespaces::open(data.path(), options.clone()).unwrap();
    let server = TokenServer {
        server: TestServer::on(Config::default(), namespaces.clone()),
        namespaces: namespaces.clone(),
    };
    let admin = Token::development();
    server.call(admin.reveal(), r#"["ns.create","a"]"#);
    let log = data.path().join("_meta/audit-0000000000000001.log");
    let line = std::fs::read_to_string(&log).unwrap();
    assert!(line.contains("\"action\":\"ns.create\""), "{line}");
    drop(server);
    namespaces.close().unwrap();

    // A directory in place of the file: neither written nor read.
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    let namespaces = Namespaces::open(data.path(), options).unwrap();
    let server = TokenServer {
        server: TestServer::on(Config::default(), namespaces.clone()),
        namespaces,
    };
    let (code, _) = server.refusal(admin.reveal(), r#"["ns.create","b"]"#);
    assert_eq!(code, "BACKEND_ERROR");
    assert!(server.namespaces.entry("b").is_err());
}

#[test]
fn replacing_all_events_is_noted() {
    let server = TokenServer::new();
    let main = server.create("shop");
    let line = |rest: &str| {
        format!(
            r#"{{"stream":"a-1","type":"T","data":{{}},"pos":0,"gpos":1,"time":"2026-01-01T00:00:00Z"}}{rest}"#
        )
    };
    let import = |path: &str, body: &str| {
        let address = server.server.address;
        let imported = request(address, "POST", path, &bearer_of(&main), body.as_bytes());
        imported.text().to_owned()
    };
    assert!(import("/import", &line("")).contains("done"));
    assert!(import("/import?force=true", &line("")).contains("done"));
    assert!(import("/import?force=true", &line("\nwrong")).contains("INVALID_JSON"));
    let records = server.call(Token::development().reveal(), r#"["audit.read"]"#);
    let imports = shown(&records).into_iter().take(3);
    let by = "shop/main".to_owned();
    let expected = |number| (number, "import".to_owned(), "shop".to_owned(), by.clone());
    let newest = records[0]["number"].as_u64().unwrap();
    assert!(imports.eq([newest, newest - 1, newest - 2].map(expected)));
    assert_eq!(records[2]["details"], json!({"force": true}));
    assert_eq!(records[0]["failed"]["record"], newest - 1);
}
