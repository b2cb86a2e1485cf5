//! `token.*`: who may call them, what they answer, and what they refuse.

use std::time::Duration;

use serde_json::json;
use trefoil::{Clock, ManualTime, NamespacesOptions, Options, Scope, Timestamp, Token};

use super::{TokenServer, scoped};
use crate::resp;

#[test]
fn a_token_is_made_listed_replaced_and_revoked() {
    let server = TokenServer::new();
    let main = server.create("shop");
    let made = server.call(
        &main,
        r#"["token.create",{"name":"reports","scopes":["subscribe","read"],"streams":["order-"],"expiresIn":3600}]"#,
    );
    let first = made["token"].as_str().unwrap().to_owned();
    assert_eq!(made["scopes"], json!(["read", "subscribe"]));
    assert_eq!(made["streams"], json!(["order-"]));
    let again = r#"["token.create",{"name":"reports"}]"#;
    assert_eq!(server.refusal(&main, again).0, "TOKEN_EXISTS");
    let read = r#"["stream.get","order-1"]"#;
    server.call(&first, read);
    let listed = server.call(&main, r#"["token.list"]"#);
    let names = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["name"].clone());
    assert!(names.eq([json!("main"), json!("reports")]), "{listed}");
    assert!(listed[1]["lastUsed"].is_string() && listed[1]["expires"].is_string());
    assert!(listed[0]["expires"].is_null());
    assert!(!listed.to_string().contains("ns_"), "{listed}");

    let rotate = r#"["token.rotate",{"name":"reports","overlap":60}]"#;
    let rotated = server.call(&main, rotate);
    let second = rotated["token"].as_str().unwrap().to_owned();
    assert!(rotated["previousExpires"].is_string(), "{rotated}");
    assert_eq!(rotated["scopes"], made["scopes"]);
    for token in [&first, &second] {
        server.call(token, read);
    }
    let revoke = r#"["token.revoke",{"name":"reports"}]"#;
    let revoked = server.call(&main, revoke);
    assert_eq!(revoked, json!({"namespace": "shop", "name": "reports"}));
    for token in [&first, &second] {
        assert_eq!(server.refusal(token, read).0, "AUTH_UNAUTHORIZED");
    }
    assert_eq!(server.refusal(&main, revoke).0, "TOKEN_NOT_FOUND");
    assert_eq!(server.refusal(&main, rotate).0, "TOKEN_NOT_FOUND");
}

