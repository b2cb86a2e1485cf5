//! Who may use what: tokens, namespaces that come and go, and what one client may do to another.

use trefoil::Token;
use trefoil_server::{Config, RespConfig};

use super::Client;
use crate::client::{bearer_of, request};
use crate::harness::TestServer;

/// A call over HTTP with the token of the default namespace.
fn call(server: &TestServer, body: &str) -> serde_json::Value {
    let headers = bearer_of(Token::development().reveal());
    let reply = request(server.address, "POST", "/rpc", &headers, body.as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&reply.body).unwrap()
}

fn create(server: &TestServer, name: &str) -> String {
    let created = call(server, &format!(r#"["ns.create","{name}"]"#));
    created["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_token_opens_its_own_namespace() {
    let server = TestServer::production();
    let token = create(&server, "other");
    let mut own = Client::known(&server);
    assert_eq!(own.say("SET k default"), "+OK");
    for authenticate in [
        format!("AUTH {token}"),
        format!("AUTH default {token}"),
        format!("AUTH other {token}"),
        format!("HELLO 2 AUTH other {token}"),
    ] {
        let mut other = Client::connect(&server);
        let reply = other.say(&authenticate);
        assert!(!reply.starts_with('-'), "{reply}");
        assert_eq!(other.say("GET k"), "$-1");
        // Another token leads to another namespace, and what was begun stays behind.
        assert_eq!(other.say("WATCH k"), "+OK");
        assert_eq!(other.ask(&["AUTH", Token::development().reveal()]), "+OK");
        assert_eq!(other.say("GET k"), "\"default\"");
    }
    let wrong = Client::connect(&server).say(&format!("AUTH third {token}"));
    assert!(wrong.starts_with("-WRONGPASS "), "{wrong}");
}

#[test]
fn a_token_that_was_brought_along_opens_its_namespace() {
    let server = TestServer::production();
    let key = "a-key-of-an-umadb";
    let create = format!(r#"["ns.create","other",{{"token":"{key}"}}]"#);
    assert_eq!(call(&server, &create)["token"], key);
    let mut known = Client::connect(&server);
    assert_eq!(known.say(&format!("AUTH {key}")), "+OK");
    assert_eq!(known.say("SET k other"), "+OK");
    for (authenticate, is_right) in [
        (format!("AUTH other {key}"), true),
        (format!("AUTH default {key}"), true),
        (format!("AUTH third {key}"), false),
        (format!("AUTH {key}-not"), false),
    ] {
        let mut client = Client::connect(&server);
        let reply = client.say(&authenticate);
        assert_eq!(reply == "+OK", is_right, "{authenticate}: {reply}");
        let value = client.say("GET k");
        assert_eq!(value == "\"other\"", is_right, "{authenticate}: {value}");
    }
}

#[test]
fn clients_of_a_namespace_know_only_each_other() {
    let server = TestServer::production();
    let token = create(&server, "other");
    let mut admin = Client::known(&server);
    let mut others = [(); 2].map(|()| {
        let mut client = Client::connect(&server);
        assert_eq!(client.say(&format!("AUTH {token}")), "+OK");
        client
    });
    let n_seen = |client: &mut Client| client.say("CLIENT LIST").matches("user=").count();
    assert_eq!(n_seen(&mut admin), 3);
    assert_eq!(n_seen(&mut others[0]), 2);
    let [first, second] = &mut others;
    assert_eq!(
        first.say("CLIENT KILL USER default"),
        "-ERR No such user 'default'"
    );
    let id = second.say("CLIENT ID");
    assert_eq!(first.say(&format!("CLIENT KILL ID {id}")), "1");
    second.check_closed();
    assert_eq!(admin.say("PING"), "+PONG");
}

#[test]
fn whoever_uses_a_deleted_namespace_is_told_and_gets_no_other_of_its_name() {
    let server = TestServer::production();
    let token = create(&server, "short");
    let mut client = Client::connect(&server);
    assert_eq!(client.say(&format!("AUTH {token}")), "+OK");
    assert_eq!(client.say("SET k 1"), "+OK");
    call(&server, r#"["ns.delete","short"]"#);
    let told = "-ERR namespace 'short' was deleted, or the token was revoked or replaced, or has \
                expired: authenticate again";
    assert_eq!(client.say("GET k"), told);
    assert_eq!(client.say("SET k 2"), told);
    let second = create(&server, "short");
    assert_eq!(client.say("GET k"), told);
    assert_eq!(client.say("PING"), "+PONG");
    let wrong = client.say(&format!("AUTH {token}"));
    assert!(wrong.starts_with("-WRONGPASS "), "{wrong}");
    assert_eq!(client.say(&format!("AUTH {second}")), "+OK");
    assert_eq!(client.say("GET k"), "$-1");
}

#[test]
fn a_server_for_development_needs_no_token_but_no_wrong_one_either() {
    let server = TestServer::with(Config {
        resp: Some(RespConfig {
            anonymous: true,
            ..RespConfig::default()
        }),
        ..Config::default()
    });
    let mut nobody = Client::connect(&server);
    assert_eq!(nobody.say("SET k 1"), "+OK");
    let wrong = nobody.say("AUTH default key");
    assert!(wrong.starts_with("-WRONGPASS "), "{wrong}");
    assert_eq!(Client::known(&server).say("GET k"), "\"1\"");
}

#[test]
fn in_test_mode_namespaces_appear_when_they_are_used() {
    let server = TestServer::test_mode();
    let mut nobody = Client::connect(&server);
    assert_eq!(nobody.say("SET k 1"), "+OK");
    assert_eq!(nobody.say("AUTH default whatever"), "+OK");
    assert_eq!(nobody.say("GET k"), "\"1\"");
    let name = trefoil::NamespaceId::new("fresh").unwrap();
    let token = Token::from_secret(&name, &[7; 32]);
    assert_eq!(nobody.ask(&["AUTH", "fresh", token.reveal()]), "+OK");
    assert_eq!(nobody.say("GET k"), "$-1");
    assert_eq!(nobody.say("DEBUG SLEEP 0"), "+OK");
}
