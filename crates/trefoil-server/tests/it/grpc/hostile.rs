//! What is no gRPC, or wrong gRPC: one clear answer or a closed connection, and the server lives.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper::header::HeaderMap;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use trefoil::Token;
use trefoil_server::Config;

use super::connect;
use crate::harness::TestServer;

/// Sends a body to `Append` as it is; answers the status, with the details as they stand.
async fn send(server: &TestServer, body: &[u8], headers: &[(&str, &str)]) -> HeaderMap {
    let socket = tokio::net::TcpStream::connect(server.grpc).await.unwrap();
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(socket));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let token = Token::development();
    let mut request = Request::post(format!("http://{}/umadb.v1.DCB/Append", server.grpc))
        .header("content-type", "application/grpc")
        .header("authorization", format!("Bearer {}", token.reveal()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::new(Bytes::copy_from_slice(body));
    let response = sender.send_request(request.body(body).unwrap()).await;
    let response: Response<_> = response.unwrap();
    let mut headers = response.headers().clone();
    let body = response.into_body().collect().await.unwrap();
    headers.extend(body.trailers().cloned().unwrap_or_default());
    headers
}

#[track_caller]
fn check(headers: &HeaderMap, status: &str, text: &str) {
    assert_eq!(headers["grpc-status"], status, "{headers:?}");
    let message = headers.get("grpc-message");
    let message = message.map_or("", |message| message.to_str().unwrap());
    let message = message.replace("%20", " ");
    assert!(message.contains(text), "{message}");
}

#[tokio::test]
async fn bytes_that_are_no_message_are_refused() {
    const OK: &str = "0";
    const INVALID_ARGUMENT: &str = "3";
    const UNIMPLEMENTED: &str = "12";
    let server = TestServer::production();
    let wrong = "the request is not a valid AppendRequest";
    let cases: [(&[u8], &str, &str); 10] = [
        (b"", INVALID_ARGUMENT, "holds no message"),
        (b"\0\0\0", INVALID_ARGUMENT, "holds no message"),
        (
            b"\0\0\0\0\x09ab",
            INVALID_ARGUMENT,
            "announces a message of 9 bytes",
        ),
        (b"\x01\0\0\0\0", UNIMPLEMENTED, "compressed"),
        // A field that ends too early.
        (b"\0\0\0\0\x02\x0a\x7f", INVALID_ARGUMENT, wrong),
        // An event whose type is not UTF-8.
        (b"\0\0\0\0\x05\x0a\x03\x0a\x01\xff", INVALID_ARGUMENT, wrong),
        // A group, which no message of the protocol has.
        (b"\0\0\0\0\x02\x0b\x0c", INVALID_ARGUMENT, wrong),
        // A condition that is none.
        (b"\0\0\0\0\x03\x12\x01\x0a", INVALID_ARGUMENT, wrong),
        // Fields that are not known are skipped.
        (b"\0\0\0\0\x05\x7a\x01x\x78\x01", OK, ""),
        (b"\0\0\0\0\0", OK, ""),
    ];
    for (body, status, text) in cases {
        let answer = send(&server, body, &[]).await;
        check(&answer, status, text);
    }
    let client = &mut connect(&server).await;
    assert_eq!(client.head().await.unwrap(), None);
}

#[tokio::test]
async fn what_is_no_http2_is_hung_up_on() {
    let server = TestServer::production();
    for bytes in [
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".as_slice(),
        &[0xff; 4096],
    ] {
        let mut socket = TcpStream::connect(server.grpc).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let _ = socket.write_all(bytes);
        let mut rest = Vec::new();
        let ended = socket.read_to_end(&mut rest);
        let timed_out = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(!ended.as_ref().is_err_and(timed_out), "{ended:?}");
    }
    assert!(connect(&server).await.head().await.is_ok());
}

#[tokio::test]
async fn a_client_that_says_nothing_is_cut_off() {
    let server = TestServer::with(Config {
        head_timeout: Duration::from_millis(200),
        ..Config::default()
    });
    let mut speaking = connect(&server).await;
    for first in [b"".as_slice(), b"PRI * HTTP/2.0"] {
        let mut socket = TcpStream::connect(server.grpc).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        socket.write_all(first).unwrap();
        let began = Instant::now();
        let mut rest = Vec::new();
        // The server may have greeted before.
        socket.read_to_end(&mut rest).unwrap();
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            began.elapsed()
        );
    }
    // A connection that has spoken may be silent.
    assert!(speaking.head().await.is_ok());
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed() {
    let server = TestServer::with(Config {
        connections_max: 2,
        ..Config::default()
    });
    let mut first = connect(&server).await;
    assert!(first.head().await.is_ok());
    let mut second = connect(&server).await;
    assert!(second.head().await.is_ok());
    let mut third = TcpStream::connect(server.grpc).unwrap();
    third
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    assert_eq!(third.read(&mut [0; 1]).unwrap_or(0), 0);
    assert!(first.head().await.is_ok());
}
