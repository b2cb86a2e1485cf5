//! Who may call what: tokens, health, names of methods, and what is counted.

use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;
use trefoil::Token;
use trefoil_grpc::{
    Code, ErrorType, HeadRequest, HeadResponse, ReadRequest, ServingStatus, Status,
    SubscribeRequest,
};
use trefoil_server::{Config, GrpcConfig};

use super::{append, check_failure, connect, connect_as, event, fill, wait_for_metric};
use crate::client::{bearer_of, request};
use crate::harness::TestServer;

#[track_caller]
fn check_refused<T>(result: Result<T, Status>) {
    let (code, error_type) = (Code::Unauthenticated, ErrorType::Authentication);
    check_failure(result, code, error_type, "authentication error: ");
}

#[tokio::test]
async fn without_the_right_token_nothing_but_health_is_answered() {
    let server = TestServer::production();
    let development = Token::development();
    let wrong_secret = development.reveal().replace("0000", "0001");
    let tokens = [None, Some(""), Some("key"), Some(wrong_secret.as_str())];
    for token in tokens {
        let mut client = connect_as(&server, token).await.unwrap();
        check_refused(client.head().await);
        check_refused(client.append(append(vec![event("A", &[])])).await);
        check_refused(client.read(ReadRequest::default()).await);
        check_refused(client.subscribe(SubscribeRequest::default()).await);
        check_refused(client.tracking("s").await);
        let health = client.health("").await.unwrap();
        assert_eq!(health.status(), ServingStatus::Serving);
    }
    assert_eq!(connect(&server).await.head().await.unwrap(), None);
}

