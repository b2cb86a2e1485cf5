//! A token that is revoked, replaced or expires while its holder is connected, over every protocol.

use std::time::Duration;

use trefoil::{
    Clock, ManualTime, NamespacesOptions, NewToken, Options, Permission, Timestamp, Token,
};
use trefoil_grpc::{Code, SubscribeRequest};

use super::TokenServer;
use crate::client::{Connection, bearer_of};
use crate::grpc::connect_as;
use crate::resp;

/// Those who hold a token: over RESP, and with a subscription over HTTP and gRPC.
struct Holders {
    resp: resp::Client,
    sse: Connection,
    grpc: tonic::Streaming<trefoil_grpc::SubscribeResponse>,
}

impl Holders {
    async fn new(server: &TokenServer, token: &str) -> Self {
        let mut redis = resp::Client::connect(&server.server);
        assert_eq!(redis.ask(&["AUTH", token]), "+OK");
        assert_eq!(redis.say("SET k 1"), "+OK");
        let mut sse = Connection::open(server.server.address);
        sse.send("GET", "/events?category=account", &bearer_of(token), b"");
        assert_eq!(sse.head().0, 200);
        assert_eq!(sse.chunk().unwrap(), b": ready\n\n");
        let mut client = connect_as(&server.server, Some(token)).await.unwrap();
        let grpc = client.subscribe(SubscribeRequest::default()).await.unwrap();
        Self {
            resp: redis,
            sse,
            grpc,
        }
    }

    /// All of them go on.
    fn check_served(&mut self) {
        assert_eq!(self.resp.say("GET k"), "\"1\"");
    }

    /// All of them have been told to stop.
    async fn check_ended(mut self) {
        // It is cut off, so nobody takes what has come for the whole.
        let rest = self.sse.rest();
        assert!(!rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
        let ended = tokio::time::timeout(Duration::from_secs(10), self.grpc.message());
        let status = ended.await.unwrap().unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
        let told = "authentication error: the token was revoked or replaced, or has expired";
        assert_eq!(status.message(), told);
        let refused = self.resp.say("GET k");
        assert!(refused.ends_with("authenticate again"), "{refused}");
        assert_eq!(self.resp.say("PING"), "+PONG");
        assert!(self.resp.say("SLOWLOG GET").starts_with("-ERR "));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_connected_with_a_token_that_is_revoked_is_served_no_more() {
    let server = TokenServer::new();
    let main = server.create("shop");
    let [going, staying] =
        ["going", "staying"].map(|name| server.token("shop", name, Permission::ALL));
    let gone = Holders::new(&server, &going).await;
    let mut stay = Holders::new(&server, &staying).await;
    server.call(&main, r#"["token.revoke",{"name":"going"}]"#);
    gone.check_ended().await;
    stay.check_served();
    let stream = r#"["stream.write","account-1",{"type":"T","data":{}}]"#;
    server.call(&main, stream);
    let event = String::from_utf8(stay.sse.chunk().unwrap()).unwrap();
    assert!(event.contains("account-1"), "{event}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_connected_to_a_namespace_that_gets_another_token_is_served_no_more() {
    let server = TokenServer::new();
    let main = server.create("shop");
    let holders = Holders::new(&server, &main).await;
    let renewed = server.call(&main, r#"["ns.token","shop"]"#);
    holders.check_ended().await;
    let renewed = renewed["token"].as_str().unwrap();
    let holders = Holders::new(&server, renewed).await;
    server.call(renewed, r#"["ns.delete","shop"]"#);
    let mut redis = holders.resp;
    assert!(redis.say("GET k").ends_with("authenticate again"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_expires_by_the_clock_also_for_those_who_are_connected() {
    let now = Timestamp(1_800_000_000_000_000_000);
    let time = ManualTime::new(now);
    let database = Options::default().with_clock(Clock::new(time.clone()));
    let server = TokenServer::with(NamespacesOptions::default().with_database(database));
    let main = server.create("shop");
    let mut new = NewToken::new("short", Permission::ALL);
    new.expires = Some(Timestamp(now.0 + 3_600_000_000_000));
    let (_, short) = server.namespaces.create_token("shop", new).unwrap();
    let mut holders = Holders::new(&server, short.reveal()).await;
    let read = r#"["stream.get","account-1"]"#;
    time.advance(Duration::from_secs(3599));
    holders.check_served();
    server.call(short.reveal(), read);
    time.advance(Duration::from_secs(1));
    assert_eq!(server.refusal(short.reveal(), read).0, "AUTH_UNAUTHORIZED");
    holders.check_ended().await;

    // One that was replaced counts for as long as was said.
    let holders = Holders::new(&server, &main).await;
    let rotate = r#"["token.rotate",{"name":"main","overlap":600}]"#;
    let renewed = server.call(&main, rotate)["token"]
        .as_str()
        .unwrap()
        .to_owned();
    time.advance(Duration::from_secs(599));
    server.call(&main, read);
    server.call(&renewed, read);
    time.advance(Duration::from_secs(1));
    assert_eq!(server.refusal(&main, read).0, "AUTH_UNAUTHORIZED");
    server.call(&renewed, read);
    holders.check_ended().await;
}

#[test]
fn a_wrong_secret_is_told_as_before() {
    let server = TokenServer::new();
    let wrong = Token::development().reveal().replace("0000", "0001");
    let (code, text) = server.refusal(&wrong, r#"["ns.list"]"#);
    assert_eq!(code, "AUTH_UNAUTHORIZED");
    assert_eq!(text, "Token not authorized for namespace");
}
