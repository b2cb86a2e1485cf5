//! The table `tests/tokens/matrix.txt`: every scope with every request, over every protocol.

use std::collections::BTreeSet;

use serde_json::Value;
use trefoil::{Permission, Scope};
use trefoil_grpc::{Code, ReadRequest, Status, SubscribeRequest};

use super::{TokenServer, scoped};
use crate::client::{Connection, bearer_of, request};
use crate::grpc::{append, connect_as, event};
use crate::resp;

/// A line of the table.
struct MatrixCase {
    protocol: &'static str,
    request: &'static str,
    scopes: &'static str,
    is_for_confined: bool,
}

/// Why a request was refused.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// The token lacks this scope.
    Scope(String),
    /// Something else about the token.
    Token(String),
}

fn cases() -> impl Iterator<Item = MatrixCase> {
    let lines = include_str!("../../tokens/matrix.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| {
        let (line, confined) = line.rsplit_once(" | ").unwrap();
        let (line, scopes) = line.rsplit_once(" | ").unwrap();
        let (protocol, request) = line.split_once(' ').unwrap();
        MatrixCase {
            protocol,
            request: request.trim_start(),
            scopes,
            is_for_confined: match confined {
                "yes" => true,
                "no" => false,
                other => panic!("{other}: {line}"),
            },
        }
    })
}

/// A namespace with its tokens: main, one for each scope, and one with prefixes.
struct Tokens {
    namespace: String,
    main: String,
    of_scopes: Vec<(Scope, String)>,
    confined: String,
}