#[tokio::test]
async fn a_key_of_umadb_opens_the_namespace_that_was_given_it() {
    let server = TestServer::production();
    let (key, admin) = ("a-key-of-an-umadb", Token::development());
    let rpc = |token: &str, body: &str| {
        let headers = bearer_of(token);
        request(server.address, "POST", "/rpc", &headers, body.as_bytes())
    };
    let create = |name: &str, token: &str| {
        let call = format!(r#"["ns.create","{name}",{{"token":"{token}"}}]"#);
        rpc(admin.reveal(), &call)
    };
    assert_eq!(create("other", key).status, 200);
    let mut client = connect_as(&server, Some(key)).await.unwrap();
    client.append(append(vec![event("A", &[])])).await.unwrap();
    assert_eq!(connect(&server).await.head().await.unwrap(), None);
    assert_eq!(rpc(key, r#"["events.head"]"#).text(), "1");
    for (name, token, reason) in [
        (
            "third",
            key,
            "the given token is in use by another namespace",
        ),
        (
            "third",
            "too-short",
            "the given token has 9 bytes, it needs at least 16",
        ),
        (
            "third",
            admin.reveal(),
            "Token is for namespace 'default', not 'third'",
        ),
        (
            "third",
            "ns_but-not-a-token-of-ours",
            "Invalid token format",
        ),
    ] {
        let refused = create(name, token);
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains(reason), "{}", refused.text());
    }
    // It opens its own namespace, and one that nobody has opens none.
    assert_eq!(rpc(key, r#"["ns.list"]"#).status, 403);
    let unknown = rpc("a-key-of-an-umadb-2", r#"["events.head"]"#);
    assert_eq!(unknown.status, 401);
    assert!(
        unknown.text().contains("AUTH_INVALID_TOKEN"),
        "{}",
        unknown.text()
    );
    let mut client = connect_as(&server, Some("a-key-of-an-umadb-2"))
        .await
        .unwrap();
    check_refused(client.head().await);
}

#[tokio::test]
async fn the_scheme_is_spelt_bearer() {
    let server = TestServer::production();
    for (value, is_right) in [
        (format!("Bearer {}", Token::development().reveal()), true),
        (format!("bearer {}", Token::development().reveal()), false),
        (Token::development().reveal().to_owned(), false),
    ] {
        let mut request = tonic::Request::new(HeadRequest {});
        let metadata = request.metadata_mut();
        metadata.insert("authorization", value.parse().unwrap());
        let answer = call(&server, "/umadb.v1.DCB/Head", request).await;
        assert_eq!(answer.is_ok(), is_right, "{value}");
    }
}

#[tokio::test]
async fn a_token_opens_its_own_namespace() {
    let server = TestServer::production();
    let token = Token::development();
    let headers = bearer_of(token.reveal());
    let body = br#"["ns.create","other"]"#;
    let created = request(server.address, "POST", "/rpc", &headers, body);
    let created: serde_json::Value = serde_json::from_slice(&created.body).unwrap();
    let other = created["token"].as_str().unwrap();
    let mut own = connect(&server).await;
    fill(&mut own, 3).await;
    let mut others = connect_as(&server, Some(other)).await.unwrap();
    assert_eq!(others.head().await.unwrap(), None);
    fill(&mut others, 1).await;
    assert_eq!(others.head().await.unwrap(), Some(1));
    assert_eq!(own.head().await.unwrap(), Some(3));
}

#[tokio::test]
async fn in_test_mode_a_missing_token_is_the_default_namespace() {
    let server = TestServer::test_mode();
    let mut nobody = connect_as(&server, None).await.unwrap();
    fill(&mut nobody, 2).await;
    assert_eq!(connect(&server).await.head().await.unwrap(), Some(2));
}

#[tokio::test]
async fn a_server_for_development_needs_no_token_but_no_wrong_one_either() {
    let grpc = GrpcConfig {
        anonymous: true,
        ..GrpcConfig::default()
    };
    let server = TestServer::with(Config {
        grpc: Some(grpc),
        ..Config::default()
    });
    let mut nobody = connect_as(&server, None).await.unwrap();
    fill(&mut nobody, 2).await;
    assert_eq!(connect(&server).await.head().await.unwrap(), Some(2));
    let mut somebody = connect_as(&server, Some("key")).await.unwrap();
    check_refused(somebody.head().await);
    // HTTP goes on asking.
    let body = br#"["stream.get","a-1"]"#;
    let refused = request(server.address, "POST", "/rpc", "", body);
    assert_eq!(refused.status, 401);
}

#[tokio::test]
async fn health_is_told_by_the_names_of_services() {
    let server = TestServer::production();
    let mut client = connect_as(&server, None).await.unwrap();
    for service in ["", "umadb.v1.DCB"] {
        let health = client.health(service).await.unwrap();
        assert_eq!(health.status(), ServingStatus::Serving, "{service}");
        let mut watch = client.watch_health(service).await.unwrap();
        let first = watch.message().await.unwrap().unwrap();
        assert_eq!(first.status(), ServingStatus::Serving, "{service}");
    }
    for unknown in [
        client.health("x").await.err(),
        client.watch_health("x").await.err(),
    ] {
        assert_eq!(unknown.unwrap().code(), Code::NotFound);
    }
}

/// Calls a method by its path.
async fn call(
    server: &TestServer,
    path: &str,
    request: tonic::Request<HeadRequest>,
) -> Result<HeadResponse, Status> {
    let endpoint = Endpoint::from_shared(format!("http://{}", server.grpc)).unwrap();
    let mut channel = Grpc::new(endpoint.connect().await.unwrap());
    channel.ready().await.unwrap();
    let path: PathAndQuery = path.parse().unwrap();
    let answer = channel.unary(request, path, ProstCodec::default()).await?;
    Ok(answer.into_inner())
}

#[tokio::test]
async fn the_old_name_of_the_service_is_understood_and_others_are_not() {
    let server = TestServer::test_mode();
    let mut client = connect(&server).await;
    fill(&mut client, 4).await;
    for path in ["/umadb.v1.DCB/Head", "/umadb.UmaDBService/Head"] {
        let answer = call(&server, path, tonic::Request::new(HeadRequest {})).await;
        assert_eq!(answer.unwrap().position, Some(4), "{path}");
    }
    for path in [
        "/umadb.v1.DCB/Delete",
        "/umadb.v2.DCB/Head",
        "/Head",
        "/a/b/c",
    ] {
        let answer = call(&server, path, tonic::Request::new(HeadRequest {})).await;
        let text = format!("there is no method {path}");
        check_failure(
            answer,
            Code::Unimplemented,
            ErrorType::InvalidArgument,
            &text,
        );
    }
}

#[tokio::test]
async fn calls_are_counted_by_method_and_code() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    fill(&mut client, 1).await;
    fill(&mut client, 1).await;
    client
        .append(append(vec![event(&"t".repeat(4097), &[])]))
        .await
        .unwrap_err();
    super::responses(&mut client, ReadRequest::default())
        .await
        .unwrap();
    for (method, code, count) in [
        ("Append", "OK", 2),
        ("Append", "INVALID_ARGUMENT", 1),
        ("Read", "OK", 1),
    ] {
        let line =
            format!("trefoil_grpc_calls_total{{method=\"{method}\",code=\"{code}\"}} {count}");
        wait_for_metric(server.address, &line).await;
    }
    wait_for_metric(server.address, "trefoil_events_written_total 2").await;
}