#[test]
fn only_those_who_administer_a_namespace_make_tokens_of_it() {
    let server = TokenServer::new();
    let (main, other) = (server.create("shop"), server.create("other"));
    let of_shop = r#"["token.create",{"name":"a","namespace":"shop"}]"#;
    let (code, _) = server.refusal(&other, of_shop);
    assert_eq!(code, "AUTH_UNAUTHORIZED");
    let reader = server.token("shop", "reader", scoped(&[Scope::Read]));
    let (code, text) = server.refusal(&reader, of_shop);
    assert_eq!(code, "FORBIDDEN");
    assert_eq!(text, "the token 'reader' does not have the scope 'admin'");
    server.call(&main, of_shop);
    // The administrator of the server may, with either of his tokens.
    let admin = server.namespaces.ensure_admin(None).unwrap().unwrap();
    for (name, token) in [("b", admin.reveal()), ("c", Token::development().reveal())] {
        let call = format!(r#"["token.create",{{"name":"{name}","namespace":"shop"}}]"#);
        server.call(token, &call);
    }
    let unknown = r#"["token.list",{"namespace":"nowhere"}]"#;
    assert_eq!(
        server.refusal(admin.reveal(), unknown).0,
        "NAMESPACE_NOT_FOUND"
    );
}

#[test]
fn who_administers_the_default_namespace_does_not_thereby_administer_the_server() {
    let server = TokenServer::new();
    server.namespaces.ensure_admin(None).unwrap().unwrap();
    let permission = scoped(&[Scope::Admin, Scope::Read]);
    let local = server.token("default", "local", permission);
    server.call(&local, r#"["token.list"]"#);
    server.call(&local, r#"["token.create",{"name":"more"}]"#);
    for call in [
        r#"["ns.list"]"#,
        r#"["ns.create","x"]"#,
        r#"["ns.token","default"]"#,
        r#"["token.rotate",{"name":"main"}]"#,
        r#"["token.rotate",{"name":"server"}]"#,
        r#"["token.revoke",{"name":"main"}]"#,
        r#"["token.revoke",{"name":"server"}]"#,
        r#"["token.create",{"name":"server"}]"#,
    ] {
        assert_eq!(
            server.refusal(&local, call).0,
            "AUTH_UNAUTHORIZED",
            "{call}"
        );
    }
}

#[test]
fn the_token_of_the_server_administers_and_does_nothing_else() {
    let server = TokenServer::new();
    let admin = server.namespaces.ensure_admin(None).unwrap().unwrap();
    let admin = admin.reveal();
    let current = server.call(admin, r#"["ns.current"]"#);
    assert_eq!(current, json!({"namespace": "default", "admin": true}));
    server.call(admin, r#"["ns.create","shop"]"#);
    server.call(admin, r#"["ns.info","shop"]"#);
    let (code, text) = server.refusal(admin, r#"["stream.get","account-1"]"#);
    assert_eq!(code, "FORBIDDEN");
    assert_eq!(text, "the token 'server' does not have the scope 'read'");
    server.call(admin, r#"["ns.delete","shop"]"#);
}

#[test]
fn what_makes_no_sense_is_refused_and_named() {
    let server = TokenServer::new();
    let main = server.create("shop");
    let long = "x".repeat(65);
    for (fields, expected) in [
        ("", "token.create.name must be a non-empty string"),
        (
            r#""name":"a b""#,
            "the name of a token \"a b\" may hold only",
        ),
        (
            &format!(r#""name":"{long}""#),
            "length of a token's name is 65",
        ),
        (
            r#""name":"a","scopes":["reads"]"#,
            "there is no scope \"reads\"",
        ),
        (
            r#""name":"a","scopes":[]"#,
            "a token needs at least one scope",
        ),
        (r#""name":"a","scope":["read"]"#, "did you mean \"scopes\"?"),
        (
            r#""name":"a","streams":["x"]"#,
            "a token with prefixes cannot have the scope 'seats'",
        ),
        (
            r#""name":"a","scopes":["read"],"keys":[""]"#,
            "a key prefix must be a non-empty string",
        ),
        (
            r#""name":"a","expires":"soon""#,
            "token.create.expires must be an RFC 3339 time",
        ),
        (
            r#""name":"a","expires":"2001-01-01T00:00:00Z""#,
            "a token must expire in the future",
        ),
        (
            r#""name":"a","expires":"2101-01-01T00:00:00Z","expiresIn":1"#,
            "exclude each other",
        ),
        (r#""name":"a","token":"short""#, "it needs at least 16"),
    ] {
        let call = format!(r#"["token.create",{{{fields}}}]"#);
        let (code, text) = server.refusal(&main, &call);
        assert_eq!(code, "INVALID_REQUEST", "{call}");
        assert!(text.contains(expected), "{call}: {text}");
    }
    let own = format!(r#"["token.create",{{"name":"a","token":"{main}"}}]"#);
    let (_, text) = server.refusal(&main, &own);
    assert_eq!(text, "the given token is in use already");
    for number in 1..64 {
        server.token("shop", &format!("t{number}"), scoped(&[Scope::Read]));
    }
    let (_, text) = server.refusal(&main, r#"["token.create",{"name":"one-more"}]"#);
    assert_eq!(
        text,
        "number of tokens of the namespace is 65, the limit is 64"
    );
}

#[test]
fn a_session_that_lasts_uses_its_token_all_the_time() {
    let time = ManualTime::new(Timestamp(1_800_000_000_000_000_000));
    let database = Options::default().with_clock(Clock::new(time.clone()));
    let server = TokenServer::with(NamespacesOptions::default().with_database(database));
    let main = server.create("shop");
    let token = server.token("shop", "till", scoped(&[Scope::State]));
    let mut redis = resp::Client::connect(&server.server);
    assert_eq!(redis.ask(&["AUTH", &token]), "+OK");
    let used = || {
        let tokens = server.call(&main, r#"["token.list"]"#);
        tokens[1]["lastUsed"].clone()
    };
    let first = used();
    time.advance(Duration::from_secs(3600));
    assert_eq!(used(), first);
    assert_eq!(redis.say("SET k 1"), "+OK");
    assert_eq!(used(), "2027-01-15T09:00:00Z", "after {first}");
}