impl Tokens {
    fn new(server: &TokenServer, number: &mut usize) -> Self {
        *number += 1;
        let namespace = format!("case-{number}");
        let main = server.create(&namespace);
        let event = r#"["stream.write","account-1",{"type":"Opened","data":{}}]"#;
        server.call(&main, event);
        let of_scope = |scope: Scope| {
            let permission = scoped(&[scope]);
            (scope, server.token(&namespace, scope.name(), permission))
        };
        let confined = Permission {
            streams: vec!["account-".to_owned()],
            keys: vec!["cart:".to_owned()],
            ..scoped(&[Scope::Read, Scope::Write, Scope::State, Scope::Subscribe])
        };
        Self {
            of_scopes: Scope::EVERY.into_iter().map(of_scope).collect(),
            confined: server.token(&namespace, "confined", confined),
            main,
            namespace,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_permits_what_the_table_says() {
    let server = TokenServer::new();
    let admin = server.namespaces.ensure_admin(None).unwrap().unwrap();
    let mut number = 0;
    let mut n_checked = 0;
    for case in cases() {
        let tokens = Tokens::new(&server, &mut number);
        let permits = |scope: Scope| {
            case.scopes == "any" || case.scopes.split(", ").any(|name| name == scope.name())
        };
        for (scope, token) in { tokens.of_scopes.iter() }.filter(|(scope, _)| !permits(*scope)) {
            let refused = ask(&server, &case, token, &tokens.namespace).await;
            let expected = match case.scopes {
                "server" => Refused::Token("AUTH_UNAUTHORIZED".to_owned()),
                scopes => Refused::Scope(scopes.to_owned()),
            };
            let what = format!("{} {} with {scope}", case.protocol, case.request);
            assert_eq!(refused, Err(expected), "{what}");
            n_checked += 1;
        }
        if !case.is_for_confined {
            let refused = ask(&server, &case, &tokens.confined, &tokens.namespace).await;
            assert!(refused.is_err(), "{} with prefixes", case.request);
        }
        // What is permitted may change the namespace, so each token gets one of its own.
        for scope in Scope::EVERY.into_iter().filter(|scope| permits(*scope)) {
            let tokens = Tokens::new(&server, &mut number);
            let (_, token) = &tokens.of_scopes[scope as usize];
            let done = ask(&server, &case, token, &tokens.namespace).await;
            assert_eq!(done, Ok(()), "{} with {scope}", case.request);
            n_checked += 1;
        }
        let tokens = Tokens::new(&server, &mut number);
        if case.is_for_confined {
            let done = ask(&server, &case, &tokens.confined, &tokens.namespace).await;
            assert_eq!(done, Ok(()), "{} with prefixes", case.request);
        }
        let by_admin = match case.scopes {
            "server" => ask(&server, &case, admin.reveal(), &tokens.namespace).await,
            _ => ask(&server, &case, &tokens.main, &tokens.namespace).await,
        };
        assert_eq!(by_admin, Ok(()), "{} with all scopes", case.request);
    }
    assert!(n_checked > 500, "{n_checked}");
}

/// Asks, and says whether the token was refused. Other errors do not matter.
async fn ask(
    server: &TokenServer,
    case: &MatrixCase,
    token: &str,
    namespace: &str,
) -> Result<(), Refused> {
    let asked = case.request.replace("{ns}", namespace);
    match case.protocol {
        "rpc" => over_http(server, "POST", "/rpc", token, &asked),
        "GET" => over_http(server, "GET", &asked, token, ""),
        "POST" => {
            let (path, body) = asked.split_once(' ').unwrap();
            over_http(server, "POST", path, token, body)
        }
        "SSE" => over_sse(server, &asked, token),
        "grpc" => over_grpc(server, &asked, token).await,
        "resp" => over_resp(server, &asked, token),
        other => panic!("{other}"),
    }
}

fn over_http(
    server: &TokenServer,
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> Result<(), Refused> {
    let headers = bearer_of(token);
    let address = server.server.address;
    let reply = request(address, method, path, &headers, body.as_bytes());
    refused_over_http(reply.status, &reply.body)
}

fn refused_over_http(status: u16, body: &[u8]) -> Result<(), Refused> {
    if ![401, 403].contains(&status) {
        return Ok(());
    }
    let error: Value = serde_json::from_slice(body).unwrap();
    let error = &error["error"];
    match (
        error["code"].as_str().unwrap(),
        error["details"]["scope"].as_str(),
    ) {
        ("FORBIDDEN", Some(scope)) => Err(Refused::Scope(scope.to_owned())),
        (code, _) => Err(Refused::Token(code.to_owned())),
    }
}

fn over_sse(server: &TokenServer, path: &str, token: &str) -> Result<(), Refused> {
    let mut connection = Connection::open(server.server.address);
    connection.send("GET", path, &bearer_of(token), b"");
    let (status, headers) = connection.head();
    if status == 200 {
        return Ok(());
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.unwrap().1.parse().unwrap()];
    std::io::Read::read_exact(&mut connection.reader, &mut body).unwrap();
    refused_over_http(status, &body)
}

async fn over_grpc(server: &TokenServer, method: &str, token: &str) -> Result<(), Refused> {
    let mut client = connect_as(&server.server, Some(token)).await.unwrap();
    let answer = match method {
        "Read" => client.read(ReadRequest::default()).await.map(drop),
        "Head" => client.head().await.map(drop),
        "GetTrackingInfo" => client.tracking("s").await.map(drop),
        "Append" => client.append(append(vec![event("A", &[])])).await.map(drop),
        "Subscribe" => { client.subscribe(SubscribeRequest::default()) }
            .await
            .map(drop),
        other => panic!("{other}"),
    };
    match answer {
        Ok(()) => Ok(()),
        Err(status) if status.code() == Code::PermissionDenied => Err(quoted_scope(&status)),
        Err(status) => panic!("{method}: {status:?}"),
    }
}

fn quoted_scope(status: &Status) -> Refused {
    refusal_of(status.message())
}

/// Finds the scope in a text.
fn refusal_of(text: &str) -> Refused {
    match text.split_once("does not have the scope '") {
        Some((_, scope)) => Refused::Scope(scope.trim_end_matches('\'').to_owned()),
        None => Refused::Token(text.to_owned()),
    }
}

fn over_resp(server: &TokenServer, lines: &str, token: &str) -> Result<(), Refused> {
    let mut client = resp::Client::connect(&server.server);
    assert_eq!(client.ask(&["AUTH", token]), "+OK");
    for line in lines.split("; ") {
        let reply = client.say(line);
        if reply.starts_with("-NOPERM ") || reply.contains("of: NOPERM ") {
            return Err(refusal_of(&reply));
        }
        assert!(!reply.contains("the token"), "{line}: {reply}");
    }
    Ok(())
}

#[test]
fn the_table_has_every_method_and_every_command_on_events() {
    let server = TokenServer::new();
    let document = request(server.server.address, "GET", "/openapi.json", "", b"");
    let document: Value = serde_json::from_slice(&document.body).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let methods = schemas
        .keys()
        .filter_map(|name| name.strip_suffix(".result"));
    let tried: BTreeSet<String> = cases()
        .filter(|case| case.protocol == "rpc")
        .map(|case| {
            let call: Value = serde_json::from_str(case.request).unwrap();
            call[0].as_str().unwrap().to_owned()
        })
        .collect();
    let methods: BTreeSet<String> = methods.map(str::to_owned).collect();
    assert_eq!(methods, tried);
    let mut client = resp::Client::known(&server.server);
    let listed = client.say("COMMAND LIST FILTERBY PATTERN event.*");
    let n_tried = listed.split('"').skip(1).step_by(2).inspect(|command| {
        let is_tried = |case: &MatrixCase| {
            let name = case.request.split(' ').next().unwrap();
            case.protocol == "resp" && name.eq_ignore_ascii_case(command)
        };
        assert!(cases().any(|case| is_tried(&case)), "{command}");
    });
    assert_eq!(n_tried.count(), 8, "{listed}");
}
