//! Connections that say nothing: they keep nobody out, and do not last.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use trefoil::Token;
use trefoil_server::Config;

use crate::client::{request, rpc};
use crate::harness::TestServer;

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    let timeout = Some(Duration::from_secs(20));
    socket.set_read_timeout(timeout).unwrap();
    socket
}

/// What comes back for a line over RESP.
fn say(socket: &mut TcpStream, line: &str) -> String {
    socket.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    let mut bytes = [0; 64];
    let read = socket.read(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..read])
        .trim_end()
        .to_owned()
}

/// Waits until the server closes the connection; it may have greeted before.
#[track_caller]
fn check_closed(socket: &mut TcpStream) {
    match socket.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the connection is open: {error}"),
    }
}

fn impatient(test_mode: bool) -> Config {
    Config {
        test_mode,
        head_timeout: Duration::from_millis(500),
        ..Config::default()
    }
}

#[test]
fn a_client_that_does_not_authenticate_is_cut_off() {
    let server = TestServer::with(impatient(false));
    let auth = format!("AUTH {}", Token::development().reveal());
    let mut known = connect(server.resp);
    assert_eq!(say(&mut known, &auth), "+OK");
    let mut silent = connect(server.resp);
    let mut stranger = connect(server.resp);
    assert!(say(&mut stranger, "PING").starts_with("-NOAUTH"));
    check_closed(&mut silent);
    check_closed(&mut stranger);
    assert_eq!(say(&mut known, "PING"), "+PONG");
}

#[test]
fn where_no_token_is_needed_a_command_is_enough() {
    let server = TestServer::with(impatient(true));
    let mut known = connect(server.resp);
    assert_eq!(say(&mut known, "PING"), "+PONG");
    let mut silent = connect(server.resp);
    check_closed(&mut silent);
    assert_eq!(say(&mut known, "PING"), "+PONG");
}

#[test]
fn silent_connections_keep_nobody_out() {
    let server = TestServer::with(Config {
        connections_max: 40,
        ..Config::default()
    });
    let auth = format!("AUTH {}", Token::development().reveal());
    let mut known = connect(server.resp);
    assert_eq!(say(&mut known, &auth), "+OK");
    for address in [server.resp, server.grpc, server.address] {
        let mut silent: Vec<TcpStream> = (0..60).map(|_| connect(address)).collect();
        let health = request(server.address, "GET", "/health", "", b"");
        assert_eq!(health.status, 200);
        assert_eq!(rpc(server.address, "[\"sys.version\"]").status, 200);
        let mut another = connect(server.resp);
        assert_eq!(say(&mut another, &auth), "+OK");
        // The oldest has made room.
        check_closed(&mut silent[0]);
        assert_eq!(say(&mut known, "PING"), "+PONG");
    }
}
